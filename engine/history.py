"""Which of the kept runs to show, and in which order: for the command line and the page alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from engine.stored_run import StoredRun

__all__ = ["SORTS", "RunFilter", "sort_runs"]


@dataclass(frozen=True, slots=True)
class RunFilter:
    """What a run must be like to be shown; what is empty asks for nothing.

    Attributes
    ----------
    targets, drafters, rules : tuple of str
        It has one of them, as its settings name it.
    tags : tuple of str
        It has all of them, whatever their capitals.
    since, until : date or None
        It began on that day, in UTC, or later; or earlier.
    words : str
        Each of these words is in its prompt, its note, its tags or its id, whatever their capitals.

    Examples
    --------
    >>> from engine.spec import RunSpec
    >>> run = StoredRun("a1", "2026-11-29T10:00:00+00:00", "finished", RunSpec(prompt="The draft"), {}, {}, ("fast",))
    >>> RunFilter(words="DRAFT fast").keeps(run), RunFilter(since=date(2026, 11, 30)).keeps(run)
    (True, False)
    """

    targets: tuple[str, ...] = ()
    drafters: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    since: date | None = None
    until: date | None = None
    words: str = ""

    def keeps(self, run: StoredRun) -> bool:
        """Whether the run is to be shown."""
        day = datetime.fromisoformat(run.created_at).date()
        tags = {tag.casefold() for tag in run.tags}
        text = "\n".join((run.spec.prompt, run.note, *run.tags, run.id)).casefold()
        return (
            (not self.targets or run.spec.target in self.targets)
            and (not self.drafters or run.spec.drafter in self.drafters)
            and (not self.rules or run.spec.rule in self.rules)
            and all(tag.casefold() in tags for tag in self.tags)
            and (self.since is None or day >= self.since)
            and (self.until is None or day <= self.until)
            and all(word in text for word in self.words.casefold().split())
        )


def _figure(name: str) -> Callable[[StoredRun], Any]:
    return lambda run: run.record.get(name)


SORTS: dict[str, Callable[[StoredRun], Any]] = {
    "date": lambda run: run.created_at,
    "target": lambda run: run.spec.target,
    "drafter": lambda run: run.spec.drafter,
    "draft length": lambda run: run.spec.draft_length,
    "tokens": _figure("tokens_generated"),
    "acceptance rate": _figure("acceptance_rate"),
    "per-token acceptance": _figure("per_token_acceptance"),
    "tokens per step": _figure("tokens_per_step"),
    "tokens per second": _figure("tokens_per_second"),
    "total time": _figure("total_time"),
}
"""What runs can be ordered by."""


def sort_runs(runs: Iterable[StoredRun], by: str = "date", *, rising: bool = False) -> list[StoredRun]:
    """The runs in order, the largest first unless `rising`; those without the figure come last either way.

    Runs that are equal in it keep the order that they came in.

    Examples
    --------
    >>> sort_runs([], "tokens per step")
    []
    """
    value = SORTS[by]
    every = list(runs)
    known = [run for run in every if value(run) is not None]
    return sorted(known, key=value, reverse=not rising) + [run for run in every if value(run) is None]
