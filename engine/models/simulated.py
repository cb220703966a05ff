"""A clock that only moves when a model is called: made-up prices for models that cost nothing."""

from __future__ import annotations

from engine.errors import SettingError

__all__ = ["SimulatedClock", "check_cost"]

DEAREST_CALL = 3600.0  # seconds
_TICKS_PER_SECOND = 10**12  # whole picoseconds, so that a sum of costs has no rounding noise


class SimulatedClock:
    """Seconds that pass only by `advance`; nothing sleeps.

    Examples
    --------
    >>> clock = SimulatedClock()
    >>> for _ in range(3):
    ...     clock.advance(0.1)
    >>> clock()
    0.3
    """

    simulated = True  # `decode` marks the run by it

    def __init__(self) -> None:
        self._ticks = 0

    def __call__(self) -> float:
        """Seconds since the clock was made."""
        return self._ticks / _TICKS_PER_SECOND

    def advance(self, seconds: float) -> None:
        """Move on by `seconds`, to the nearest picosecond.

        Raises
        ------
        SettingError
            If `seconds` is negative or not finite.
        """
        check_cost("seconds", seconds)
        self._ticks += round(seconds * _TICKS_PER_SECOND)


def check_cost(name: str, seconds: float) -> None:
    """Refuse a price that is not from 0 to `DEAREST_CALL` seconds, with a `SettingError` that names it."""
    if not 0 <= seconds <= DEAREST_CALL:
        raise SettingError(f"{name} is {seconds}; it must be from 0 to {DEAREST_CALL:.0f} seconds")
