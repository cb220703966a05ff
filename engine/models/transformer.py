"""A Llama-style transformer in numpy: float32, a cache of keys and values, nothing compiled.

Follows the layer of Touvron et al., *LLaMA* (arXiv 2302.13971), with the biases of Qwen 2 and the
QK-norm of Qwen 3.  Reading the weights from memory is what a token costs, so a few rows go through
each tile of a matrix while it is in the processor's cache: five rows cost far less than five
tokens.  Up to `N_SEPARATE_ROWS` rows are computed one by one within each tile, so that a row
comes out the same, bit for bit, whatever rows are beside it.  That makes greedy speculative text
equal to greedy plain text.

Not here: packed (quantised) products, batches of several contexts, sliding windows, experts.
"""

from __future__ import annotations

import functools
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from engine.models.architecture import Architecture
from engine.models.attention import Cache, attend, attend_each
from engine.models.cached import CachedTransformer
from engine.models.hidden_rows import FINAL
from engine.models.rope import rotate, turns
from engine.models.threads import n_threads
from engine.models.tree_cache import TreeCache
from engine.models.weights import Layer, Weights
from engine.tree import branch, depths

__all__ = ["Transformer"]

Array = NDArray[np.float32]

N_SEPARATE_ROWS = 33  # the longest draft, 32 tokens, and the token before it
CHUNK = 256  # rows that go through the layers at once; bounds the memory of a long prompt
TILE = 2**15  # weights that rows are multiplied with while they are in the cache of a core: 128 kB
LARGE_TILE = 2**20  # the same, where several threads share the work: 4 MB


