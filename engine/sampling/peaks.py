"""The highest logits of some rows, found in one look: the best token, and how far another is behind it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["FoundPeaks", "Peaks"]

BLOCK = 256  # tokens whose highest logit is noted


class Peaks:
    """Of each row the best token, its logit, and the highest logit of every block of tokens.

    Parameters
    ----------
    logits : array, shape (n, vocab)
        Not copied.

    Attributes
    ----------
    tokens : list of int
        The best of each row; the lowest on a tie.
    values : list of float
        Their logits. Where a logit is not a number, the row's highest is none either.

    Examples
    --------
    >>> peaks = Peaks(np.array([[0.5, 2.0, 1.5]]))
    >>> peaks.tokens, peaks.values, peaks.lead(0, 1), peaks.lead(0, 0)
    ([1], [2.0], 0.5, -1.5)
    """

    def __init__(self, logits: NDArray[np.floating]) -> None:
        n_rows, n_tokens = logits.shape
        width = BLOCK if n_tokens % BLOCK == 0 else n_tokens
        self.logits = logits
        self._blocks = logits.reshape(n_rows, -1, width)  # (n, blocks, width)
        self._highest = self._blocks.max(axis=2)  # (n, blocks)
        self.values: list[float] = self._highest.max(axis=1).tolist()
        self.tokens: list[int] = []
        for row, block in enumerate(self._highest.argmax(axis=1).tolist()):
            self.tokens.append(block * width + int(self._blocks[row, block].argmax()))

    def lead(self, index: int, token: int) -> float:
        """How far the logit of `token` in a row is above the highest of the others; infinite if there is no other."""
        if token != self.tokens[index]:
            return float(self.logits[index, token]) - self.values[index]
        return self.values[index] - self._second(index)

    def _second(self, index: int) -> float:
        """The highest logit of a row but that of its best token; -inf if there is no other."""
        block, place = divmod(self.tokens[index], self._blocks.shape[2])
        return max(_highest_but(self._highest[index], block), _highest_but(self._blocks[index, block], place))


class FoundPeaks(Peaks):
    """What a model has found in its rows itself.

    Parameters
    ----------
    logits : array, shape (n, vocab)
    tokens : list of int
        The best of each row; the lowest on a tie.
    values : list of float
        Their logits.
    seconds : list of float
        Of each row the highest of the others; -inf if there is none.

    Examples
    --------
    >>> FoundPeaks(np.array([[0.5, 2.0, 1.5]]), [1], [2.0], [1.5]).lead(0, 1)
    0.5
    """

    def __init__(
        self, logits: NDArray[np.floating], tokens: list[int], values: list[float], seconds: list[float]
    ) -> None:
        self.logits, self.tokens, self.values, self._seconds = logits, tokens, values, seconds

    def _second(self, index: int) -> float:
        return self._seconds[index]


def _highest_but(values: NDArray[np.floating], place: int) -> float:
    others = (values[:place], values[place + 1 :])
    return max((float(part[part.argmax()]) for part in others if len(part)), default=-math.inf)
