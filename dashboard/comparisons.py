"""Comparisons beside the page: one at a time, since two would disturb each other, and their lanes.

A lane shows the latest run of one configuration. The page fetches what is new in all lanes from a
cursor for each (`routes.py`); a lane whose run has changed is told anew from its beginning.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from uuid import uuid4

from dashboard.event_log import EventLog
from dashboard.work import Work
from engine.bench.costs import Costs, not_predicted
from engine.bench.plan import Turn
from engine.compare.run import CompareSettings, costs_of, plan_of, run_comparison
from engine.errors import DraftscopeError, SettingError
from engine.lab.race import race
from engine.values import Event, Started

__all__ = ["Busy", "Comparisons", "Lane", "LaneRun", "LiveComparison", "LiveCosts", "LiveRace", "comparisons"]

MOST_KEPT = 8
"""Finished comparisons that stay in memory."""

STOPPED = "stopped before anything was measured"


class Busy(DraftscopeError):
    """Something else is being measured."""


@dataclass(frozen=True, slots=True)
class LaneRun:
    """One run in a lane: which one it is, counted from 1, of which prompt and repeat, and its log."""

    number: int = 0
    prompt: str = ""
    repeat: int = 0
    log: EventLog = field(default_factory=lambda: EventLog(replayed=False))


class Lane:
    """The latest run of one configuration.

    Attributes
    ----------
    name : str
    shown : LaneRun
        Replaced as a whole when a run begins, so that a reader never sees parts of two.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.shown = LaneRun()

    def begin(self, turn: Turn) -> None:
        """Show the run of `turn` from now on."""
        run = LaneRun(self.shown.number + 1, turn.prompt.identity, turn.repeat + 1)
        run.log.state = "running"
        self.shown = run

    def since(self, number: int, cursor: int) -> str:
        """One JSON object: what is new since `cursor` in the run of that number, or all of a later run."""
        run = self.shown
        head = {"name": self.name, "run": run.number, "prompt": run.prompt, "repeat": run.repeat}
        return f'{json.dumps(head)[:-1]},"log":{run.log.since(cursor if number == run.number else 0)}}}'


class LiveComparison:
    """One comparison in a thread of its own.

    Parameters
    ----------
    settings : CompareSettings
    owner : str
        The browser tab that it belongs to.

    Raises
    ------
    DraftscopeError
        If the settings cannot be used.
    """

    def __init__(self, settings: CompareSettings, owner: str) -> None:
        self.id = uuid4().hex
        self.settings = settings
        self.owner = owner
        self.plan = plan_of(settings)
        self.lanes = [Lane(way.name) for way in self.plan.configurations]
        self.work: Work[dict[str, Any]] = Work(self._compare, f"comparison-{self.id[:8]}", stopped=STOPPED)

    @property
    def result(self) -> dict[str, Any] | None:
        """What was found, once it has ended; partial if it was stopped."""
        return self.work.result

    def since(self, cursors: Sequence[tuple[int, int]]) -> str:
        """One JSON object: how far it is, and what is new in every lane since its (run, cursor)."""
        self.work.touch()
        work = self.work
        finished = work.finished  # before the lanes are read, so that a finished answer misses nothing
        head = {
            "state": "finished" if finished else "running",
            "doing": "measuring" if self._measures else work.doing,
            "done": work.done,
            "total": work.total or self.plan.n_turns,
            "repeats": self.plan.repeats,
            "error": work.error,
            "partial": bool(work.result and work.result["partial"]),
        }
        given = [*cursors, *[(0, 0)] * len(self.lanes)]
        lanes = ",".join(lane.since(*cursor) for lane, cursor in zip(self.lanes, given, strict=False))
        return f'{json.dumps(head)[:-1]},"lanes":[{lanes}]}}'

    @property
    def _measures(self) -> bool:
        """Whether a measured run has begun; nothing of the warm-up comes into a lane."""
        return any(lane.shown.number for lane in self.lanes)

    def _compare(self, work: Work[dict[str, Any]]) -> dict[str, Any]:
        return run_comparison(self.settings, work.progress, seen=self._seen, cancelled=work.cancelled)

    def _seen(self, turn: Turn, event: Event) -> None:
        lane = self.lanes[self.plan.configurations.index(turn.configuration)]
        if isinstance(event, Started):
            lane.begin(turn)
        lane.shown.log.add(event)


