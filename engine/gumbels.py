"""Random numbers that draft and target share: a Gumbel number for every token at every position.

Whoever draws at a position takes the token with the largest log-probability + Gumbel number (Gumbel, *Statistical
Theory of Extreme Values*, 1954).  That has exactly the law it is drawn from; and since the numbers depend on seed and
position alone, draft and target draw the same token where their laws are alike, and the target draws what it would draw
without any draft: Daliri, Musco, Suresh, *Coupling without Communication and Drafter-Invariant Speculative Decoding*,
arXiv 2408.07978.

A Gumbel number is -ln E with E exponential, so what is compared is probability / E, and no logarithm of a law is taken.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from engine.lengths import MAX_DRAFT_LENGTH
from engine.sampling import Law, Noise, OneHot, Sparse
from engine.sampling.law_kinds import Array

__all__ = ["SharedGumbels"]

KEPT = MAX_DRAFT_LENGTH + 1
"""Positions whose numbers are kept: those of the longest step, as the target draws where the draft has drawn, and the
next step draws where this one was refused. At 49,152 tokens 0.4 MB each."""

SHARED = 3
"""Stands in the counter where other draws have their purpose."""

SMALLEST = 1e-300
"""Takes the place of an exponential number of 0, which 53 random bits can give."""


@dataclass(frozen=True, slots=True)
class SharedGumbels(Noise):
    """Noise whose draws from laws use Gumbel numbers keyed by (seed, position), whatever the purpose.

    Its uniform numbers are those of `Noise`. What is kept for one step is kept for the next (`of_step`), so that the
    numbers of a position are made once.

    Examples
    --------
    >>> from engine.sampling import Dense, Purpose
    >>> noise, law = SharedGumbels(7), Dense(np.array([0.5, 0.3, 0.2]))
    >>> noise.draw(law, 12, Purpose.DRAFT) == noise.draw(law, 12, Purpose.TARGET)
    True
    """

    _kept: OrderedDict[int, Array] = field(default_factory=OrderedDict, repr=False, compare=False)

    def of_step(self, start: int) -> Self:
        """See `Noise.of_step`."""
        return type(self)(self.seed, start, self._kept)

    def draw(self, law: Law, position: int, purpose: int, place: int = 0) -> int:
        """The token with the largest log-probability + Gumbel number at `position`, for any purpose and place."""
        if isinstance(law, OneHot):
            return law.token
        if isinstance(law, Sparse):
            exponentials = self._exponentials(position, int(law.tokens[-1]) + 1)[law.tokens]
            return int(law.tokens[np.argmax(law.probs / exponentials)])
        return int(np.argmax(law.probs / self._exponentials(position, len(law.probs))))

    def score(self, law: Law, token: int, position: int) -> float:
        """Log-probability + Gumbel number of `token` at `position`; -inf for one of probability 0."""
        prob = law.prob(token)
        return math.log(prob) + self.gumbel(token, position) if prob > 0 else -math.inf

    def gumbel(self, token: int, position: int) -> float:
        """The Gumbel number of `token` at `position`."""
        return -math.log(self._exponentials(position, token + 1)[token])

    def _exponentials(self, position: int, n_tokens: int) -> Array:
        """The exponential numbers of the first `n_tokens` tokens; more tokens do not change those of the first."""
        kept = self._kept.pop(position, None)
        if kept is None or len(kept) < n_tokens:
            generator = np.random.Generator(np.random.Philox(key=self.seed, counter=(0, position, SHARED, 0)))
            kept = np.maximum(-np.log1p(-generator.random(n_tokens)), SMALLEST)
        self._kept[position] = kept
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return kept[:n_tokens]
