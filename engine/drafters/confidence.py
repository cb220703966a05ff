"""When a guess is worth making: a drafter that knows how sure it is stands back where it is not.

The survival of a guess is the chance that it and all guesses before it in the step are kept. One
more guess pays where its survival is larger than what it adds to the cost of the step, in tokens at
the present speed: draft while S_{i+1} > rho * (c + v(i + 2) - v(i + 1)), with rho the tokens per
plain call, c the cost of a draft token and v the cost curve of verification, in plain calls (the
renewal-reward form of Leviathan et al., arXiv 2211.17192, theorem 3.8). Where rho is 1.4, c is 0.06,
v(2) is 1.13 and every further row adds 0.2 to 0.3, that gives the two numbers below: the first guess
of a head costs little more, because the head has been asked anyway.

The decision falls before a token is drawn, and looks at the law and not at the token, so it says
nothing of which token comes: the exact rule stays exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ALWAYS_SURE", "LENGTH_POLICIES", "Confidence", "chance_of_keeping"]

WARM_OFFSET, WARM_SLOPE = 0.2, 0.57
"""Fitted to 752 guesses of a head at temperature 1: 0.23 kept at 0.09, 0.45 at 0.41, 0.68 at 0.84."""


@dataclass(frozen=True, slots=True)
class Confidence:
    """The least survival for which a guess is made.

    Attributes
    ----------
    first : float, default 0.15
        For the first guess of a step.
    further : float, default 0.35
        For every further one.

    Examples
    --------
    >>> Confidence().pays(0.2, n_before=0), Confidence().pays(0.2, n_before=1)
    (True, False)
    """

    first: float = 0.15
    further: float = 0.35

    def pays(self, survival: float, *, n_before: int) -> bool:
        """Whether a guess of that survival is made behind `n_before` others of its step."""
        return survival >= (self.further if n_before else self.first)


ALWAYS_SURE = Confidence(0.0, 0.0)
"""Always guess to the full draft length."""

LENGTH_POLICIES: dict[str, Confidence] = {"confident": Confidence(), "fixed": ALWAYS_SURE}
"""How far a draft head, and the lookup beside it, go: as far as they are sure, or to the draft length."""


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