class LiveCosts:
    """Measuring the single calls of one target and drafter, for a what-if.

    Attributes
    ----------
    work : Work
        Its result is the costs.
    """

    def __init__(self, settings: CompareSettings, drafter: str) -> None:
        self.work: Work[Costs] = Work(self._measure, "costs", stopped=STOPPED)
        self._settings = settings
        self._drafter = drafter

    def _measure(self, work: Work[Costs]) -> Costs:
        costs = costs_of(
            self._settings,
            [self._drafter],
            progress=lambda done, total: work.progress("measuring single calls", done, total),
            cancelled=work.cancelled,
        )
        if costs is None:
            raise SettingError(not_predicted(self._settings.specs[0]) or "a call of this target takes no time")
        return costs


class LiveRace:
    """The race of the length policies, in a thread of its own.

    Attributes
    ----------
    words : str
        What is raced, for a reader.
    work : Work
        Its result is what `engine.lab.race` gives.
    """

    def __init__(self, settings: CompareSettings, words: str) -> None:
        self.words = words
        self.work: Work[dict[str, Any]] = Work(self._race, "race", stopped=STOPPED)
        self._settings = settings

    def _race(self, work: Work[dict[str, Any]]) -> dict[str, Any]:
        return race(self._settings, work.progress, cancelled=work.cancelled)


class Comparisons:
    """All comparisons, races and cost measurements of this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._comparisons: dict[str, LiveComparison] = {}
        self._costs: dict[object, LiveCosts] = {}
        self._races: dict[str, LiveRace] = {}

    def start(self, settings: CompareSettings, owner: str) -> LiveComparison:
        """Start a comparison.

        Raises
        ------
        Busy
            If another measurement is under way.
        DraftscopeError
            If the settings cannot be used.
        """
        comparison = LiveComparison(settings, owner)
        with self._lock:
            self._check_free()
            self._comparisons[comparison.id] = comparison
            finished = [key for key, kept in self._comparisons.items() if kept.work.finished]
            for key in finished[: max(0, len(finished) - MOST_KEPT)]:
                del self._comparisons[key]
            comparison.work.start()
        return comparison

    def get(self, comparison_id: str | None) -> LiveComparison | None:
        """The comparison of that id, or None."""
        return self._comparisons.get(comparison_id or "")

    def start_costs(self, key: object, settings: CompareSettings, drafter: str) -> LiveCosts:
        """Measure costs and keep them under `key`.

        Raises
        ------
        Busy
            If another measurement is under way.
        """
        with self._lock:
            self._check_free()
            costs = LiveCosts(settings, drafter)
            self._costs[key] = costs
            costs.work.start()
        return costs

    def costs(self, key: object) -> LiveCosts | None:
        """The latest measurement under `key`."""
        return self._costs.get(key)

    def start_race(self, owner: str, settings: CompareSettings, words: str) -> LiveRace:
        """Race the length policies, in place of the tab's last race.

        Raises
        ------
        Busy
            If another measurement is under way.
        """
        with self._lock:
            self._check_free()
            started = self._races[owner] = LiveRace(settings, words)
            for tab in list(self._races)[: max(0, len(self._races) - MOST_KEPT)]:
                del self._races[tab]
            started.work.start()
        return started

    def race(self, owner: str) -> LiveRace | None:
        """The tab's last race."""
        return self._races.get(owner)

    @property
    def measuring(self) -> bool:
        """Whether a measurement is under way."""
        return any(not one.work.finished for one in self._all())

    def stop_all(self, timeout: float | None = None) -> None:
        """Stop whatever is under way, wait for it, and forget all."""
        for one in self._all():
            one.work.stop()
        for one in self._all():
            one.work.join(timeout)
        self._comparisons.clear()
        self._costs.clear()
        self._races.clear()

    def _all(self) -> list[LiveComparison | LiveCosts | LiveRace]:
        return [*self._comparisons.values(), *self._costs.values(), *self._races.values()]

    def _check_free(self) -> None:
        if self.measuring:
            raise Busy("another measurement is under way, and two would spoil each other; wait for it, or stop it")


comparisons = Comparisons()
"""The comparisons of this process; the script of the page and the routes share this one."""
