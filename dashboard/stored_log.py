"""The log of a run that is not in memory: one of an earlier day, or one that another process decodes."""

from __future__ import annotations

from functools import lru_cache
from threading import Lock

from dashboard.event_log import EventLog
from engine.store import RunStore

__all__ = ["stored_log"]


class _StoredLog:
    """A log that is filled from the store; of a run that goes on, each reading takes only what is new."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._lock = Lock()
        self._n_events = 0
        self.log = EventLog()

    def catch_up(self, *, running: bool) -> None:
        with self._lock:
            if self.log.state == "finished":
                return
            for event in RunStore().events(self._run_id, start=self._n_events, exact=True):
                self.log.add(event)
                self._n_events += 1
            self.log.state = "running" if running else "finished"


_kept = lru_cache(maxsize=4)(_StoredLog)


def stored_log(run_id: str) -> EventLog:
    """The log of the run with exactly that id.

    Raises
    ------
    StoreError
        If there is no such run, or the store cannot be read.
    """
    run = RunStore().get(run_id, exact=True)
    kept = _kept(run.id)
    kept.catch_up(running=run.state == "running")
    return kept.log
