"""How sure a draft head is of a guess, in the chance that the exact rule keeps it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["chance_of_keeping"]

WARM_OFFSET, WARM_SLOPE = 0.2, 0.57
"""Fitted to 752 guesses of a head at temperature 1: 0.23 kept at 0.09, 0.45 at 0.41, 0.68 at 0.84."""


def chance_of_keeping(logits: NDArray[np.floating], temperature: float) -> float:
    """The chance that the exact rule keeps a guess from these logits, judged by the draft alone.

    At temperature 0 it is the probability p of the best token (at temperature 1): the share that was
    kept of 4,167 guesses, on texts that the head had not been trained on, is within 0.12 of it
    throughout. At temperature 1 it is 0.2 + 0.57 p, for a flat law may meet a target's as flat; so a
    first guess always pays there. In between it is taken as linear in the temperature, which was
    not measured.

    Parameters
    ----------
    logits : array, shape (n,)
        Of the candidates, at least one of them finite.
    temperature : float
        At which the token will be drawn.

    Examples
    --------
    >>> logits = np.log([0.8, 0.1, 0.1])
    >>> round(chance_of_keeping(logits, 0), 3), round(chance_of_keeping(logits, 1), 3)
    (0.8, 0.656)
    """
    best = float(1 / np.exp(logits - logits.max()).sum())
    warmth = min(temperature, 1.0)
    return best + warmth * (WARM_OFFSET + WARM_SLOPE * best - best)
