"""A transformer that ONNX Runtime runs: the compiled counterpart of `transformer.Transformer`.

It keeps the same promises by the same means: the longest common prefix of what it has seen is not
fed again.  Its weights and activations are rounded to 8 bits in its products, so that its rows
differ a little from those of the numpy path (`docs/backends.md` says how little).

With `exact_rows` a row is the same, bit for bit, alone and in a block; see `onnx_graph` for how.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.models.architecture import Architecture
from engine.models.base import Logits
from engine.models.cached import CachedTransformer
from engine.models.context import check_tree
from engine.models.hidden_rows import FINAL
from engine.models.onnx_graph import residual
from engine.models.onnx_session import Buffers, Compiled
from engine.models.onnx_tree import places_and_mask
from engine.models.tree_cache import TreeCache
from engine.models.tree_rows import rows_by_branch
from engine.values import Tokens

__all__ = ["OnnxTransformer"]

Array = NDArray[np.float32]

CHUNK = 256  # rows that go through the layers at once; bounds the memory of a long prompt
TILE = 32  # attention takes rows in tiles of so many, or a multiple; a tile of one row is computed otherwise


class OnnxTransformer(CachedTransformer):
    """A model compiled from a file; see `Model` and `HiddenModel` for what it promises.

    Parameters
    ----------
    architecture : Architecture
    compiled : Compiled
        Shared by all forks.
    name : str
    exact_rows : bool, default True
        Whether a row is to be the same, bit for bit, whatever rows are computed beside it.
    """

    backend = "ort"

    def __init__(self, architecture: Architecture, compiled: Compiled, *, name: str, exact_rows: bool = True) -> None:
        super().__init__(architecture, name=name)
        self.exact_rows = exact_rows
        self._compiled = compiled
        self._buffers = Buffers(compiled, architecture)
        self._early_buffers: dict[int, Buffers] = {}
        self._tree_buffers: Buffers | None = None

    def fork(self, *, name: str | None = None, exact_rows: bool | None = None) -> OnnxTransformer:
        """The same weights with buffers of their own; by another name or with another mode of rows, if one is given."""
        exact = self.exact_rows if exact_rows is None else exact_rows
        return OnnxTransformer(self._architecture, self._compiled, name=name or self.name, exact_rows=exact)

    def tree_logits(self, context: Tokens, tokens: Tokens, parents: Sequence[int]) -> Logits:
        """See `CachedTransformer.tree_logits`.

        In one pass the last bits of a row depend on the tree; so with `exact_rows` every branch gets a plain call, and
        so it does where a context has no room for a whole tree behind it, or is one token: with nothing cached before
        them, `GroupQueryAttention` takes the rows for a prompt, and heeds neither positions nor mask.
        """
        no_room = len(context) + len(tokens) >= self.context_length
        if self.exact_rows or no_room or len(context) == 1:
            check_tree(self.name, tokens, parents)
            return rows_by_branch(self, context, tokens, parents)
        return super().tree_logits(context, tokens, parents)

    def _feed_tree(
        self, ids: NDArray[np.int64], tokens: NDArray[np.int64], links: tuple[int, ...]
    ) -> tuple[Array, TreeCache]:
        """See `CachedTransformer._feed_tree`; raises `BackendError` if the graph for trees cannot be made."""
        if self._tree_buffers is None:
            self._tree_buffers = Buffers(self._compiled, self._architecture, host=self._buffers, for_trees=True)
        start = len(ids) - 1
        self._cached = ids[:start]  # what follows is about to be overwritten
        self._early.forget()
        positions, mask = places_and_mask(links, start)
        names = self._names()
        shown = dict.fromkeys(names.values(), np.empty((0, 0), np.float32))
        rows = self._tree_buffers.run(
            np.concatenate([ids[start:], tokens]),
            start,
            first_asked=0,
            repeat=False,
            shown=shown,
            more={"position_ids": positions, "attention_bias": mask},
        )
        for tap, name in names.items():
            self._hidden.write(tap, start, shown[name][:1])
        return rows, TreeCache(len(ids), tokens.tolist(), links, {tap: shown[name][1:] for tap, name in names.items()})

    def _take(self, tree: TreeCache, place: int, slot: int) -> None:
        """See `CachedTransformer._take`; the places of a branch rise, so nothing is overwritten that is to be moved."""
        self._buffers.move(tree.n_context + place, slot)
        for tap, rows in tree.hidden.items():
            self._hidden.write(tap, slot, rows[place : place + 1])

    def _names(self) -> dict[int, str]:
        """The outputs with the hidden rows that are kept, by tap."""
        return {tap: "final" if tap == FINAL else residual(tap) for tap in self._hidden.taps}

    def _feed_early(self, ids: NDArray[np.int64], kept: int, first_asked: int, n_layers: int) -> list[Array]:
        """See `CachedTransformer._feed_early`; raises `BackendError` if the graph that ends there cannot be made."""
        if n_layers not in self._early_buffers:
            host = self._buffers
            self._early_buffers[n_layers] = Buffers(self._compiled, self._architecture, n_layers=n_layers, host=host)
        pieces = []
        for start in range(kept, len(ids), CHUNK):
            self._begin_early(ids[:start], n_layers)
            piece = ids[start : start + CHUNK]
            pieces.append(self._run(self._early_buffers[n_layers], piece, start, first_asked))
            self._early.begin(ids[: start + len(piece)], n_layers)
        return pieces

    def _feed(self, ids: NDArray[np.int64], kept: int, first_asked: int) -> list[Array]:
        """See `CachedTransformer._feed`."""
        names = self._names()
        pieces = []
        for start in range(kept, len(ids), CHUNK):
            self._cached = ids[:start]  # what follows is about to be overwritten
            self._early.forget()
            piece = ids[start : start + CHUNK]
            shown = dict.fromkeys(names.values(), np.empty((0, 0), np.float32))
            rows = self._run(self._buffers, piece, start, first_asked, shown)
            for tap, name in names.items():
                self._hidden.write(tap, start, shown[name])
            self._cached = ids[: start + len(piece)]
            if len(rows):
                pieces.append(rows)
        return pieces

    def _run(
        self,
        buffers: Buffers,
        piece: NDArray[np.int64],
        start: int,
        first_asked: int,
        shown: dict[str, Array] | None = None,
    ) -> Array:
        """Feed a piece of the context that begins at `start`; its rows of logits from `first_asked` on."""
        asked = min(max(first_asked - start, 0), len(piece))
        repeat = self.exact_rows and len(piece) % TILE == 1
        return buffers.run(piece, start, first_asked=asked, repeat=repeat, shown={} if shown is None else shown)
