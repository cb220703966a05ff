"""`python -m engine run`: decode a prompt, show the tokens as they come, then the figures."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from engine.cli.bar import progress_bar
from engine.cli.paint import colour_wanted, legend, painted
from engine.cli.summary import summary
from engine.errors import PromptError
from engine.export import tokens_csv, write_csv
from engine.models.backends import BACKENDS
from engine.report import Report
from engine.spec import DRAFTERS, RULES, RunSpec, build
from engine.store import RunStore
from engine.values import Event, Step

__all__ = ["add_parser"]

DEFAULT = RunSpec()


def add_parser(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser("run", help="decode a prompt", allow_abbrev=False)
    parser.set_defaults(handler=_run)
    option = parser.add_argument
    option("--target", default=DEFAULT.target, help="a model's name, or the path of a GGUF file (default %(default)s)")
    option(
        "--drafter",
        default=DEFAULT.drafter,
        help=f"{', '.join(DRAFTERS)}, model:NAME, eagle:PATH or eagle+ngram:PATH (default %(default)s)",
    )
    option("--rule", default=DEFAULT.rule, help=f"{' or '.join(RULES)} (default %(default)s)")
    option("--draft-length", type=int, default=DEFAULT.draft_length, metavar="N", help="0 to 32 (default %(default)s)")
    option("--temperature", type=float, default=DEFAULT.temperature, metavar="T", help="default %(default)s")
    option("--top-k", type=int, default=DEFAULT.top_k, metavar="K", help="0 keeps every token (default %(default)s)")
    option("--top-p", type=float, default=DEFAULT.top_p, metavar="P", help="1 keeps every token (default %(default)s)")
    option("--max-tokens", type=int, default=DEFAULT.max_tokens, metavar="N", help="default %(default)s")
    option("--stop", action="append", default=[], metavar="TEXT", help="end where TEXT appears; may be repeated")
    option("--seed", type=int, default=DEFAULT.seed, help="default %(default)s")
    option("--chat", action=argparse.BooleanOptionalAction, default=DEFAULT.chat, help="use the chat template")
    option("--ngram-max", type=int, default=DEFAULT.ngram_max, metavar="N", help="longest n-gram (default %(default)s)")
    option("--ngram-match", default=DEFAULT.ngram_match, help="recent or first (default %(default)s)")
    option("--acceptance-probability", type=float, default=DEFAULT.acceptance_probability, metavar="P",
           help="the naive rule's parameter (default %(default)s)")  # fmt: skip
    option("--agreement", type=float, default=DEFAULT.agreement, metavar="A",
           help="markov: how far the draft agrees with the target, -1 to 1 (default %(default)s)")  # fmt: skip
    option("--target-call-seconds", type=float, default=DEFAULT.target_call_seconds, metavar="S",
           help="markov: simulated seconds of a target call (default: real time)")  # fmt: skip
    option("--draft-call-seconds", type=float, default=DEFAULT.draft_call_seconds, metavar="S",
           help="markov: simulated seconds of a draft call (default: real time)")  # fmt: skip
    option(
        "--backend", default=DEFAULT.backend, help=f"what runs a GGUF file: {', '.join(BACKENDS)} (default %(default)s)"
    )
    option("--exact-rows", action=argparse.BooleanOptionalAction, default=DEFAULT.exact_rows,
           help="rows that are the same, bit for bit, alone and in a block")  # fmt: skip
    prompts = parser.add_mutually_exclusive_group(required=True)
    prompts.add_argument("--prompt", metavar="TEXT")
    prompts.add_argument("--prompt-file", metavar="FILE", help="read the prompt from FILE; - is standard input")
    option("--json", action="store_true", help="print one JSON object, and nothing else, on standard output")
    option("--save", action="store_true", help="keep the run in the history")
    option("--csv", metavar="FILE", help="write the run as CSV, one row for every decision; - is standard output")


def _run(arguments: argparse.Namespace) -> int:
    spec = _spec(arguments)
    with progress_bar("compiling") as progress:
        built = build(spec, progress)
    colour = colour_wanted()
    report = Report()
    events: list[Event] = []
    with ExitStack() as stack:
        cancelled = stack.enter_context(_interrupt())
        writer = stack.enter_context(RunStore().begin(spec)) if arguments.save else None
        for event in built.events(cancelled):
            report.add(event)
            events.append(event)
            if writer:
                writer.add(event)
            if isinstance(event, Step) and not arguments.json:
                sys.stdout.write(painted(event.decisions, colour=colour))
                sys.stdout.flush()
    record = report.record()
    if arguments.json:
        print(json.dumps(record, ensure_ascii=False, allow_nan=False))
    else:
        print(f"\n\n{legend()}" if colour else "\n")
        print(summary(record))
    if writer:
        print(f"saved as run {writer.run_id}", file=sys.stderr)
    if arguments.csv:
        write_csv(tokens_csv(writer.run_id if writer else "", events), arguments.csv)
    if record["error"]:
        print(f"error: {record['error']}", file=sys.stderr)
    return 1 if record["finish_reason"] in ("error", "cancelled") else 0


def _spec(arguments: argparse.Namespace) -> RunSpec:
    given = {field.name: getattr(arguments, field.name) for field in fields(RunSpec)}
    prompt = _prompt_file(arguments.prompt_file) if arguments.prompt_file else arguments.prompt
    return RunSpec(**given | {"prompt": prompt, "stop": tuple(arguments.stop)})


def _prompt_file(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failure:
        raise PromptError(f"the prompt file {name} cannot be read: {failure}; give a UTF-8 text file") from None


@contextmanager
def _interrupt() -> Iterator[Callable[[], bool]]:
    """Let the first Ctrl-C end the run after the step in hand; the second one interrupts at once."""
    asked = False

    def ask(*_: object) -> None:
        nonlocal asked
        asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
