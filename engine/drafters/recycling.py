"""Token recycling: what the target would have said after a token, it may say after that token again.

After Luo et al., *Turning Trash into Treasure* (arXiv 2408.08696): a matrix holds, for every token, the
few candidates that the target found most probable behind it when it last verified it, those of refused
tokens among them.  A draft follows the matrix from the last token on, best candidate by best candidate.
It needs no model and no earlier occurrence, and costs next to nothing; it knows only one word of context.

The matrix begins empty with every drafter, so that a run does not depend on the ones before it; one
drafter used for several runs keeps it, as in the paper.

Not here: the tree of several candidates; `TokenRecycling.successors` has them.
"""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from engine.errors import SettingError
from engine.lengths import ALWAYS, GoOn
from engine.models.base import Logits
from engine.sampling import Noise, OneHot, Sampling
from engine.values import Draft, Tokens

__all__ = ["TokenRecycling", "best_candidates"]

N_CANDIDATES = 8  # as in the paper
BLOCK = 64  # ids that are compared first by the best of them


class TokenRecycling:
    """Propose what the target last found most probable behind each token.

    Parameters
    ----------
    n_candidates : int, default 8
        Successors to keep of every token; a chain takes the best of them.

    Raises
    ------
    SettingError
        If it is not from 1 to 64.

    Examples
    --------
    >>> from engine.sampling import Noise, Sampling
    >>> ask = dict(sampling=Sampling(), noise=Noise(0), end_tokens=frozenset())
    >>> drafter = TokenRecycling(2)
    >>> drafter.observe([3, 1], np.array([[0.0, 0.9, 0.1, 0.0], [0.0, 0.2, 0.3, 0.5]]))
    >>> drafter.propose([0, 3], 4, **ask).tokens, drafter.successors(1)
    ((1, 3, 1, 3), (3, 2))
    """

    name = "recycling"
    context_length: int | None = None

    def __init__(self, n_candidates: int = N_CANDIDATES) -> None:
        if not (isinstance(n_candidates, Integral) and 1 <= n_candidates <= BLOCK):
            raise SettingError(f"token recycling keeps {n_candidates} candidates; it must be from 1 to {BLOCK}")
        self._n_candidates: int = n_candidates
        self._matrix: dict[int, NDArray[np.int64]] = {}  # by token: its successors, the best first, shape (n,)

    def successors(self, token: int) -> tuple[int, ...]:
        """What may follow a token, the best first; empty for one that the target has not verified yet."""
        return tuple(int(successor) for successor in self._matrix.get(token, ()))

    def prepare(self, context: Tokens) -> None:
        """Nothing to read: the target's rows of a prompt are not asked for."""

    def propose(
        self,
        context: Tokens,
        limit: int,
        *,
        sampling: Sampling,
        noise: Noise,
        end_tokens: frozenset[int],
        go_on: GoOn = ALWAYS,
    ) -> Draft:
        """See `Drafter.propose`. The laws are one-hot; how sure a guess is, it cannot tell."""
        tokens: list[int] = []
        last = int(context[-1])
        while len(tokens) < limit and last in self._matrix and last not in end_tokens:
            last = int(self._matrix[last][0])
            tokens.append(last)
        if tokens:
            note = "" if len(tokens) == limit else "the target has said nothing yet of what follows the last guess"
        else:
            note = "the target has said nothing yet of what follows the last token"
        return Draft(tuple(tokens), tuple(OneHot(token) for token in tokens), note=note)

    def observe(self, tokens: Tokens, rows: Logits) -> None:
        """See `LearnsFromRows.observe`. Where a token stands twice, its last row counts."""
        for token, candidates in zip(tokens, best_candidates(rows, self._n_candidates), strict=True):
            self._matrix[int(token)] = candidates


def best_candidates(rows: Logits, n_candidates: int) -> NDArray[np.int64]:
    """The ids of the largest logits of each row, the largest first.

    Nothing is sorted but a few blocks: the best k ids lie in the k blocks whose best ids are best.

    Parameters
    ----------
    rows : array, shape (n, vocab_size)
    n_candidates : int
        At most the vocabulary is given.

    Returns
    -------
    array of int, shape (n, n_candidates)

    Examples
    --------
    >>> best_candidates(np.array([[0.1, 0.9, 0.5]]), 2).tolist()
    [[1, 2]]
    """
    vocab_size = rows.shape[1]
    starts = np.arange(0, vocab_size, BLOCK)
    of_blocks = np.maximum.reduceat(rows, starts, axis=1)  # (n, blocks)
    n_blocks = min(n_candidates, len(starts))
    best = np.argpartition(of_blocks, -n_blocks, axis=1)[:, -n_blocks:]  # (n, n_blocks)
    ids = (starts[best][:, :, None] + np.arange(BLOCK)).reshape(len(rows), -1)  # (n, n_blocks * BLOCK)
    inside = ids < vocab_size
    scores = np.where(inside, np.take_along_axis(rows, np.where(inside, ids, 0), axis=1), -np.inf)
    order = np.argsort(-scores, axis=1, kind="stable")[:, : min(n_candidates, vocab_size)]
    candidates: NDArray[np.int64] = np.take_along_axis(ids, order, axis=1)
    return candidates
