"""Long work beside the page: one thread, what it is doing, how far it is, and a way to stop it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Generic, TypeVar

from engine.errors import DraftscopeError
from engine.stopping import Stopped

__all__ = ["Work"]

IDLE_SECONDS = 600.0
"""Of looking away, until work stops that need not be done for nobody."""

Result = TypeVar("Result")
logger = logging.getLogger(__name__)


class Work(Generic[Result]):
    """One piece of work in a thread of its own.

    Parameters
    ----------
    action : callable
        Given the work itself, whose `progress` it may call and whose `cancelled` it asks; it
        returns the result, or raises `Stopped` if there is none.
    name : str
        Of the thread.
    stopped : str, optional
        The error where it was stopped and has no result; none by default.
    idle_seconds : float, default 600
        Work that nobody has asked about for so long stops.

    Attributes
    ----------
    doing : str
    done, total : int
        How far it is; total is 0 until it is known.
    result : object or None
    error : str
        What went wrong, in words for a user.
    """

    def __init__(
        self,
        action: Callable[[Work[Result]], Result],
        name: str,
        *,
        stopped: str = "",
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self.doing = "starting"
        self.done = self.total = 0
        self.result: Result | None = None
        self.error = ""
        self._stopped = Event()
        self._stopped_words = stopped
        self._idle_seconds = idle_seconds
        self._asked_at = time.monotonic()
        self._action = action
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._finished = False

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end; what it has is kept."""
        self._stopped.set()

    def join(self, timeout: float | None = None) -> None:
        """Wait for the thread to end."""
        self._thread.join(timeout)

    def touch(self) -> None:
        """Say that somebody is looking."""
        self._asked_at = time.monotonic()

    def cancelled(self) -> bool:
        """Whether it is to end: it was stopped, or nobody has looked for long."""
        return self._stopped.is_set() or time.monotonic() - self._asked_at > self._idle_seconds

    def progress(self, doing: str, done: int, total: int) -> None:
        """Tell how far it is."""
        self.doing, self.done, self.total = doing, done, total

    @property
    def share(self) -> float:
        """How much of it is done, 0 to 1."""
        return min(1.0, self.done / self.total) if self.total else 0.0

    @property
    def finished(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self._finished

    def _run(self) -> None:
        try:
            self.result = self._action(self)
        except Stopped:
            self.error = self._stopped_words
        except DraftscopeError as failure:
            self.error = str(failure)
        except Exception as failure:  # whatever happens, work that is over says so
            logger.exception("%s failed", self._thread.name)
            self.error = f"{type(failure).__name__}: {failure}"
        finally:
            self._finished = True
