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
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.models.architecture import Architecture
from engine.models.attention import Cache, attend
from engine.models.base import Logits
from engine.models.context import checked_ids, n_common
from engine.models.hidden_rows import FINAL, HiddenRows
from engine.models.rope import rotate, turns
from engine.models.threads import n_threads
from engine.models.tree_cache import TreeCache
from engine.models.weights import Layer, Weights
from engine.tree import branch, depths
from engine.values import Tokens

__all__ = ["Transformer"]

Array = NDArray[np.float32]

N_SEPARATE_ROWS = 33  # the longest draft, 32 tokens, and the token before it
CHUNK = 256  # rows that go through the layers at once; bounds the memory of a long prompt
TILE = 2**15  # weights that rows are multiplied with while they are in the cache of a core: 128 kB
LARGE_TILE = 2**20  # the same, where several threads share the work: 4 MB


class Transformer:
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
        self.name = name
        self.vocab_size = architecture.vocab_size
        self.context_length = architecture.context_length
        self._architecture = architecture
        self._weights = weights
        self._cache = Cache(
            architecture.n_layers, architecture.n_kv_heads, architecture.head_dim, architecture.context_length
        )
        self._hidden = HiddenRows(architecture.n_layers, architecture.width, architecture.context_length)
        self._cached: NDArray[np.int64] = np.empty(0, np.int64)  # the ids whose keys and values the cache holds
        self._tree: TreeCache | None = None  # what stands behind them, where a tree was run last

    def fork(self) -> Transformer:
        """The same weights with an empty cache of their own."""
        return Transformer(self._architecture, self._weights, name=self.name)

    def logits(self, context: Tokens, last: int = 1) -> Logits:
        """See `Model.logits`; float32, shape (last, vocab_size).

        Raises
        ------
        PromptError
            If the context is empty, longer than `context_length` or holds an id outside the
            vocabulary, or if `last` is not from 1 to its length.
        """
        ids = self._checked(context, last)
        first_asked = len(ids) - last
        kept = min(self._n_kept(ids), first_asked)
        rows = np.empty((last, self.vocab_size), np.float32)
        for start, stop in _spans(kept, first_asked, len(ids)):
            hidden = self._feed(ids, start, stop)  # (stop - start, width)
            asked = max(start, first_asked)
            if asked < stop:
                rows[asked - first_asked : stop - first_asked] = _product(hidden[asked - start :], self._weights.head)
        return rows

    def tree_logits(self, context: Tokens, tokens: Tokens, parents: Sequence[int]) -> Logits:
        """See `TreeModel.tree_logits`; float32, shape (1 + n, vocab_size).

        A row is the same, bit for bit, as that of `logits` for its branch, if there are at most 32 tokens. The keys and
        values of the branch that is gone on with are not computed again.

        Raises
        ------
        PromptError
            As `logits` does, for the longest branch.
        """
        ids = self._checked(context, 1)
        if not len(tokens):
            return self.logits(context)
        of_depth = [0, *depths(parents)]
        longest = branch(parents, of_depth.index(max(of_depth)) - 1)
        self._checked([*context, *(tokens[place] for place in longest)], 1)
        nodes = self._checked([*context[-1:], *tokens], 1)
        start = len(ids) - 1
        kept = self._n_kept(ids)
        if kept < start:
            for low, high in _spans(kept, start, start):
                self._feed(ids, low, high)
        return _product(self._feed_tree(ids, nodes, parents, of_depth), self._weights.head)

    def hidden(self, context: Tokens, last: int = 1, taps: tuple[int, ...] = ()) -> Array:
        """See `HiddenModel.hidden`; float32, shape (last, 1 + len(taps), width).

        Raises
        ------
        PromptError
            As `logits` does.
        SettingError
            If a tap is not the index of a layer.
        """
        ids = self._checked(context, last)
        if self._hidden.keep(taps):
            self._cached = ids[:0]  # fed before its hidden rows were kept
        kept = self._n_kept(ids)
        if kept < len(ids):
            for start, stop in _spans(kept, len(ids), len(ids)):
                self._feed(ids, start, stop)
        return self._hidden.read(len(ids) - last, len(ids), taps)

    def _checked(self, context: Tokens, last: int) -> NDArray[np.int64]:
        return checked_ids(self.name, context, last, vocab_size=self.vocab_size, context_length=self.context_length)

    def _n_kept(self, ids: NDArray[np.int64]) -> int:
        """How many tokens the cache has of a context, with the branch that it goes on with of the tree last seen."""
        kept, tree = n_common(ids, self._cached), self._tree
        if tree is None or not kept == len(self._cached) == tree.n_context:
            return kept
        for place in tree.branch(ids):
            for layer, (keys, values) in enumerate(zip(tree.keys, tree.values, strict=True)):
                self._cache.keys[layer, :, kept], self._cache.values[layer, :, kept] = keys[place], values[place]
            for tap, rows in tree.hidden.items():
                self._hidden.write(tap, kept, rows[place : place + 1])
            kept += 1
        self._cached = ids[:kept]
        return kept

    def _feed_tree(
        self, ids: NDArray[np.int64], nodes: NDArray[np.int64], parents: Sequence[int], of_depth: Sequence[int]
    ) -> Array:
        """Run the last token of a context, which is not in the cache, and a tree behind it; their normed hidden rows.

        `nodes` and `of_depth` have that last token in front.
        """
        start = len(ids) - 1
        self._cached, self._tree = ids[:start], None  # what follows is about to be overwritten
        self._cache.reserve(len(ids) + max(of_depth))
        weights, epsilon = self._weights, self._architecture.norm_epsilon
        cosines, sines = turns(weights.rope, start, len(ids) + max(of_depth))
        angles = cosines[of_depth], sines[of_depth]
        ways = [[0, *(place + 1 for place in branch(parents, node))] for node in range(-1, len(parents))]
        kept: list[tuple[Array, Array]] = []
        hidden_of: dict[int, Array] = {}
        hidden = weights.embedding[nodes]  # (1 + n, width)
        with np.errstate(over="ignore"):
            for index, layer in enumerate(weights.layers):
                heads = self._heads(layer, _norm(hidden, layer.attention_norm, epsilon), angles)
                queries, own_keys, own_values = self._parts(heads)
                keys, values = self._cache.keys[index], self._cache.values[index]
                mixed = []
                for row, way in enumerate(ways):  # the places behind the context hold one branch after the other
                    stop = start + len(way)
                    keys[:, start:stop], values[:, start:stop] = own_keys[:, way], own_values[:, way]
                    mixed.append(attend(queries[row : row + 1], keys[:, :stop], values[:, :stop]))
                hidden = hidden + _product(np.concatenate(mixed), layer.output)
                hidden = hidden + _feed_forward(layer, _norm(hidden, layer.ffn_norm, epsilon))
                kept.append((own_keys[:, 1:].swapaxes(0, 1), own_values[:, 1:].swapaxes(0, 1)))
                hidden_of[index] = hidden
        final = _norm(hidden, weights.final_norm, epsilon)
        hidden_of[FINAL] = final
        taps = {tap: hidden_of[tap] for tap in self._hidden.taps}
        for tap, rows in taps.items():
            self._hidden.write(tap, start, rows[:1])
        self._cached = ids
        of_layers = [keys for keys, _ in kept], [values for _, values in kept]
        of_nodes = {tap: rows[1:] for tap, rows in taps.items()}
        self._tree = TreeCache(len(ids), nodes[1:].tolist(), tuple(parents), *of_layers, of_nodes)
        return final

    def _feed(self, ids: NDArray[np.int64], start: int, stop: int) -> Array:
        """Run the tokens start to stop - 1 behind those in the cache; their normed hidden rows."""
        self._cached, self._tree = ids[:start], None  # what follows is about to be overwritten
        self._cache.reserve(stop)
        weights, epsilon = self._weights, self._architecture.norm_epsilon
        angles = turns(weights.rope, start, stop)
        taps = self._hidden.taps
        hidden = weights.embedding[ids[start:stop]]  # (n, width)
        with np.errstate(over="ignore"):  # exp(-gate) may be inf, and 1 / (1 + inf) is the 0 it should be
            for index, layer in enumerate(weights.layers):
                hidden = hidden + self._attention(index, layer, _norm(hidden, layer.attention_norm, epsilon), angles)
                hidden = hidden + _feed_forward(layer, _norm(hidden, layer.ffn_norm, epsilon))
                if index in taps:
                    self._hidden.write(index, start, hidden)
        final = _norm(hidden, weights.final_norm, epsilon)
        if FINAL in taps:
            self._hidden.write(FINAL, start, final)
        self._cached = ids[:stop]
        return final

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

    def _attention(self, index: int, layer: Layer, rows: Array, angles: tuple[Array, Array]) -> Array:
        start = len(self._cached)
        stop = start + len(rows)
        keys, values = self._cache.keys[index], self._cache.values[index]  # (n_kv_heads, room, head_dim)
        queries, keys[:, start:stop], values[:, start:stop] = self._parts(self._heads(layer, rows, angles))
        if len(rows) > N_SEPARATE_ROWS:
            mixed = attend(queries, keys[:, :stop], values[:, :stop])
        else:
            ends = range(start + 1, stop + 1)
            mixed = np.concatenate(
                [attend(queries[i : i + 1], keys[:, :end], values[:, :end]) for i, end in enumerate(ends)]
            )
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
