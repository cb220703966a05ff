"""`python -m engine compare`: up to four configurations beside plain decoding, and a verdict on each."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from typing import Any

from engine.bench.plan import USUAL, usable_drafters
from engine.bench.prompts import Prompt, built_in_prompts, one_of_each, read_prompts
from engine.build import build
from engine.cli.bar import loading_bar, runs_bar
from engine.cli.stop_signals import stop_signals
from engine.cli.table import table
from engine.compare.choices import MOST_CONFIGURATIONS, OF_A_CONFIGURATION, spec_from_words
from engine.compare.export import comparison_csv
from engine.compare.report import text_report
from engine.compare.run import CompareSettings, run_comparison
from engine.csv_text import check_csv, write_csv
from engine.drafter_kinds import DRAFTERS
from engine.models.backends import BACKENDS
from engine.rules import RULES
from engine.spec import RunSpec

__all__ = ["add_parser"]

DEFAULT = RunSpec(temperature=0.0, max_tokens=64)
N_PROMPTS = 7


def add_parser(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser(
        "compare", help="compare configurations with plain decoding", description=__doc__, allow_abbrev=False
    )
    parser.set_defaults(handler=_compare)
    option = parser.add_argument
    option("--target", default=DEFAULT.target, help="a model's name, or the path of a GGUF file (default %(default)s)")
    option("--drafter", action="append", metavar="NAME[:LENGTH][,SETTING=VALUE]...",
           help=f"one configuration, such as ngram:4 or eagle+ngram:3,rule=naive; {', '.join(DRAFTERS[1:])} or "
           f"model:NAME; settings: {', '.join(OF_A_CONFIGURATION)}; may be given {MOST_CONFIGURATIONS} times "
           f"(default: {', '.join(USUAL)}, as far as it has them, at draft length 4)")  # fmt: skip
    prompts = parser.add_mutually_exclusive_group()
    prompts.add_argument("--prompt", metavar="TEXT", help="one prompt")
    prompts.add_argument("--prompts", metavar="FILE", help="one prompt a line, JSONL with prompt and category, or "
                         f"Spec-Bench's question.jsonl (default: {N_PROMPTS} built-in prompts)")  # fmt: skip
    option("--repeats", type=int, default=3, metavar="N", help="default %(default)s")
    option("--max-tokens", type=int, default=DEFAULT.max_tokens, metavar="N", help="default %(default)s")
    option("--temperature", type=float, default=DEFAULT.temperature, metavar="T", help="default %(default)s")
    option("--rule", default=DEFAULT.rule, help=f"{' or '.join(RULES)} (default %(default)s)")
    option("--seed", type=int, default=DEFAULT.seed, help="of the runs and of their order (default %(default)s)")
    option("--chat", action=argparse.BooleanOptionalAction, default=DEFAULT.chat, help="use the chat template")
    option("--backend", default=DEFAULT.backend, help=f"{', '.join(BACKENDS)} (default %(default)s)")
    option(
        "--exact-rows", action=argparse.BooleanOptionalAction, default=DEFAULT.exact_rows, help="see the command run"
    )
    for name in ("agreement", "target_call_seconds", "draft_call_seconds"):
        option(f"--{name.replace('_', '-')}", type=float, default=getattr(DEFAULT, name), help="markov: see run")
    option("--predict", action="store_true",
           help="measure single calls as well, and predict the speed-up at draft lengths 0 to 16")  # fmt: skip
    option("--csv", metavar="FILE", help="write a row for every configuration; - is standard output")
    option("--json", action="store_true", help="print one JSON object, and nothing else")


def _compare(arguments: argparse.Namespace) -> int:
    if arguments.csv is not None:
        check_csv(arguments.csv)
    settings = _settings(arguments)
    with stop_signals(), runs_bar() as progress:
        result = run_comparison(settings, progress, with_costs=arguments.predict)
    if result["backend_note"]:
        print(f"note: {result['backend_note']}", file=sys.stderr)
    if arguments.csv is not None:
        write_csv(comparison_csv(result), arguments.csv)
    if arguments.json:
        print(json.dumps(result, ensure_ascii=False, allow_nan=False))
    elif arguments.csv != "-":
        print(text_report(result, table))
    return 1 if result["partial"] else 0


def _settings(arguments: argparse.Namespace) -> CompareSettings:
    base = RunSpec(
        target=arguments.target,
        temperature=arguments.temperature,
        rule=arguments.rule,
        max_tokens=arguments.max_tokens,
        seed=arguments.seed,
        chat=arguments.chat,
        agreement=arguments.agreement,
        target_call_seconds=arguments.target_call_seconds,
        draft_call_seconds=arguments.draft_call_seconds,
        backend=arguments.backend,
        exact_rows=arguments.exact_rows,
    )
    prompts: tuple[Prompt, ...]
    if arguments.prompt is not None:
        prompts, source = (Prompt("1", arguments.prompt),), "given"
    elif arguments.prompts:
        prompts, source = read_prompts(arguments.prompts), arguments.prompts
    else:
        prompts, source = one_of_each(built_in_prompts(), N_PROMPTS), "built in"
    words = arguments.drafter or _all_drafters(base, prompts[0].text)
    specs = tuple(spec_from_words(configuration, base) for configuration in words)
    return CompareSettings(specs, prompts, arguments.repeats, source)


def _all_drafters(base: RunSpec, prompt: str) -> list[str]:
    with loading_bar() as progress:
        build(replace(base, drafter="none", prompt=prompt), progress)  # a bad setting is told as itself
    return usable_drafters(replace(base, prompt=prompt))[0][:MOST_CONFIGURATIONS]