class Transformer(CachedTransformer):
    """A model read from a file; see `Model` for what it promises.

    Parameters
    ----------
    architecture : Architecture
    weights : Weights
        Shared, never written to.
    name : str
    """

    backend = "numpy"
    exact_rows = True

    def __init__(self, architecture: Architecture, weights: Weights, *, name: str) -> None:
        super().__init__(architecture, name=name)
        self._weights = weights
        self._cache = Cache(
            architecture.n_layers, architecture.n_kv_heads, architecture.head_dim, architecture.context_length
        )

    def fork(self) -> Transformer:
        """The same weights with an empty cache of their own."""
        return Transformer(self._architecture, self._weights, name=self.name)

    def _feed(self, ids: NDArray[np.int64], kept: int, first_asked: int) -> list[Array]:
        """See `CachedTransformer._feed`."""
        pieces = []
        for start, stop in _spans(kept, first_asked, len(ids)):
            hidden = self._forward(ids, start, stop)  # (stop - start, width)
            asked = max(start, first_asked)
            if asked < stop:
                pieces.append(_product(hidden[asked - start :], self._weights.head))
        return pieces

    def _feed_early(self, ids: NDArray[np.int64], kept: int, first_asked: int, n_layers: int) -> list[Array]:
        """See `CachedTransformer._feed_early`."""
        pieces = []
        for start, stop in _spans(kept, first_asked, len(ids)):
            self._begin_early(ids[:start], n_layers)
            hidden = self._through(ids, start, stop, n_layers)
            self._early.begin(ids[:stop], n_layers)
            final = _norm(hidden, self._weights.final_norm, self._architecture.norm_epsilon)
            asked = max(start, first_asked)
            if asked < stop:
                pieces.append(_product(final[asked - start :], self._weights.head))
        return pieces

    def _feed_tree(
        self, ids: NDArray[np.int64], tokens: NDArray[np.int64], links: tuple[int, ...]
    ) -> tuple[Array, TreeCache]:
        """See `CachedTransformer._feed_tree`.

        A row is the same, bit for bit, as that of `logits` for its branch, if there are at most 32 tokens.
        """
        start = len(ids) - 1
        of_depth = [0, *depths(links)]
        self._cached = ids[:start]  # what follows is about to be overwritten
        self._early.forget()
        self._cache.reserve(len(ids) + max(of_depth))
        weights, epsilon = self._weights, self._architecture.norm_epsilon
        cosines, sines = turns(weights.rope, start, len(ids) + max(of_depth))
        angles = cosines[of_depth], sines[of_depth]
        ways = [[0, *(place + 1 for place in branch(links, node))] for node in range(-1, len(links))]
        all_keys: list[Array] = []
        all_values: list[Array] = []
        streams: dict[int, Array] = {}
        hidden = weights.embedding[np.concatenate([ids[start:], tokens])]  # (1 + n, width)
        with np.errstate(over="ignore"):
            for index, layer in enumerate(weights.layers):
                heads = self._heads(layer, _norm(hidden, layer.attention_norm, epsilon), angles)
                queries, own_keys, own_values = self._parts(heads)
                keys, values = self._cache.keys[index], self._cache.values[index]
                mixed = []
                for row, way in enumerate(ways):  # the places behind the context hold one branch after the other
                    stop = start + len(way)
                    keys[:, start:stop], values[:, start:stop] = own_keys[:, way], own_values[:, way]
                    mixed.append(attend_each(queries[row : row + 1], keys, values, range(stop, stop + 1)))
                hidden = hidden + _product(np.concatenate(mixed), layer.output)
                hidden = hidden + _feed_forward(layer, _norm(hidden, layer.ffn_norm, epsilon))
                all_keys.append(own_keys[:, 1:])
                all_values.append(own_values[:, 1:])
                streams[index] = hidden
        streams[FINAL] = final = _norm(hidden, weights.final_norm, epsilon)
        of_tokens = {}
        for tap in self._hidden.taps:
            self._hidden.write(tap, start, streams[tap][:1])
            of_tokens[tap] = streams[tap][1:]
        tree = TreeCache(len(ids), tokens.tolist(), links, of_tokens, np.stack(all_keys), np.stack(all_values))
        return _product(final, weights.head), tree

    def _take(self, tree: TreeCache, place: int, slot: int) -> None:
        """See `CachedTransformer._take`."""
        assert tree.keys is not None
        assert tree.values is not None
        self._cache.keys[:, :, slot] = tree.keys[:, :, place]
        self._cache.values[:, :, slot] = tree.values[:, :, place]
        for tap, rows in tree.hidden.items():
            self._hidden.write(tap, slot, rows[place : place + 1])

    def _forward(self, ids: NDArray[np.int64], start: int, stop: int) -> Array:
        """Run the tokens start to stop - 1 behind those in the cache; their normed hidden rows."""
        self._cached = ids[:start]  # what follows is about to be overwritten
        self._early.forget()
        taps = self._hidden.taps
        hidden = self._through(ids, start, stop, self.n_layers, taps)
        final = _norm(hidden, self._weights.final_norm, self._architecture.norm_epsilon)
        if FINAL in taps:
            self._hidden.write(FINAL, start, final)
        self._cached = ids[:stop]
        return final

    def _through(
        self, ids: NDArray[np.int64], start: int, stop: int, n_layers: int, taps: Collection[int] = ()
    ) -> Array:
        """The residual stream of the tokens start to stop - 1 behind the first layers, shape (stop - start, width)."""
        self._cache.reserve(stop)
        weights, epsilon = self._weights, self._architecture.norm_epsilon
        angles = turns(weights.rope, start, stop)
        hidden = weights.embedding[ids[start:stop]]  # (n, width)
        with np.errstate(over="ignore"):  # exp(-gate) may be inf, and 1 / (1 + inf) is the 0 it should be
            for index, layer in enumerate(weights.layers[:n_layers]):
                normed = _norm(hidden, layer.attention_norm, epsilon)
                hidden = hidden + self._attention(index, layer, normed, angles, start)
                hidden = hidden + _feed_forward(layer, _norm(hidden, layer.ffn_norm, epsilon))
                if index in taps:
                    self._hidden.write(index, start, hidden)
        return hidden

    def _heads(self, layer: Layer, rows: Array, angles: tuple[Array, Array]) -> Array:
        """Queries, keys and values of some rows, shape (n, n_heads + 2 n_kv_heads, head_dim)."""
        shape, epsilon = self._architecture, self._architecture.norm_epsilon
        qkv = _product(rows, layer.qkv)
        if layer.qkv_bias is not None:
            qkv = qkv + layer.qkv_bias
        heads = qkv.reshape(len(rows), -1, shape.head_dim)  # (n, n_heads + 2 n_kv_heads, head_dim)
        first_key, first_value = shape.n_heads, shape.n_heads + shape.n_kv_heads
        if layer.query_norm is not None and layer.key_norm is not None:
            heads[:, :first_key] = _norm(heads[:, :first_key], layer.query_norm, epsilon)
            heads[:, first_key:first_value] = _norm(heads[:, first_key:first_value], layer.key_norm, epsilon)
        rotate(heads[:, :first_value], *angles)
        return heads

    def _parts(self, heads: Array) -> tuple[Array, Array, Array]:
        """Queries (n, n_heads, head_dim), keys and values (n_kv_heads, n, head_dim)."""
        first_key, first_value = self._architecture.n_heads, self._architecture.n_heads + self._architecture.n_kv_heads
        keys, values = heads[:, first_key:first_value], heads[:, first_value:]
        return heads[:, :first_key], keys.transpose(1, 0, 2), values.transpose(1, 0, 2)

    def _attention(self, index: int, layer: Layer, rows: Array, angles: tuple[Array, Array], start: int) -> Array:
        stop = start + len(rows)
        keys, values = self._cache.keys[index], self._cache.values[index]  # (n_kv_heads, room, head_dim)
        queries, keys[:, start:stop], values[:, start:stop] = self._parts(self._heads(layer, rows, angles))
        if len(rows) > N_SEPARATE_ROWS:
            mixed = attend(queries, keys[:, :stop], values[:, :stop])
        else:
            mixed = attend_each(queries, keys, values, range(start + 1, stop + 1))
        return _product(mixed, layer.output)


