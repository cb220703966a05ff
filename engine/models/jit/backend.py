"""A transformer that numba compiles for this processor, on weights of 4 bits where the file has such.

It keeps the promises of `transformer.Transformer` by the same means, and one more than ONNX Runtime
does: a row is always the same, bit for bit, alone, in a block and along a branch of a tree, because
every row goes through the same operations in the same order. Activations are rounded to 8 bits in
the products, so that its rows differ a little from those of numpy (`docs/backends.md`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.models.architecture import Architecture
from engine.models.attention import Cache
from engine.models.cached import CachedTransformer
from engine.models.hidden_rows import FINAL
from engine.models.jit.attention import ATTENTION_UNIT
from engine.models.jit.dot_products import BLOCK, GROUP
from engine.models.jit.packed import matrix_rows
from engine.models.jit.product import Matrix
from engine.models.jit.program import (
    N_COUNTERS,
    Memory,
    Pass,
    Plan,
    Shape,
    Weights,
    Work,
    assist,
    end,
    forward,
    plan,
)
from engine.models.jit.team import Team
from engine.models.rope import turns
from engine.models.threads import n_session_threads
from engine.models.tree_cache import TreeCache
from engine.tree import MOST_NODES, branch, depths

__all__ = ["JitTransformer", "Packed"]

Array = NDArray[np.float32]

CHUNK = 256  # rows that go through the layers at once; bounds the memory of a long prompt
PARTS_PER_THREAD = 3  # of a product: few enough to cost little, enough that no thread waits long for another


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """What all contexts of a model share.

    Attributes
    ----------
    shape : Shape
    weights : Weights
    embedding : Matrix
        The head's, where the file ties them.
    frequencies : array, shape (n_dims / 2,)
        Radians per position of each rotating pair.
    """

    shape: Shape
    weights: Weights
    embedding: Matrix
    frequencies: NDArray[np.float64]


class JitTransformer(CachedTransformer):
    """A model packed from a file; see `Model`, `HiddenModel`, `TreeModel` and `LayeredModel` for what it promises.

    Parameters
    ----------
    architecture : Architecture
    packed : Packed
        Shared by all forks.
    name : str
    n_threads : int, optional
        As many as `engine.models.threads.n_session_threads` says, if not given.
    """

    backend = "numba"
    exact_rows = True

    def __init__(self, architecture: Architecture, packed: Packed, *, name: str, n_threads: int | None = None) -> None:
        super().__init__(architecture, name=name)
        self._packed = packed
        self._n_threads = n_threads or n_session_threads()
        self._team = _team(self._n_threads)
        self._plans: dict[tuple[int, int, bool], Plan] = {}
        self._memory: Memory | None = None
        length = -(-architecture.head_dim // ATTENTION_UNIT) * ATTENTION_UNIT
        limit = architecture.context_length + MOST_NODES
        self._cache = Cache(architecture.n_layers, architecture.n_kv_heads, length, limit)

    def fork(self, *, name: str | None = None) -> JitTransformer:
        """The same weights with an empty cache of their own; by another name, if one is given."""
        return JitTransformer(self._architecture, self._packed, name=name or self.name)

    def _feed(self, ids: NDArray[np.int64], kept: int, first_asked: int) -> list[Array]:
        """See `CachedTransformer._feed`."""
        pieces = []
        for start in range(kept, len(ids), CHUNK):
            self._cached = ids[:start]  # what follows is about to be overwritten
            self._early.forget()
            piece = ids[start : start + CHUNK]
            rows, hidden = self._run(piece, start, first_asked, self.n_layers)
            for tap, stream in hidden.items():
                self._hidden.write(tap, start, stream)
            self._cached = ids[: start + len(piece)]
            if len(rows):
                pieces.append(rows)
        return pieces

    def _feed_early(self, ids: NDArray[np.int64], kept: int, first_asked: int, n_layers: int) -> list[Array]:
        """See `CachedTransformer._feed_early`."""
        pieces = []
        for start in range(kept, len(ids), CHUNK):
            self._begin_early(ids[:start], n_layers)
            piece = ids[start : start + CHUNK]
            pieces.append(self._run(piece, start, first_asked, n_layers)[0])
            self._early.begin(ids[: start + len(piece)], n_layers)
        return pieces

    def _feed_tree(
        self, ids: NDArray[np.int64], tokens: NDArray[np.int64], links: tuple[int, ...]
    ) -> tuple[Array, TreeCache]:
        """See `CachedTransformer._feed_tree`; a row is the same, bit for bit, as that of `logits` for its branch."""
        start = len(ids) - 1
        self._cached = ids[:start]  # what follows is about to be overwritten
        self._early.forget()
        ways = [[0, *(place + 1 for place in branch(links, node))] for node in range(-1, len(links))]
        rows, hidden = self._run(np.concatenate([ids[start:], tokens]), start, start, self.n_layers, links, ways)
        for tap, stream in hidden.items():
            self._hidden.write(tap, start, stream[:1])
        return rows, TreeCache(len(ids), tokens.tolist(), links, {tap: stream[1:] for tap, stream in hidden.items()})

    def _take(self, tree: TreeCache, place: int, slot: int) -> None:
        """See `CachedTransformer._take`; the places of a branch rise, so nothing is overwritten that is to be moved."""
        for cache in (self._cache.keys, self._cache.values):
            cache[:, :, slot] = cache[:, :, tree.n_context + place]
        for tap, rows in tree.hidden.items():
            self._hidden.write(tap, slot, rows[place : place + 1])

    def _run(
        self,
        piece: NDArray[np.int64],
        start: int,
        first_asked: int,
        n_layers: int,
        links: tuple[int, ...] = (),
        ways: Sequence[Sequence[int]] | None = None,
    ) -> tuple[Array, dict[int, Array]]:
        """Feed the tokens from position `start` on; rows of logits from `first_asked` on, and hidden rows by tap."""
        packed, n_rows, width = self._packed, len(piece), self._architecture.width
        self._cache.reserve(start + n_rows)
        cosines, sines = turns(packed.frequencies, start, start + n_rows)
        of_depth = np.arange(n_rows) if ways is None else np.array([0, *depths(links)])
        places, n_places = _chain(n_rows) if ways is None else _rectangle(ways)
        asked = min(max(first_asked - start, 0), n_rows)
        sizes, n_parts = self._plan(n_rows, n_layers, asked < n_rows)
        turned = cosines[of_depth, 0], sines[of_depth, 0]
        task = Pass(start, n_layers, asked, places, n_places, *turned, sizes, n_parts)
        taps = [tap for tap in self._hidden.taps if tap != FINAL]
        places_of_taps = np.full(self.n_layers, -1, np.int64)
        places_of_taps[taps] = np.arange(len(taps))
        streams = np.empty((len(taps), n_rows, width), np.float32)
        final = np.empty((n_rows, width), np.float32)
        logits = np.empty((n_rows - asked, packed.weights.head.blocks.shape[1] * GROUP), np.float32)
        cache = self._cache
        work = Work(packed.shape, packed.weights, self._memory_of(n_rows), task, cache.keys, cache.values, logits)
        try:
            self._team.call(assist, (work,))
            hidden = np.ascontiguousarray(matrix_rows(packed.embedding, piece)[:, :width])
            forward(work, hidden, places_of_taps, streams, final)
        finally:  # no helper waits for a pass that was interrupted before it began
            end(work)
        if self._n_threads == 1:
            assist(work)  # does nothing, but is compiled: `load_packed` counts on it
        shown = dict(zip(taps, streams, strict=True))
        if self._hidden.taps:
            shown[FINAL] = final
        return np.ascontiguousarray(logits[:, : self.vocab_size]), shown

    def _plan(self, n_rows: int, n_layers: int, with_head: bool) -> Plan:
        key = n_rows, n_layers, with_head
        if key not in self._plans:
            n_heads, n_parts = self._architecture.n_heads, PARTS_PER_THREAD * self._n_threads
            self._plans[key] = plan(self._packed.weights, n_heads, n_rows, n_layers, n_parts, with_head=with_head)
        return self._plans[key]

    def _memory_of(self, n_rows: int) -> Memory:
        """Room for a pass, with counters of its own: a helper that comes late must not meet those of another pass."""
        if self._memory is None or n_rows > len(self._memory.numbers):
            weights = self._packed.weights
            matrices = (weights.qkv, weights.output, weights.gate_up, weights.down)
            n_blocks = max(matrix.n_blocks for matrix in (*matrices, weights.head))
            n_outputs = max(matrix.blocks.shape[1] for matrix in matrices) * GROUP
            self._memory = Memory(
                np.empty(0, np.int64),
                np.empty((n_rows, n_blocks * BLOCK), np.int8),
                np.empty((n_rows, n_blocks * 2), np.float32),
                np.empty((n_rows, n_outputs), np.float32),
                np.empty((n_rows, self._architecture.n_heads * self._architecture.head_dim), np.float32),
            )
        whole = self._memory
        rows = (whole.numbers[:n_rows], whole.factors[:n_rows], whole.outputs[:n_rows], whole.gathered[:n_rows])
        return Memory(np.zeros(N_COUNTERS, np.int64), *rows)


@functools.cache
def _team(n_threads: int) -> Team:
    return Team(n_threads - 1)


@functools.lru_cache(maxsize=64)
def _chain(n_rows: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Every row sees those before it and itself."""
    each = np.arange(n_rows, dtype=np.int32)
    return np.tile(each, (n_rows, 1)), each + np.int32(1)


def _rectangle(ways: Sequence[Sequence[int]]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    places = np.zeros((len(ways), len(ways)), np.int32)
    for row, way in enumerate(ways):
        places[row, : len(way)] = way
    return places, np.array([len(way) for way in ways], np.int32)
