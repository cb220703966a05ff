"""`python -m engine COMMAND`: the commands, and how errors reach a user.

Exit codes: 0 done, 1 a run ended with an error or was interrupted, 2 bad input.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from engine.errors import DraftscopeError

__all__ = ["main"]

COMMANDS = ("run", "bench", "compare", "lab", "arithmetic", "models", "runs")  # each a module beside this one


class _Parser(argparse.ArgumentParser):
    """A parser that tells of arguments nobody knows itself, so that it is a command's own usage that is shown."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """See `argparse.ArgumentParser`; nothing is left over, or it ends with an error."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}; {self.prog} --help names those there are")
        return known, unknown


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    parser = _Parser(prog="python -m engine", description="Speculative decoding, step by step.", allow_abbrev=False)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    given = sys.argv[1:] if arguments is None else list(arguments)
    named = [name for name in COMMANDS if name in given[:1]]
    for name in named or COMMANDS:  # what the others import takes a while
        import_module(f"engine.cli.{name}").add_parser(commands)
    chosen = parser.parse_args(given)
    if sys.stdout is None:  # closed by the caller
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - it lives as long as the process
    try:
        code: int = chosen.handler(chosen)
        sys.stdout.flush()
    except DraftscopeError as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of our output has gone, as in `... | head`
        _drop_output()
        return 1
    except OSError as failure:
        print(f"error: the output cannot be written: {failure.strerror or failure}", file=sys.stderr)
        _drop_output()
        return 1
    return code


def _drop_output() -> None:
    """What is left in the buffer of standard output goes nowhere, or Python would complain of it on leaving."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