def _spans(start: int, first_asked: int, stop: int) -> list[tuple[int, int]]:
    """The pieces in which tokens start to stop - 1 are fed: all at once if few, else the asked rows apart."""
    if stop - start <= N_SEPARATE_ROWS:
        return [(start, stop)]
    return [
        (low, min(low + CHUNK, end))
        for begin, end in ((start, first_asked), (first_asked, stop))
        for low in range(begin, end, CHUNK)
    ]


def _product(rows: Array, matrix: Array) -> Array:
    """`rows @ matrix.T`: rows (n, inputs), matrix (outputs, inputs), result (n, outputs)."""
    if len(rows) > N_SEPARATE_ROWS:
        return rows @ matrix.T
    n_outputs, n_inputs = matrix.shape
    size = min(n_outputs, max(8, _tile_weights() // n_inputs // 8 * 8))  # outputs of a tile
    tiled = n_outputs // size * size
    tiles = matrix[:tiled].reshape(-1, 1, size, n_inputs)
    columns = rows[:, :, None]  # (n, inputs, 1): numpy multiplies a tile by each of them in turn
    by_tile = np.matmul(tiles, columns)  # (tiles, n, size, 1)
    result: Array = by_tile.transpose(1, 0, 2, 3).reshape(len(rows), tiled)
    if tiled < n_outputs:
        result = np.concatenate([result, np.matmul(matrix[tiled:], columns)[..., 0]], axis=1)
    return result


@functools.cache
def _tile_weights() -> int:
    """Several threads of a product wait for each other at the end of each tile, so they get larger ones."""
    return TILE if n_threads() == 1 else LARGE_TILE


def _norm(rows: Array, weight: Array, epsilon: float) -> Array:
    """RMS norm over the last axis: rows (..., width), weight (width,)."""
    mean_square = np.vecdot(rows, rows)[..., None] / np.float32(rows.shape[-1])
    normed: Array = rows / np.sqrt(mean_square + np.float32(epsilon)) * weight
    return normed


def _feed_forward(layer: Layer, rows: Array) -> Array:
    both = _product(rows, layer.gate_up)  # (n, 2 * ffn_width)
    gate, up = np.split(both, 2, axis=1)  # (n, ffn_width) each
    return _product(gate / (1 + np.exp(-gate)) * up, layer.down)
