"""What a law is: one token for certain, a row of probabilities, or a few tokens with theirs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Dense", "Law", "OneHot", "Sparse"]

Array = NDArray[np.float64]

BLOCK = 256  # ids whose probabilities are summed first when a token is drawn


@dataclass(frozen=True, slots=True)
class OneHot:
    """The law of a deterministic choice: all mass on one token, no row of vocabulary size."""

    token: int

    def prob(self, token: int) -> float:
        """Probability of `token`."""
        return 1.0 if token == self.token else 0.0

    def draw(self, uniform: float) -> int:
        """The token; `uniform` is not needed."""
        return self.token

    def dense(self, vocab_size: int) -> Array:
        """The row, shape (vocab_size,)."""
        row = np.zeros(vocab_size)
        row[self.token] = 1.0
        return row


@dataclass(frozen=True, slots=True, eq=False)
class Dense:
    """A law given by its row of probabilities, float64, shape (vocab,)."""

    probs: Array

    def prob(self, token: int) -> float:
        """Probability of `token`; 0 for an id behind the end of the row."""
        return float(self.probs[token]) if token < len(self.probs) else 0.0

    def draw(self, uniform: float) -> int:
        """The token at `uniform` in [0, 1) of the cumulative law; never one of probability 0."""
        return _place(self.probs, uniform)

    def dense(self, vocab_size: int) -> Array:
        """The row, shape (vocab_size,)."""
        return self.probs


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """A law over a few tokens; all others have probability 0, and nothing of vocabulary size is built.

    Parameters
    ----------
    tokens : array of int, shape (n,)
        Distinct ids, in rising order.
    probs : array of float64, shape (n,)
        Their probabilities, which sum to 1.

    Examples
    --------
    >>> some = Sparse(np.array([2, 5]), np.array([0.25, 0.75]))
    >>> some.prob(5), some.prob(3), some.draw(0.1)
    (0.75, 0.0, 2)
    """

    tokens: NDArray[np.int64]
    probs: Array

    @classmethod
    def over(cls, tokens: NDArray[np.int64], of_places: Law) -> Law:
        """The law of `tokens[i]`, where `of_places` is the law of i."""
        if isinstance(of_places, OneHot):
            return OneHot(int(tokens[of_places.token]))
        return cls(tokens, of_places.dense(len(tokens)))

    def prob(self, token: int) -> float:
        """Probability of `token`; 0 for one that is not among the few."""
        place = int(np.searchsorted(self.tokens, token))
        return float(self.probs[place]) if place < len(self.tokens) and self.tokens[place] == token else 0.0

    def draw(self, uniform: float) -> int:
        """The token at `uniform` in [0, 1) of the cumulative law; never one of probability 0."""
        return int(self.tokens[_place(self.probs, uniform)])

    def dense(self, vocab_size: int) -> Array:
        """The row, shape (vocab_size,)."""
        row = np.zeros(vocab_size)
        row[self.tokens] = self.probs
        return row


Law = OneHot | Dense | Sparse


def _place(probs: Array, uniform: float) -> int:
    """The index at `uniform` in [0, 1) of the cumulative law; never one of probability 0."""
    ends = np.cumsum(np.add.reduceat(probs, np.arange(0, len(probs), BLOCK)))  # of each block of ids
    aim = uniform * ends[-1]
    block = int(np.searchsorted(ends, aim, side="right"))
    if block == len(ends):  # uniform * total was rounded up to the total
        return int(np.flatnonzero(probs)[-1])
    inside = probs[block * BLOCK : (block + 1) * BLOCK]
    before = ends[block - 1] if block else 0.0
    place = int(np.searchsorted(np.cumsum(inside), aim - before, side="right"))
    if place == len(inside):  # the block's sum was rounded up
        place = int(np.flatnonzero(inside)[-1])
    return block * BLOCK + place
