"""One number of a counter-based generator: Philox4x64-10, in whole numbers of Python.

Salmon et al., *Parallel Random Numbers: As Easy as 1, 2, 3* (SC 2011), section 3.3.  A step needs one or two numbers,
each with a key and a counter of its own, and to make numpy's generator for one takes longer than the number.  The
numbers are the same, bit for bit; where many are wanted from one key, numpy's generator gives them faster.
"""

from __future__ import annotations

import functools

__all__ = ["uniform"]

WORD = 2**64 - 1
N_ROUNDS = 10
MULTIPLIER, SECOND_MULTIPLIER = 0xD2E7470EE14C6C93, 0xCA5A826395121157
STRIDE, SECOND_STRIDE = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B
"""What the two words of the key grow by from round to round."""


def uniform(key: int, counter: tuple[int, int, int]) -> float:
    """The first number in [0, 1) that numpy gives for the key and the counter (0, *counter).

    Parameters
    ----------
    key : int
        From 0 to 2**64 - 1.
    counter : three ints
        Each from 0 to 2**64 - 1.

    Examples
    --------
    >>> import numpy as np
    >>> uniform(7, (12, 1, 0)) == np.random.Generator(np.random.Philox(key=7, counter=(0, 12, 1, 0))).random()
    True
    """
    a, (b, c, d) = 1, counter  # numpy counts before it computes
    for left, right in _keys(key):
        first, second = a * MULTIPLIER, c * SECOND_MULTIPLIER
        a, b, c, d = second >> 64 ^ b ^ left, second & WORD, first >> 64 ^ d ^ right, first & WORD
    return (a >> 11) * 2.0**-53


@functools.lru_cache(maxsize=64)
def _keys(key: int) -> tuple[tuple[int, int], ...]:
    """The two words of the key in each round."""
    return tuple((key + turn * STRIDE & WORD, turn * SECOND_STRIDE & WORD) for turn in range(N_ROUNDS))
