"""A clock that runs only while the engine works, not while its caller holds the events."""

from __future__ import annotations

from engine.models.base import Clock

__all__ = ["Stopwatch"]


class Stopwatch:
    """Laps of a clock, with pauses left out.

    Examples
    --------
    >>> times = iter([0.0, 2.0, 10.0, 11.0, 15.0])
    >>> watch = Stopwatch(lambda: next(times))
    >>> watch.lap()
    2.0
    >>> watch.resume()
    >>> watch.lap(), watch.total
    (1.0, 3.0)
    >>> watch.aside(), watch.total
    (4.0, 3.0)
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = clock()
        self.total = 0.0

    def lap(self) -> float:
        """Seconds since the last lap or `resume`, which are added to `total`."""
        now = self._clock()
        seconds, self._since = now - self._since, now
        self.total += seconds
        return seconds

    def aside(self) -> float:
        """Seconds since the last lap or `resume`, which are left out of `total`."""
        now = self._clock()
        seconds, self._since = now - self._since, now
        return seconds

    def resume(self) -> None:
        """Leave out the time since the last lap."""
        self._since = self._clock()
