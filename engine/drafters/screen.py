"""From a guessed hidden row to the few tokens that it may mean, without a product over the vocabulary.

The target's own head gives the logits, but only for some hundred candidates. They are found by a
rough score: each head row is squeezed to a few numbers once, by a map that keeps what matters for
the hidden rows that occur (a singular value decomposition weighed by their covariance).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.drafters.head_file import HeadWeights

__all__ = ["Screen"]

Array = NDArray[np.float32]

N_CANDIDATES = 256


class Screen:
    """Candidates and their exact logits.

    Parameters
    ----------
    weights : HeadWeights
    head : array, shape (V, W)
        The target's head rows for `weights.tokens`.
    n_candidates : int, default 256
    """

    def __init__(self, weights: HeadWeights, head: Array, n_candidates: int = N_CANDIDATES) -> None:
        self._tokens = weights.tokens
        self._head = head
        self._down = weights.screen_down
        self._rough = head @ weights.screen_up  # (V, rank)
        self._n_candidates = min(n_candidates, len(weights.tokens))

    def logits(self, hidden: Array) -> tuple[NDArray[np.int64], Array]:
        """The best candidates for a hidden row (W,): ids in rising order and their logits, (n,) each."""
        scores = self._rough @ (self._down @ hidden)  # (V,)
        best = np.argpartition(scores, -self._n_candidates)[-self._n_candidates :]
        best.sort()
        return self._tokens[best], self._head[best] @ hidden
