"""What a law is: one token for certain, a row of probabilities, or a few tokens with theirs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Dense", "Law", "OneHot", "Sparse", "Weighted"]

Array = NDArray[np.float64]
Weights = NDArray[np.floating] | NDArray[np.uint32]

BLOCK = 256  # ids whose weights are summed first when a token is drawn


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


class Dense:
    """A law given by its row of probabilities, float64, shape (vocab,)."""

    __slots__ = ("_probs",)

    def __init__(self, probs: Array) -> None:
        self._probs = probs

    @property
    def probs(self) -> Array:
        """The row, shape (vocab,)."""
        return self._probs

    def row(self) -> Array:
        """The same as an array that the caller may change."""
        return self._probs.copy()

    def prob(self, token: int) -> float:
        """Probability of `token`; 0 for an id behind the end of the row."""
        return float(self._probs[token]) if token < len(self._probs) else 0.0

    def draw(self, uniform: float) -> int:
        """The token at `uniform` in [0, 1) of the cumulative law; never one of probability 0."""
        return _place(self._probs, uniform)

    def dense(self, vocab_size: int) -> Array:
        """The row, shape (vocab_size,)."""
        return self.probs


class Weighted(Dense):
    """A law given by numbers that its probabilities are in proportion to; only what is asked for is divided.

    Parameters
    ----------
    weights : array, shape (vocab,)
        None negative.

    Attributes
    ----------
    total : float
        Their sum, which is not 0 if the law is used.

    Examples
    --------
    >>> law = Weighted(np.array([1.0, 3.0]))
    >>> law.total, law.prob(1), law.draw(0.2), law.probs.tolist()
    (4.0, 0.75, 0, [0.25, 0.75])
    """

    __slots__ = ("_weights", "total")

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self.total = float(np.add.reduce(weights, dtype=np.float64))

    @property
    def probs(self) -> Array:
        """The row, shape (vocab,)."""
        if not hasattr(self, "_probs"):
            self._probs: Array = self.row()
        return self._probs

    def row(self) -> Array:
        """The same as an array that the caller may change."""
        return np.divide(self._weights, self.total, dtype=np.float64)

    def prob(self, token: int) -> float:
        """Probability of `token`; 0 for an id behind the end of the row."""
        return float(self._weights[token]) / self.total if token < len(self._weights) else 0.0

    def draw(self, uniform: float) -> int:
        """The token at `uniform` in [0, 1) of the cumulative law; never one of probability 0."""
        return _place(self._weights, uniform)


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
        place = int(self.tokens.searchsorted(token))
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


def _place(weights: Weights, uniform: float) -> int:
    """The index at `uniform` in [0, 1) of the cumulative law; never one of probability 0."""
    if len(weights) % BLOCK:
        sums = np.add.reduceat(weights, np.arange(0, len(weights), BLOCK), dtype=np.float64)
    else:
        sums = np.add.reduce(weights.reshape(-1, BLOCK), axis=1)  # in float32 good to 2e-7, and much faster
    ends = sums.cumsum(dtype=np.float64)  # of each block of ids
    aim = uniform * ends[-1]
    block = int(ends.searchsorted(aim, side="right"))
    if block == len(ends):  # uniform * total was rounded up to the total
        return int(np.flatnonzero(weights)[-1])
    inside = weights[block * BLOCK : (block + 1) * BLOCK]
    before = ends[block - 1] if block else 0.0
    place = int(inside.cumsum(dtype=np.float64).searchsorted(aim - before, side="right"))
    if place == len(inside):  # the block's sum was rounded up
        place = int(np.flatnonzero(inside)[-1])
    return block * BLOCK + place
