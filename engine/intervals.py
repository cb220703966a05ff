"""How sure a share is that was counted: Wilson's interval.

After Wilson (1927), *Probable inference, the law of succession, and statistical inference*, Journal of
the American Statistical Association 22, 209-212; formula 4 of Brown, Cai, DasGupta (2001), *Interval
estimation for a binomial proportion*, Statistical Science 16, 101-133. Without continuity correction.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

__all__ = ["Z_95", "Rate", "rate"]

Z_95 = 1.959963984540054
"""The 0.975 quantile of the normal law."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A share with its 95 % interval; all three are None where nothing was tried."""

    successes: int
    trials: int
    value: float | None
    low: float | None
    high: float | None


def rate(successes: int, trials: int) -> Rate:
    """The share of `successes` in `trials`, with Wilson's 95 % interval.

    It takes trials as independent. Neighbouring tokens are not quite, so the true uncertainty is
    somewhat larger.

    Raises
    ------
    ValueError
        If there are more successes than trials, or fewer than none.

    Examples
    --------
    >>> share = rate(15, 148)
    >>> f"{share.value:.4f}, {share.low:.4f} to {share.high:.4f}"
    '0.1014, 0.0624 to 0.1605'
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes of {trials} trials; expected 0 to {trials}")
    if trials == 0:
        return Rate(0, 0, None, None, None)
    share = successes / trials
    z2 = Z_95 * Z_95
    middle = (successes + z2 / 2) / (trials + z2)
    half = Z_95 * sqrt(trials) / (trials + z2) * sqrt(share * (1 - share) + z2 / (4 * trials))
    return Rate(successes, trials, share, max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half)))
