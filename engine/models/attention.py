"""Grouped-query attention over a cache of keys and values.

After Ainslie et al., *GQA* (arXiv 2305.13245): query heads share key-value heads in groups.
The cache is read through views; nothing in it is copied but when it grows.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from engine.models.aligned import aligned

__all__ = ["Cache", "attend", "attend_each"]

Array = NDArray[np.float32]

STRETCH = 64  # a row looks at a multiple of so many tokens, those after it with weight 0


class Cache:
    """Keys and values of every layer, with room that doubles when it runs out.

    Parameters
    ----------
    n_layers, n_kv_heads, head_dim : int
    limit : int
        Tokens that it may ever hold.
    room : int, default 256
        Tokens that it has room for to begin with.
    """

    def __init__(self, n_layers: int, n_kv_heads: int, head_dim: int, limit: int, *, room: int = 256) -> None:
        self._limit = limit
        shape = (n_layers, n_kv_heads, min(room, limit), head_dim)
        self.keys = _zeros(*shape)  # (layers, kv_heads, room, head_dim)
        self.values = _zeros(*shape)  # (layers, kv_heads, room, head_dim)

    def reserve(self, n_tokens: int) -> None:
        """Make room for `n_tokens`, keeping what is there."""
        room = self.keys.shape[2]
        if n_tokens <= room:
            return
        if n_tokens > self._limit:
            raise ValueError(f"a cache for at most {self._limit} tokens was asked for room for {n_tokens}")
        self.keys, self.values = (
            self._grown(array, min(self._limit, max(n_tokens, 2 * room))) for array in (self.keys, self.values)
        )

    @staticmethod
    def _grown(array: Array, room: int) -> Array:
        n_layers, n_kv_heads, n_tokens, head_dim = array.shape
        larger = _zeros(n_layers, n_kv_heads, room, head_dim)
        larger[:, :, :n_tokens] = array
        return larger


def _zeros(*shape: int) -> Array:
    array = aligned(*shape)
    array[:] = 0
    return array


def attend(queries: Array, keys: Array, values: Array) -> Array:
    """What each query gathers from the values before and at its own place.

    Parameters
    ----------
    queries : array, shape (n, n_heads, head_dim)
        Of the last n of the `end` tokens.
    keys, values : array, shape (n_kv_heads, end, head_dim)

    Returns
    -------
    array, shape (n, n_heads * head_dim)
    """
    n_rows, n_heads, head_dim = queries.shape
    n_kv_heads, end, _ = keys.shape
    group = n_heads // n_kv_heads
    # queries of one key-value head together: (n_kv_heads, n * group, head_dim)
    grouped = (
        queries.reshape(n_rows, n_kv_heads, group, head_dim).transpose(1, 0, 2, 3).reshape(n_kv_heads, -1, head_dim)
    )
    scale = np.float32(1 / math.sqrt(head_dim))
    scores: Array = np.matmul(grouped * scale, keys.transpose(0, 2, 1))  # (n_kv_heads, n * group, end)
    if n_rows > 1:
        later = np.triu(np.ones((n_rows, n_rows), bool), 1)  # (n, n): of the last n places
        scores[:, :, end - n_rows :][:, np.repeat(later, group, axis=0)] = -np.inf
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    gathered: Array = np.matmul(scores, values).reshape(n_kv_heads, n_rows, group, head_dim)
    return gathered.transpose(1, 0, 2, 3).reshape(n_rows, -1)


def attend_each(queries: Array, keys: Array, values: Array, ends: range) -> Array:
    """The same for rows one by one: what comes out for a row does not depend on the rows beside it, bit for bit.

    Parameters
    ----------
    queries : array, shape (n, n_heads, head_dim)
    keys, values : array, shape (n_kv_heads, room, head_dim)
        All that the cache has room for.
    ends : range
        For each row, the number of tokens that it sees.

    Returns
    -------
    array, shape (n, n_heads * head_dim)
    """
    n_rows, _, head_dim = queries.shape
    n_kv_heads, room, _ = keys.shape
    scaled = queries * np.float32(1 / math.sqrt(head_dim))
    grouped = scaled.reshape(n_rows, n_kv_heads, -1, 1, head_dim)  # each query is multiplied on its own
    pieces = []
    first = 0
    while first < n_rows:
        seen = min(room, -(-ends[first] // STRETCH) * STRETCH)
        stop = min(n_rows, first + seen - ends[first] + 1)  # rows that see no more than that
        scores: Array = np.matmul(grouped[first:stop], keys[:, None, :seen].swapaxes(-1, -2))
        later = np.arange(seen) >= np.array(ends[first:stop]).reshape(-1, 1, 1, 1, 1)
        np.copyto(scores, -np.inf, where=later)
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)  # (rows, n_kv_heads, group, 1, seen)
        gathered = np.matmul(scores, values[:, None, :seen])
        gathered /= scores.sum(axis=-1, keepdims=True)
        if not np.isfinite(gathered).all():  # 0 times what is not finite is not 0, and may stand behind a row
            own = [
                attend(queries[row : row + 1], keys[:, : ends[row]], values[:, : ends[row]])
                for row in range(first, stop)
            ]
            gathered = np.concatenate(own)
        pieces.append(gathered.reshape(stop - first, -1))
        first = stop
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
