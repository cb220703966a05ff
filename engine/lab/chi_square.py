"""Pearson's chi-square test of counts against expected counts, and its p-value as a finite sum.

After Pearson, *On the criterion that a given system of deviations ... can be reasonably supposed to have
arisen from random sampling*, Philosophical Magazine 50 (1900), 157-175. The upper tail of the chi-square law
is a finite sum for whole degrees of freedom: Abramowitz and Stegun, *Handbook of Mathematical Functions*
(1964), 26.4.4 and 26.4.5. Its terms are all positive, so that nothing cancels.

Cells that are expected too seldom are put together before (`engine.lab.exact_law`), for the statistic follows
the chi-square law only where none is: Cochran, *Some methods for strengthening the common chi-square tests*,
Biometrics 10 (1954), 417-451.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["LEAST_EXPECTED", "ChiSquare", "chi_square", "upper_tail"]

LEAST_EXPECTED = 5.0
"""A cell that is expected less often is put together with others."""


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """The outcome of a test.

    Attributes
    ----------
    statistic : float
        The sum of (observed - expected)^2 / expected; infinite if something impossible was seen.
    degrees : int
        Of freedom: cells - 1.
    p_value : float
        How often counts of the expected law would be at least so far from it.
    """

    statistic: float
    degrees: int
    p_value: float


def chi_square(observed: Sequence[int], expected: Sequence[float]) -> ChiSquare:
    """Hold counts against expected counts.

    Parameters
    ----------
    observed : sequence of int
    expected : sequence of float
        As many, not negative, with the same sum.

    Raises
    ------
    ValueError
        If there are not as many of both, there are none, or one is negative.

    Examples
    --------
    >>> test = chi_square([16, 18, 16, 14, 12, 12], [88 / 6] * 6)
    >>> round(test.statistic, 4), test.degrees, round(test.p_value, 4)
    (2.0, 5, 0.8491)
    >>> chi_square([9, 1], [10.0, 0.0]).p_value
    0.0
    """
    if len(observed) != len(expected) or not expected:
        raise ValueError(f"{len(observed)} counts and {len(expected)} expected ones; the same number is needed")
    if min(observed) < 0 or min(expected) < 0:
        raise ValueError("a count is negative")
    statistic = 0.0
    for count, mean in zip(observed, expected, strict=True):
        if mean > 0:
            statistic += (count - mean) ** 2 / mean
        elif count:
            statistic = math.inf
    degrees = sum(mean > 0 for mean in expected) - 1
    return ChiSquare(statistic, degrees, upper_tail(statistic, degrees))


def upper_tail(statistic: float, degrees: int) -> float:
    """The probability that a chi-square variable is at least `statistic`.

    Parameters
    ----------
    statistic : float
        Not negative.
    degrees : int
        Of freedom, at least 0. With 0 the variable is 0 for sure.

    Examples
    --------
    >>> round(upper_tail(18.307, 10), 5), round(upper_tail(3.841, 1), 4)
    (0.05, 0.05)
    """
    if statistic < 0 or degrees < 0:
        raise ValueError(f"the statistic is {statistic}, with {degrees} degrees of freedom; neither may be negative")
    if statistic == 0:
        return 1.0
    if degrees == 0 or math.isinf(statistic):
        return 0.0
    half, log_half = statistic / 2, math.log(statistic / 2)
    odd = degrees % 2
    # even, 26.4.5: powers 0, 1, ... of half; odd, 26.4.4: powers 1/2, 3/2, ... and the tail of the normal law
    powers = [place + odd / 2 for place in range(degrees // 2)]
    terms = [math.exp(power * log_half - half - math.lgamma(power + 1)) for power in powers]
    start = math.erfc(math.sqrt(half)) if odd else 0.0
    return min(1.0, math.fsum([start, *terms]))
