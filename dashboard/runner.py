"""Runs beside the page: one thread a run, its controls, and the registry of all runs.

The script of the page is executed anew at every click; a run is not in it. It lives here, in the
server's process, is saved to the store step by step, and belongs to the browser tab (the owner)
that started it. A run that nobody has looked at for a while stops by itself.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from functools import partial
from threading import Condition, Lock, Thread
from typing import TypeVar

from dashboard.event_log import EventLog
from dashboard.pace import Pace
from dashboard.telemetry import metrics
from engine.build import build
from engine.errors import DraftscopeError
from engine.spec import RunSpec
from engine.store import RunStore, new_run_id
from engine.values import Drafted, Event, Step

__all__ = ["LiveRun", "Registry", "TooManyRuns", "registry"]

MOST_ACTIVE = 4
"""Runs that may be under way at once, in all tabs."""

MOST_KEPT = 8
"""Finished runs whose log stays in memory; older ones are read from the store."""

IDLE_SECONDS = 180.0
"""A run whose log nobody has read for so long stops."""

GUESS_SECONDS = 0.4
"""How long a guess stands before its fate when a user goes step by step."""

Result = TypeVar("Result")
logger = logging.getLogger(__name__)


class TooManyRuns(DraftscopeError):
    """No more runs can be started now."""


class LiveRun:
    """One run in a thread of its own.

    Parameters
    ----------
    spec : RunSpec
    owner : str
        The browser tab that it belongs to.
    steps_per_second : float or None
        Pace; None goes as fast as the engine does (a simulated run: as fast as its clock says).
    paused : bool, default False
        Wait before the first step until `step` or `resume`.
    """

    def __init__(
        self, spec: RunSpec, owner: str, *, steps_per_second: float | None = None, paused: bool = False
    ) -> None:
        self.id = new_run_id()
        self.spec = spec
        self.owner = owner
        self.log = EventLog()
        self.saved = False
        self.save_error = ""
        self.notes: tuple[str, ...] = ()  # why other backends run its models than was to be expected
        self._pace = Pace(steps_per_second)
        self._changed = Condition()
        self._paused = paused
        self._stopped = False
        self._steps_asked = 0
        self._read_at = time.monotonic()
        self._thread = Thread(target=self._run, name=f"run-{self.id[:8]}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def pause(self) -> None:
        """Hold before the next step."""
        self._change(paused=True)

    def resume(self) -> None:
        """Go on."""
        self._change(paused=False)

    def step(self) -> None:
        """Do one more step, and hold."""
        with self._changed:
            self._paused = True
            self._steps_asked += 1
            self._changed.notify_all()

    def stop(self) -> None:
        """End after the step in hand."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def join(self, timeout: float | None = None) -> None:
        """Wait for the thread to end."""
        self._thread.join(timeout)

    @property
    def paused(self) -> bool:
        """Whether it holds, or will before its next step."""
        return self._paused and not self.finished

    @property
    def finished(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self.log.state == "finished"

    def since(self, cursor: int) -> str:
        """What is new in the log; reading keeps the run alive."""
        self._read_at = time.monotonic()
        return self.log.since(cursor)

    def figures_since(self, cursor: int) -> str:
        """The figures after every step from `cursor` on."""
        return self.log.figures_since(cursor)

    def _change(self, *, paused: bool) -> None:
        with self._changed:
            self._paused = paused
            self._steps_asked = 0
            self._changed.notify_all()

    def _run(self) -> None:
        try:
            self._decode()
        except DraftscopeError as failure:
            self.log.fail(str(failure))
        except Exception as failure:  # whatever happens, a run that is over says so
            logger.exception("run %s failed", self.id)
            self.log.fail(f"{type(failure).__name__}: {failure}")

    def _decode(self) -> None:
        built = build(self.spec, self.log.load)
        self.notes = built.notes
        simulated = built.loaded.clock is not None
        self.log.state = "prefill"
        recorder = metrics.recorder()
        for event in self._saved(built.events(self._held)):
            recorder.add(event)
            self.log.add(event)
            if isinstance(event, Drafted | Step):
                self._keep_pace(event, simulated=simulated)

    def _saved(self, events: Iterator[Event]) -> Iterator[Event]:
        """Pass the events on, each saved first; a store that fails ends the saving, not the run."""
        writer = self._attempt(lambda: RunStore().begin(self.spec, run_id=self.id))
        self.saved = writer is not None
        try:
            for event in events:
                if writer and self.saved:
                    self._attempt(partial(writer.add, event))
                yield event
        finally:
            if writer:
                self._attempt(writer.close)

    def _attempt(self, action: Callable[[], Result]) -> Result | None:
        try:
            return action()
        except DraftscopeError as failure:
            logger.warning("run %s is not saved: %s", self.id, failure)
            self.saved = False
            self.save_error = str(failure)
            return None

    def _held(self) -> bool:
        """Called by the engine before every step: waits while paused; True ends the run."""
        with self._changed:
            while not self._stopped and time.monotonic() - self._read_at < IDLE_SECONDS:
                if not self._paused:
                    self.log.state = "running"
                    return False
                if self._steps_asked > 0:
                    self._steps_asked -= 1
                    self.log.state = "running"
                    return False
                self.log.state = "paused"
                self._changed.wait(1.0)
        return True

    def _keep_pace(self, event: Drafted | Step, *, simulated: bool) -> None:
        with self._changed:
            if self._paused:  # step by step: the guess stands for a moment, and what follows is up to the user
                seconds = GUESS_SECONDS if isinstance(event, Drafted) and event.tokens else 0.0
            else:
                seconds = self._pace.hold(event, now=time.monotonic(), simulated=simulated)
            if seconds > 0:
                self._changed.wait_for(lambda: self._stopped, seconds)


class Registry:
    """All runs of this process, by id."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._runs: dict[str, LiveRun] = {}

    def start(
        self, spec: RunSpec, owner: str, *, steps_per_second: float | None = None, paused: bool = False
    ) -> LiveRun:
        """Start a run.

        Raises
        ------
        TooManyRuns
            If as many runs as may be are under way.
        """
        with self._lock:
            n_active = sum(not run.finished for run in self._runs.values())
            if n_active >= MOST_ACTIVE:
                raise TooManyRuns(
                    f"{n_active} runs are under way, which is as many as may be at once; "
                    "stop one of them, or wait until one ends"
                )
            run = LiveRun(spec, owner, steps_per_second=steps_per_second, paused=paused)
            self._runs[run.id] = run
            finished = [run_id for run_id, kept in self._runs.items() if kept.finished]
            for run_id in finished[: max(0, len(finished) - MOST_KEPT)]:
                del self._runs[run_id]
        run.start()
        return run

    @property
    def n_running(self) -> int:
        """Runs that are decoding now."""
        return sum(not run.finished and not run.paused for run in list(self._runs.values()))

    def get(self, run_id: str | None) -> LiveRun | None:
        """The run of that id, or None."""
        return self._runs.get(run_id or "")


registry = Registry()
"""The runs of this process; the script of the page and the routes share this one."""
