"""How long to hold an event before the next one, so that people can watch."""

from __future__ import annotations

from engine.values import Drafted, Step

__all__ = ["Pace"]


class Pace:
    """Holds events to a number of steps a second, or to a simulated clock, or not at all.

    Half of a step's time lies between the guess and its fate. Time that the engine itself took counts,
    so the steps keep their rhythm as long as the engine is fast enough.

    Parameters
    ----------
    steps_per_second : float or None
        None: as fast as the engine goes, and a simulated run as fast as its clock says.

    Examples
    --------
    >>> pace = Pace(steps_per_second=10)
    >>> step = Step(0, 1, (), (), 0.0, 0.0, 0.0, 0.0)
    >>> round(pace.hold(step, now=5.0, simulated=False), 3), round(pace.hold(step, now=5.12, simulated=False), 3)
    (0.1, 0.08)
    """

    def __init__(self, steps_per_second: float | None = None) -> None:
        self._period = None if steps_per_second is None else 1 / steps_per_second
        self._due: float | None = None

    def hold(self, event: Drafted | Step, *, now: float, simulated: bool) -> float:
        """Seconds to wait after `event`, which happened at `now` (seconds, any origin)."""
        if self._period is None:
            return _own_seconds(event) if simulated else 0.0
        due = now if self._due is None else self._due
        if isinstance(event, Drafted):
            return max(0.0, due + self._period / 2 - now) if event.tokens else 0.0
        self._due = max(due + self._period, now)
        return self._due - now


def _own_seconds(event: Drafted | Step) -> float:
    if isinstance(event, Drafted):
        return event.draft_seconds
    return event.verify_seconds + event.overhead_seconds
