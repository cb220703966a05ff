"""`python -m engine bench`: is speculation faster here? A benchmark to paste into an issue."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from typing import Any, TypeVar

from engine.bench.against import RIVALS
from engine.bench.plan import USUAL, optional_settings
from engine.bench.prompts import Prompt, built_in_prompts, one_of_each, read_prompts
from engine.bench.report import markdown_report, text_report
from engine.bench.run import DEFAULT_LENGTHS, BenchSettings, run_bench
from engine.cli.bar import runs_bar
from engine.cli.stop_signals import stop_signals
from engine.cli.table import table
from engine.drafter_kinds import DRAFTERS
from engine.errors import SettingError
from engine.lengths.base import MAX_DRAFT_LENGTH
from engine.models.threads import THREADS_VARIABLE
from engine.spec import RunSpec

__all__ = ["add_parser"]

T = TypeVar("T")

DEFAULT = RunSpec(max_tokens=64, temperature=0.0)
QUICK_PROMPTS, QUICK_TOKENS, QUICK_LENGTHS = 7, 48, (2, 4)


def add_parser(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser(
        "bench", help="measure whether speculation is faster here", description=__doc__, allow_abbrev=False
    )
    parser.set_defaults(handler=_bench)
    option = parser.add_argument
    option("--target", default=DEFAULT.target, help="a model's name, or the path of a GGUF file (default %(default)s)")
    option("--drafter", action="append", metavar="NAME",
           help=f"{', '.join(DRAFTERS[1:])} or model:NAME; may be repeated "
           f"(default: {', '.join(USUAL)}, as far as it has them)")  # fmt: skip
    option("--lengths", type=_lengths, metavar="LIST", help="draft lengths, such as 1-6 or 2,4,8 (default 1-6)")
    option("--prompts", metavar="FILE", help="one prompt a line, JSONL with prompt and category, or Spec-Bench's "
           "question.jsonl (default: 42 built-in prompts)")  # fmt: skip
    option("--repeats", type=int, metavar="N", help="default 3")
    option("--max-tokens", type=int, metavar="N", help=f"default {DEFAULT.max_tokens}")
    option("--temperature", type=float, default=DEFAULT.temperature, metavar="T", help="default %(default)s")
    option("--seed", type=int, default=DEFAULT.seed, help="of the runs and of their order (default %(default)s)")
    option("--chat", action=argparse.BooleanOptionalAction, default=DEFAULT.chat, help="use the chat template")
    option(
        "--threads", type=int, metavar="N", help="for Draftscope and for whom it is compared with (default: as runs)"
    )
    option("--against", action="append", default=[], choices=sorted(RIVALS),
           help="measure another program on the same prompts and file, in turns; may be repeated")  # fmt: skip
    option("--quick", action="store_true",
           help=f"{QUICK_PROMPTS} prompts, 1 repeat, {QUICK_TOKENS} tokens, draft lengths 2 and 4")  # fmt: skip
    for name, default in optional_settings().items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(default, bool):
            option(flag, action=argparse.BooleanOptionalAction, default=default, help="see the command run")
        else:
            option(flag, default=default, help="see the command run (default %(default)s)")
    for name in ("agreement", "target_call_seconds", "draft_call_seconds"):
        option(f"--{name.replace('_', '-')}", type=float, default=getattr(DEFAULT, name), help="markov: see run")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON object, and nothing else")
    output.add_argument("--markdown", action="store_true", help="print Markdown to paste into an issue")


def _bench(arguments: argparse.Namespace) -> int:
    if arguments.threads is not None:
        if arguments.threads < 1:
            raise SettingError(f"threads is {arguments.threads}; it must be at least 1")
        os.environ[THREADS_VARIABLE] = str(arguments.threads)
    settings = _settings(arguments)
    with stop_signals(), runs_bar() as progress:
        result = run_bench(settings, progress)
    if result["backend_note"]:
        print(f"note: {result['backend_note']}", file=sys.stderr)
    if arguments.json:
        print(json.dumps(result, ensure_ascii=False, allow_nan=False))
    elif arguments.markdown:
        print(markdown_report(result))
    else:
        print(text_report(result, table))
    return 1 if result["partial"] else 0


def _settings(arguments: argparse.Namespace) -> BenchSettings:
    quick = arguments.quick
    prompts: tuple[Prompt, ...] = read_prompts(arguments.prompts) if arguments.prompts else built_in_prompts()
    base = RunSpec(
        target=arguments.target,
        temperature=arguments.temperature,
        max_tokens=_given(arguments.max_tokens, QUICK_TOKENS if quick else DEFAULT.max_tokens),
        seed=arguments.seed,
        chat=arguments.chat,
        agreement=arguments.agreement,
        target_call_seconds=arguments.target_call_seconds,
        draft_call_seconds=arguments.draft_call_seconds,
        **{name: getattr(arguments, name) for name in optional_settings()},
    )
    return BenchSettings(
        base,
        one_of_each(prompts, QUICK_PROMPTS) if quick else prompts,
        prompts_source=arguments.prompts or "built in",
        drafters=tuple(dict.fromkeys(arguments.drafter)) if arguments.drafter else None,
        lengths=_given(arguments.lengths, QUICK_LENGTHS if quick else DEFAULT_LENGTHS),
        repeats=_given(arguments.repeats, 1 if quick else 3),
        rivals=tuple(dict.fromkeys(arguments.against)),
    )


def _given(value: T | None, default: T) -> T:
    return default if value is None else value


def _lengths(text: str) -> tuple[int, ...]:
    """Whole numbers from a list of numbers and ranges."""
    lengths: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last:
            raise argparse.ArgumentTypeError(f"{text!r} is no list of draft lengths; write 1-6 or 2,4,8")
        if first < 1 or last > MAX_DRAFT_LENGTH:  # before the range is made, which may have any size
            raise argparse.ArgumentTypeError(
                f"{part.strip()} was given; a draft length is from 1 to {MAX_DRAFT_LENGTH}"
            )
        lengths.update(range(first, last + 1))
    return tuple(sorted(lengths))
