"""Exponentials and their sum in whole numbers: fixed point and two small tables, no `exp` and no `log`.

A row of scores becomes whole numbers in one multiplication, and from there on there are only table
look-ups, shifts and sums:

- The depth of a score x below the best one m is d = (m - x) / T * log2(e), rounded to a multiple of
  2**-12: a whole number, whose upper bits are the octaves n and whose lower 12 bits are the rest f.
- exp(-(m - x) / T) = 2**-n * 2**-f. The second factor comes from a table of 4096 whole numbers in
  units of 2**-31; the first is a shift by n.
- The base-2 logarithm of a sum is the place of its highest bit, and a table with 4096 intervals for
  the bits behind it.

**Error bound.** Let a(i) = exp(-(m - x(i)) / T), so that the largest one is 1, and w(i) the whole
number in units of 2**-31. For float32 scores the depth carries at most five roundings of relative
size 2**-24 (difference, quotient, product, and the two constants). As anything deeper than 32
octaves, 2**17 steps, becomes 0 anyway, that is less than 0.04 steps; with the rounding to a step the
depth is off by less than 0.54 steps of 2**-12 octaves, and the exponential by a factor of less than
exp(0.54 * 2**-12 * ln 2) < 1 + 9.2e-5. The table rounds by half a unit, the shift drops less than
one. Together

    |w(i) - a(i)| <= RELATIVE * a(i) + UNIT,  RELATIVE = 9.2e-5, UNIT = 2**-30.

For a row of V scores, with A = sum of a(i) >= 1, that is at most (RELATIVE + V * UNIT) * A in sum.
Therefore, with B(V) = RELATIVE + V * UNIT (`error_bound`):

- the total-variation distance of the law w / sum(w) from a / A is at most B(V), because
  TV(w / W, a / A) <= (|w - a| in sum + |W - A|) / (2 A);
- the log-sum-exp is off by at most -ln(1 - B(V)) + 1e-8, the last part for the logarithm's table.

It is a law like any other: both sides of an acceptance test have it, so that the exact rule is exact
for it. What it is apart from is the law of the other arithmetic.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["RELATIVE", "UNIT", "error_bound", "exponentials", "log_sum_exp"]

FRACTION_BITS = 12
WEIGHT_BITS = 31
STEPS = 1 << FRACTION_BITS
DEEPEST = ((WEIGHT_BITS + 1) << FRACTION_BITS) - 1
"""The depth in steps that stands for any larger one; its exponential is 0."""

POWERS = np.rint(2.0 ** (WEIGHT_BITS - np.arange(STEPS) / STEPS)).astype(np.uint32)
"""2**-f in units of 2**-31, for f in steps of 2**-12; the first one is 2**31."""

LOG_BITS = 40
LOGS = np.rint(np.log2(1 + np.arange(STEPS + 1) / STEPS) * 2.0**LOG_BITS).astype(np.int64)
"""log2(1 + f) in units of 2**-40, for f in steps of 2**-12, both ends included."""

RELATIVE = 9.2e-5
UNIT = 2.0**-30


def error_bound(n_scores: int) -> float:
    """How far the law of `n_scores` scores may be from the exact one, in total variation.

    Examples
    --------
    >>> round(error_bound(49_152), 6)
    0.000138
    """
    return RELATIVE + n_scores * UNIT


def exponentials(scores: NDArray[np.floating], temperature: float = 1.0) -> NDArray[np.uint32]:
    """exp(score / temperature), but for a common factor, as whole numbers of which the largest is 2**31.

    Parameters
    ----------
    scores : array, shape (n,)
        At least one finite; -inf gives 0.
    temperature : float, default 1.0
        Above 0; for float32 scores from 0.01 to 100.

    Examples
    --------
    >>> (exponentials(np.log([0.5, 0.25, 0.25])) / 2**31).round(3).tolist()
    [1.0, 0.5, 0.5]
    """
    with np.errstate(over="ignore"):  # what is too deep for a float is too deep for anything
        depth = (scores.max() - scores) / temperature * (STEPS / math.log(2))
    steps = np.rint(np.minimum(depth, DEEPEST)).astype(np.uint32)
    weights: NDArray[np.uint32] = POWERS[steps & np.uint32(STEPS - 1)] >> (steps >> np.uint32(FRACTION_BITS))
    return weights


def log_sum_exp(scores: NDArray[np.floating]) -> float:
    """The natural logarithm of the sum of exp(score), the sum and its logarithm in whole numbers.

    Examples
    --------
    >>> round(log_sum_exp(np.array([0.0, 0.0])), 6)
    0.693147
    """
    octaves = _log2(int(exponentials(scores).sum(dtype=np.uint64))) - (WEIGHT_BITS << LOG_BITS)
    return float(scores.max()) + octaves * math.log(2) / 2.0**LOG_BITS


def _log2(whole: int) -> int:
    """The base-2 logarithm of a whole number from 2**12 up, in units of 2**-40: a table, and a straight line in it."""
    highest = whole.bit_length() - 1
    rest_bits = highest - FRACTION_BITS
    interval, rest = (whole >> rest_bits) - STEPS, whole & ((1 << rest_bits) - 1)
    low, high = int(LOGS[interval]), int(LOGS[interval + 1])
    return (highest << LOG_BITS) + low + ((high - low) * rest >> rest_bits)
