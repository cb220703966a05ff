"""The threads that help with a forward pass."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

__all__ = ["Team", "team_of"]


class Team:
    """Threads that wait for something to help with, and do it without the interpreter's lock.

    A helper that comes late finds the work done and returns; nobody waits for it.

    Parameters
    ----------
    n_helpers : int

    Attributes
    ----------
    n_helpers : int
    """

    def __init__(self, n_helpers: int) -> None:
        self.n_helpers = n_helpers
        self._begin()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)  # a child has none of its parent's threads

    def call(self, function: Callable[..., None], given: tuple[Any, ...]) -> None:
        """Have every helper call `function(*given)` as soon as it is free; those that are busy for long are spared."""
        if self._n_started < self.n_helpers:
            self._start()
        for _ in range(self.n_helpers - self._calls.qsize()):
            self._calls.put((function, given))

    def _begin(self) -> None:
        self._calls: SimpleQueue[tuple[Callable[..., None], tuple[Any, ...]]] = SimpleQueue()
        self._lock = Lock()
        self._n_started = 0

    def _start(self) -> None:
        with self._lock:
            while self._n_started < self.n_helpers:
                try:
                    Thread(target=self._help, name=f"forward-{self._n_started}", daemon=True).start()
                except RuntimeError:  # no more threads are to be had: the pass goes on without
                    return
                self._n_started += 1

    def _help(self) -> None:
        calls = self._calls
        while True:
            function, given = calls.get()
            function(*given)
            del function, given  # what was called with is not kept while nothing is to do


@functools.cache
def team_of(n_threads: int) -> Team:
    """The one team of this process whose threads, with the one that calls them, are so many."""
    return Team(n_threads - 1)
