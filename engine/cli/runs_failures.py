"""`python -m engine runs failures`: where the drafts of a kept run fail."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from engine.cli.runs_label import AddAction
from engine.cli.table import table
from engine.failures import failures
from engine.figure_text import fixed
from engine.intervals import Rate
from engine.store import RunStore

__all__ = ["add_actions"]

MOST_SHOWN = 15


def add_actions(action: AddAction) -> None:
    """Add the action to the parser of `runs`."""
    parser = action("failures", "tell where the drafts of a run fail", _failures)
    parser.add_argument("run_id", metavar="ID", help="a run's id, or its beginning")


def _failures(arguments: argparse.Namespace) -> int:
    store = RunStore()
    run = store.get(arguments.run_id)
    found = failures(store.events(run.id, exact=True))
    if not found.kinds:
        print(f"the run {run.id} drafted nothing: {run.record['speculation']}")
        return 0
    kinds = ((row.kind, str(row.drafted), *_cells(row.acceptance)) for row in found.kinds)
    _print("acceptance by kind of token", ("kind", "drafted", "tested", "accepted", "share", "95 %"), kinds)
    places = ((str(row.position), *_cells(row.conditional), *_cells(row.survival)[2:]) for row in found.positions)
    _print("acceptance by position: of the drafts that got there, and of those that drafted it (survival)",
           ("position", "tested", "accepted", "share", "95 %", "survival", "95 % of it"), places)  # fmt: skip
    proposals = (
        (
            repr(row.text),
            row.kind,
            f"{row.rejected} of {row.tested}",
            fixed(row.draft_prob, 3),
            fixed(row.target_prob, 3),
            ", ".join(f"{other.text!r} x {other.times}" for other in row.instead),
        )
        for row in found.proposals[:MOST_SHOWN]
    )
    _print("most refused proposals", ("proposal", "kind", "refused", "draft", "target", "said instead"), proposals)
    return 0


def _cells(rate: Rate) -> tuple[str, str, str, str]:
    interval = f"{fixed(rate.low, 3)} to {fixed(rate.high, 3)}" if rate.trials else "n/a"
    return str(rate.trials), str(rate.successes), fixed(rate.value, 3), interval


def _print(title: str, head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    words = frozenset(head) - {"kind", "proposal", "said instead", "95 %", "95 % of it"}
    print(f"{title}\n{table(head, rows, right=words)}\n")
