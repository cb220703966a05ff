"""What a pass over a tree leaves behind: keys, values and hidden rows, until it is known which tokens are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.tree import children

__all__ = ["TreeCache"]

Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class TreeCache:
    """The tokens of a tree behind a context.

    Attributes
    ----------
    n_context : int
        Tokens of the context.
    tokens, links
        See `engine.tree`.
    hidden : mapping of int to array, shape (n, width)
        Hidden rows by tap; see `engine.models.hidden_rows`.
    keys, values : array or None, shape (n_layers, n_kv_heads, n, head_dim)
        None where they lie behind the context's, in the order of the tokens.
    """

    n_context: int
    tokens: Sequence[int]
    links: Sequence[int]
    hidden: Mapping[int, Array]
    keys: Array | None = None
    values: Array | None = None

    def branch(self, ids: NDArray[np.int64]) -> list[int]:
        """The places of the tokens that go on as `ids` does behind the context.

        Examples
        --------
        >>> tree = TreeCache(2, (5, 6, 7), (-1, -1, 1), {})
        >>> tree.branch(np.array([1, 2, 6, 7, 9])), tree.branch(np.array([1, 2, 4]))
        ([1, 2], [])
        """
        below = children(self.links)
        places: list[int] = []
        for token in ids[self.n_context :]:
            found = [place for place in below[places[-1] + 1 if places else 0] if self.tokens[place] == token]
            if not found:
                break
            places.append(found[0])
        return places
