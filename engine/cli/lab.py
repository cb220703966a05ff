"""`python -m engine lab`: is a rule lossless, what does every rule make of one run, do counts go with the law?"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from engine.cli.bar import loading_bar, progress_bar
from engine.cli.run import add_settings, interrupt, spec_of
from engine.cli.table import table
from engine.csv_text import check_csv, write_csv
from engine.errors import SettingError
from engine.figure_text import fixed
from engine.lab.cases import CASES
from engine.lab.check import statistical_check
from engine.lab.check_result import CheckedCell
from engine.lab.enumerate import LONGEST_DRAFT, PROPOSALS
from engine.lab.lossless import SmallTable, lossless
from engine.lab.small_pair import SmallPair
from engine.lab.trace import trace_csv, trace_run
from engine.lab.trace_rules import RuleOnTrace
from engine.rules import RULE_PARAMETERS, RULES
from engine.spec import RunSpec
from engine.store import RunStore

__all__ = ["add_parser"]

DEFAULT = RunSpec()
MOST_CELLS = 12


def add_parser(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser("lab", help="what a rule does to the text", description=__doc__, allow_abbrev=False)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    def action(name: str, help: str, handler: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        added: argparse.ArgumentParser = actions.add_parser(name, help=help, description=help, allow_abbrev=False)
        added.set_defaults(handler=handler)
        added.add_argument("--json", action="store_true", help="print one JSON object, and nothing else")
        return added

    _add_lossless(action("lossless", "the exact law of one step on a small pair, by enumeration", _lossless))
    trace = action("trace", "one run, a saved one or of these settings, judged by every rule", _trace)
    trace.add_argument(
        "run_id",
        metavar="ID",
        nargs="?",
        help="a saved run, judged with its own settings; without it, those given here are decoded",
    )
    trace.add_argument("--csv", metavar="FILE", help="write a row for every rule and step; - is standard output")
    add_settings(trace, prompt_needed=False)
    trace.usage = "%(prog)s ID [--csv FILE] [--json]\n       %(prog)s --prompt TEXT [SETTING]... [--csv FILE] [--json]"
    trace.epilog = "A saved run is named by its id, or the beginning of it: %(prog)s ID; `runs list` shows the ids."
    check = action("check", "many short runs, counted, against the exact law of an embedded target", _check)
    check.add_argument("--runs", type=int, default=2000, metavar="N", help="default %(default)s")
    check.add_argument(
        "--tokens", type=int, default=2, metavar="N", help="to look at in each run (default %(default)s)"
    )
    add_settings(check)


def _add_lossless(parser: argparse.ArgumentParser) -> None:
    option = parser.add_argument
    option("--case", type=int, metavar="N", help=f"a worked case, 1 to {len(CASES)}, in place of all other options")
    option("--cases", action="store_true", help="name the worked cases")
    option("--target", type=float, nargs="+", default=CASES[0].pair.target, metavar="P",
           help="its law over 2 to 5 tokens (default .5 .3 .2)")  # fmt: skip
    option("--draft", type=float, nargs="+", default=CASES[0].pair.draft, metavar="P", help="default .6 .3 .1")
    option("--draft-length", type=int, default=1, metavar="N", help=f"0 to {LONGEST_DRAFT} (default %(default)s)")
    option("--proposal", metavar="HOW", help=f"{'; '.join(PROPOSALS)} (default: as the rule wants it)")
    option("--shift", type=float, default=0.0, metavar="S", help="added to all of the target's logits (default 0)")
    option("--rule", default=DEFAULT.rule, help=f"{', '.join(RULES)} (default %(default)s)")
    for rule, names in RULE_PARAMETERS.items():
        for name in names:
            option(f"--{name.replace('_', '-')}", type=float, default=getattr(DEFAULT, name), metavar="X",
                   help=f"of the rule {rule} (default %(default)s)")  # fmt: skip


def _lossless(arguments: argparse.Namespace) -> int:
    if arguments.cases:
        print(table(("", "case", "rule"), [(str(n), case.title, case.rule) for n, case in enumerate(CASES, 1)]))
        return 0
    if arguments.case is not None:
        if not 1 <= arguments.case <= len(CASES):
            raise SettingError(f"the case is {arguments.case}; there are cases 1 to {len(CASES)}: see --cases")
        case = CASES[arguments.case - 1]
        found = lossless(case.spec, case.pair, draft_length=case.draft_length, proposal=case.proposal)
        words = f"{case.title}. {case.words}\n\n"
    else:
        if arguments.rule not in RULES:
            raise SettingError(f"the rule is {arguments.rule!r}; choose {', '.join(RULES)}")
        names = RULE_PARAMETERS.get(arguments.rule, ())
        spec = replace(DEFAULT, rule=arguments.rule, **{name: getattr(arguments, name) for name in names})
        pair = SmallPair(tuple(arguments.target), tuple(arguments.draft), arguments.shift)
        found = lossless(spec, pair, draft_length=arguments.draft_length, proposal=arguments.proposal)
        words = ""
    if arguments.json:
        print(json.dumps(found.to_dict(), allow_nan=False))
        return 0
    figures = "\n".join(f"{figure.title}: {figure.text} ({figure.detail})" for figure in found.figures)
    tables = "\n\n".join(_shown(one) for one in found.tables if one.rows)
    print(f"{words}{found.sentence}\n\n{figures}\n\n{tables}")
    return 0


def _shown(one: SmallTable) -> str:
    return f"{one.title}\n{table(one.head, one.rows, right=set(one.head[1:]))}"


def _trace(arguments: argparse.Namespace) -> int:
    if arguments.csv == "-" and arguments.json:
        raise SettingError("--json and --csv - both want standard output; give --csv a FILE, or drop one of them")
    if arguments.csv is not None:
        check_csv(arguments.csv)
    ids = None
    if arguments.run_id:
        if given := _settings_given(arguments):
            raise SettingError(
                f"a saved run is judged with its own settings, and {', '.join(given)} came with its id; "
                "leave that out, or leave the id out to decode such a run"
            )
        run = RunStore().get(arguments.run_id)
        spec, ids = run.spec, run.record["ids"]
    elif arguments.prompt is None and arguments.prompt_file is None:
        raise SettingError("there is nothing to judge; give the id of a saved run, or --prompt and other settings")
    else:
        spec = spec_of(arguments)
    with loading_bar() as loading, progress_bar("judging") as progress, interrupt() as cancelled:
        found = trace_run(spec, ids, progress=progress, loading=loading, cancelled=cancelled)
    if arguments.csv is not None:
        write_csv(trace_csv(found), arguments.csv)
    if arguments.json:
        print(json.dumps(found.to_dict(), ensure_ascii=False, allow_nan=False))
    elif arguments.csv != "-":
        print(f"{found.about}\n")
        head = ("rule", "", "accepted", "of drafted", "tokens per step", "expected", "mean bias", "largest bias")
        print(table(head, [_rule_row(rule) for rule in found.rules], right=set(head[2:])))
        print("".join(f"\n{note}" for note in found.notes), end="\n" if found.notes else "")
    return 1 if found.partial else 0


def _settings_given(arguments: argparse.Namespace) -> list[str]:
    """The options of `add_settings` that are other than by default."""
    values = {**{field.name: getattr(DEFAULT, field.name) for field in fields(RunSpec)}, "prompt_file": None}
    return [
        f"--{name.replace('_', '-')}"
        for name, default in values.items()
        if getattr(arguments, name) not in (None, [], default)
    ]


def _rule_row(rule: RuleOnTrace) -> tuple[str, ...]:
    numbers = (rule.tokens_per_step, rule.expected_tokens_per_step, rule.mean_bias, rule.largest_bias)
    return (
        f"{rule.name} (the run's)" if rule.own else rule.name,
        "lossless" if rule.lossless else "lossy",
        str(rule.accepted),
        str(rule.drafted),
        *(fixed(number, 4) for number in numbers),
    )


def _check(arguments: argparse.Namespace) -> int:
    spec = spec_of(arguments)
    with loading_bar() as loading, progress_bar("decoding", unit="run") as progress, interrupt() as cancelled:
        found = statistical_check(
            spec,
            n_runs=arguments.runs,
            n_tokens=arguments.tokens,
            progress=progress,
            loading=loading,
            cancelled=cancelled,
        )
    code = 1 if found.partial else 0
    if arguments.json:
        print(json.dumps(found.to_dict(), ensure_ascii=False, allow_nan=False))
        return code
    print(f"{found.sentence}\n{found.about}\n")
    cells = [*found.cells[: MOST_CELLS - 1], *found.cells[-1:]] if len(found.cells) > MOST_CELLS else found.cells
    print(table(("begins with", "expected", "observed"), map(_cell_row, cells), right={"expected", "observed"}))
    return code


def _cell_row(cell: CheckedCell) -> tuple[str, ...]:
    return (cell.text, f"{cell.expected:.1f}", str(cell.observed))
