"""The highest logits of some rows, found in one look: the best token, and what the runner-up is found by."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["Peaks"]

BLOCK = 256  # tokens whose highest logit is noted


class Peaks:
    """Of each row the best token, and the highest logit of every block of tokens.

    Parameters
    ----------
    logits : array, shape (n, vocab)
        Not copied.

    Attributes
    ----------
    tokens : list of int
        The best of each row; the lowest on a tie. Where a logit is not a number, the row's highest is none either.

    Examples
    --------
    >>> peaks = Peaks(np.array([[0.5, 2.0, 1.5]]))
    >>> peaks.tokens, peaks.runner_up(0, 1)
    ([1], 1.5)
    """

    def __init__(self, logits: NDArray[np.floating]) -> None:
        n_rows, n_tokens = logits.shape
        width = BLOCK if n_tokens % BLOCK == 0 else n_tokens
        self._blocks = logits.reshape(n_rows, -1, width)  # (n, blocks, width)
        self._highest = self._blocks.max(axis=2)  # (n, blocks)
        self.tokens: list[int] = []
        for row, block in enumerate(self._highest.argmax(axis=1).tolist()):
            self.tokens.append(block * width + int(self._blocks[row, block].argmax()))

    def runner_up(self, index: int, token: int) -> float:
        """The highest logit of a row but that of `token`; -inf if there is no other."""
        block, place = divmod(token, self._blocks.shape[2])
        return max(_highest_but(self._highest[index], block), _highest_but(self._blocks[index, block], place))


def _highest_but(values: NDArray[np.floating], place: int) -> float:
    others = (values[:place], values[place + 1 :])
    return max((float(part[part.argmax()]) for part in others if len(part)), default=-math.inf)
