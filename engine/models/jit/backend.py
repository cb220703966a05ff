"""A transformer that numba compiles for this processor, on weights of 4 bits where the file has such.

It keeps the promises of `transformer.Transformer` by the same means, and one more than ONNX Runtime
does: a row is always the same, bit for bit, alone, in a block and along a branch of a tree, because
every row goes through the same operations in the same order. Activations are rounded to 8 bits in
the products, so that its rows differ a little from those of numpy (`docs/backends.md`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.models.architecture import Architecture
from engine.models.attention import Cache
from engine.models.cached import CachedTransformer
from engine.models.hidden_rows import FINAL
from engine.models.jit.attention import MORE_SLOTS
from engine.models.jit.dot_products import GROUP
from engine.models.jit.memory import Memory, room_of_head
from engine.models.jit.passes import run_pass
from engine.models.jit.slots import along_branches, one_after_the_other
from engine.models.jit.stages import Shape, address, n_together
from engine.models.jit.team import team_of
from engine.models.jit.weights import Weights, stages_of
from engine.models.rope import turns
from engine.models.threads import n_session_threads
from engine.models.tree_cache import TreeCache
from engine.sampling import FoundPeaks, Peaks
from engine.tree import MOST_NODES, branch, depths

__all__ = ["JitTransformer", "Packed"]

Array = NDArray[np.float32]

CHUNK = 256  # rows that go through the layers at once; bounds the memory of a long prompt
MOST_TABLES = 64  # of stages that are kept for blocks of another size
PARTS_PER_THREAD = 4  # of a product: few enough to cost little, enough that no thread waits long for another


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """What all contexts of a model share.

    Attributes
    ----------
    shape : Shape
    weights : Weights
    frequencies : array, shape (n_dims / 2,)
        Radians per position of each rotating pair.
    """

    shape: Shape
    weights: Weights
    frequencies: NDArray[np.float64]


class JitTransformer(CachedTransformer):
    """A model packed from a file, for one thread at a time.

    See `Model`, `HiddenModel`, `TreeModel`, `LayeredModel` and `PeakedModel` for what it promises.

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
    most_nodes = MOST_NODES

    def __init__(self, architecture: Architecture, packed: Packed, *, name: str, n_threads: int | None = None) -> None:
        super().__init__(architecture, name=name)
        self._packed = packed
        self._n_threads = n_threads or n_session_threads("numba")
        self._team = team_of(self._n_threads)
        self._tables: dict[tuple[int, int, int], NDArray[np.int64]] = {}
        self._memory: Memory | None = None
        self._peaks: FoundPeaks | None = None  # of the rows that were computed last
        limit = architecture.context_length + MOST_NODES
        room = room_of_head(architecture.head_dim)
        self._cache = Cache(architecture.n_layers, architecture.n_kv_heads, room, limit)

    def fork(self, *, name: str | None = None) -> JitTransformer:
        """The same weights with an empty cache of their own; by another name, if one is given."""
        return JitTransformer(self._architecture, self._packed, name=name or self.name)

    def peaks(self, rows: Array) -> Peaks | None:
        """See `PeakedModel.peaks`."""
        return self._peaks if self._peaks is not None and self._peaks.logits is rows else None

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
        keys, values = self._cache.keys, self._cache.values
        n_room = keys.shape[2]
        memory = self._memory_of(n_rows)
        tokens = np.ascontiguousarray(piece, np.int64)
        asked = min(max(first_asked - start, 0), n_rows)
        depth = np.arange(n_rows) if ways is None else np.array([0, *depths(links)])
        cosines, sines = (table[depth, 0] for table in turns(packed.frequencies, start, start + n_rows))
        slots, n_slots = one_after_the_other(start, n_rows) if ways is None else along_branches(start, ways)
        kept = self._hidden.taps if n_layers == self.n_layers else ()  # what an early exit shows is not kept
        taps = [tap for tap in kept if tap != FINAL]
        places_of_taps = np.full(self.n_layers, -1, np.int64)
        places_of_taps[taps] = np.arange(len(taps))
        streams = np.empty((len(taps), n_rows, width), np.float32)
        logits = np.empty((n_rows - asked, packed.weights.head.blocks.shape[1] * GROUP), np.float32)
        best_tokens, best_logits = np.empty(len(logits), np.int64), np.empty((len(logits), 2), np.float32)
        scores = np.empty((self._n_threads, n_together(packed.shape), n_room + MORE_SLOTS), np.float32)
        stages = self._stages(n_rows, n_layers, asked)
        run_pass(
            self._team,
            stages,
            memory,
            start=start,
            slots=address(slots),
            row_slots=0 if ways is None else slots.shape[1],
            n_slots=address(n_slots),
            cosines=address(cosines),
            sines=address(sines),
            n_turned=cosines.shape[1],
            tokens=address(tokens),
            keys=address(keys),
            values=address(values),
            n_room=n_room,
            taps=address(places_of_taps),
            streams=address(streams),
            n_rows=n_rows,
            results=address(logits),
            row_results=logits.shape[1],
            best_tokens=address(best_tokens),
            best_logits=address(best_logits),
            scores=address(scores),
            n_scores=scores[0].size,
            row_scores=scores.shape[2],
        )
        shown = dict(zip(taps, streams, strict=True))
        if kept:
            shown[FINAL] = memory.normed[:n_rows].copy()
        rows = np.ascontiguousarray(logits[:, : self.vocab_size])
        known = 0 < len(rows) <= MOST_NODES + 1 and np.isfinite(best_logits[:, 0]).all()
        self._peaks = FoundPeaks(rows, best_tokens.tolist(), *best_logits.T.tolist()) if known else None
        return rows, shown

    def _stages(self, n_rows: int, n_layers: int, first_asked: int) -> NDArray[np.int64]:
        key = n_rows, n_layers, first_asked
        if key not in self._tables:
            if len(self._tables) == MOST_TABLES:
                self._tables.clear()
            n_parts = PARTS_PER_THREAD * self._n_threads
            self._tables[key] = stages_of(self._packed.weights, self._packed.shape, *key, n_parts, self.vocab_size)
        return self._tables[key]

    def _memory_of(self, n_rows: int) -> Memory:
        if self._memory is None or n_rows > self._memory.n_rows:
            weights = self._packed.weights
            matrices = weights.qkv, weights.output, weights.gate_up, weights.down
            self._memory = Memory(n_rows, self._architecture.width, self._packed.shape, matrices)
        return self._memory
