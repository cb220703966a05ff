"""`python -m engine runs list`: which runs, and in which order."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import date

from engine.errors import SettingError
from engine.history import SORTS, RunFilter, sort_runs
from engine.stored_run import StoredRun

__all__ = ["add_filters", "chosen_runs"]


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    option = parser.add_argument
    option("words", nargs="*", metavar="WORD", help="must be in the prompt, the note, the tags or the id")
    option("--target", action="append", default=[], metavar="NAME", help="of this target; may be repeated")
    option("--drafter", action="append", default=[], metavar="NAME", help="of this drafter; may be repeated")
    option("--rule", action="append", default=[], metavar="NAME", help="of this rule; may be repeated")
    option("--tag", action="append", default=[], metavar="TAG", help="with this tag; repeated: with all of them")
    option("--since", metavar="DATE", help="begun on this day (UTC) or later, as 2026-11-29")
    option("--until", metavar="DATE", help="begun on this day (UTC) or earlier")
    option("--sort", choices=tuple(SORTS), default="date", metavar="WHAT",
           help=f"order, the largest first: {', '.join(SORTS)} (default %(default)s)")  # fmt: skip
    option("--rising", action="store_true", help="the smallest first")


def chosen_runs(runs: Sequence[StoredRun], arguments: argparse.Namespace) -> list[StoredRun]:
    """The runs that the options ask for, in their order.

    Raises
    ------
    SettingError
        If a date is none.
    """
    chosen = RunFilter(
        targets=tuple(arguments.target),
        drafters=tuple(arguments.drafter),
        rules=tuple(arguments.rule),
        tags=tuple(arguments.tag),
        since=_day("--since", arguments.since),
        until=_day("--until", arguments.until),
        words=" ".join(arguments.words),
    )
    return sort_runs(filter(chosen.keeps, runs), arguments.sort, rising=arguments.rising)


def _day(option: str, text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise SettingError(f"{option} is {text!r}; give a day as year-month-day, such as 2026-11-29") from None
