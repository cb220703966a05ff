"""The lab's work beside the page: one piece of each kind for every browser tab, so that the page stays at hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any, Literal

from dashboard.work import Work
from engine.errors import DraftscopeError
from engine.spec import RunSpec

__all__ = ["Kind", "LabWork", "LabWorks", "TooMuchWork", "lab_works"]

Kind = Literal["check", "trace"]

MOST_AT_ONCE = 3
"""Pieces of work under way in this process."""

MOST_KEPT = 16
"""Pieces of work that stay in memory when they have ended."""


class TooMuchWork(DraftscopeError):
    """Others use the lab just now."""


@dataclass(frozen=True, slots=True)
class LabWork:
    """A piece of work and what it is about.

    Attributes
    ----------
    spec : RunSpec
    words : str
        What it is about, for a reader.
    work : Work
        Its result is what the engine found.
    """

    spec: RunSpec
    words: str
    work: Work[Any]


class LabWorks:
    """All of the lab's work of this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._works: dict[tuple[str, Kind], LabWork] = {}

    def start(
        self, owner: str, kind: Kind, spec: RunSpec, action: Callable[[Work[Any]], Any], words: str = ""
    ) -> LabWork:
        """Start a piece of work in place of the tab's last one of that kind.

        Parameters
        ----------
        owner : str
            The browser tab.
        kind : {"check", "trace"}
        spec : RunSpec
        action : callable
            Given the `Work`; see there.
        words : str

        Raises
        ------
        TooMuchWork
            If this one or too many others are under way.
        """
        with self._lock:
            under_way = [key for key, one in self._works.items() if not one.work.finished]
            if (owner, kind) in under_way:
                raise TooMuchWork("this is under way already; wait for it, or stop it")
            if len(under_way) >= MOST_AT_ONCE:
                raise TooMuchWork(f"{MOST_AT_ONCE} pieces of work are under way on this server; wait for one to end")
            finished = [key for key, one in self._works.items() if one.work.finished]
            for key in finished[: max(0, len(finished) - MOST_KEPT + 1)]:
                del self._works[key]
            self._works.pop((owner, kind), None)
            started = LabWork(spec, words, Work(action, f"lab-{kind}", stopped="stopped before anything was found"))
            self._works[owner, kind] = started
            started.work.start()
        return started

    def get(self, owner: str, kind: Kind) -> LabWork | None:
        """The tab's last piece of work of that kind."""
        return self._works.get((owner, kind))

    @property
    def working(self) -> bool:
        """Whether anything is under way."""
        return any(not one.work.finished for one in list(self._works.values()))

    def stop_all(self, timeout: float | None = None) -> None:
        """Stop whatever is under way, wait for it, and forget all."""
        for one in list(self._works.values()):
            one.work.stop()
        for one in list(self._works.values()):
            one.work.join(timeout)
        self._works.clear()


lab_works = LabWorks()
"""The lab's work of this process."""
