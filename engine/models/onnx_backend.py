"""A transformer that ONNX Runtime runs: the compiled counterpart of `transformer.Transformer`.

It keeps the same promises by the same means: the longest common prefix of what it has seen is not
fed again.  Its weights and activations are rounded to 8 bits in its products, so that its rows
differ a little from those of the numpy path (`docs/backends.md` says how little).

With `exact_rows` a row is the same, bit for bit, alone and in a block; see `onnx_graph` for how.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.models.architecture import Architecture
from engine.models.base import Logits
from engine.models.context import checked_ids, n_common
from engine.models.early_exit import EarlyCache
from engine.models.hidden_rows import FINAL, HiddenRows
from engine.models.onnx_graph import residual
from engine.models.onnx_session import Buffers, Compiled
from engine.values import Tokens

__all__ = ["OnnxTransformer"]

Array = NDArray[np.float32]

CHUNK = 256  # rows that go through the layers at once; bounds the memory of a long prompt
TILE = 32  # attention takes rows in tiles of so many, or a multiple; a tile of one row is computed otherwise


class OnnxTransformer:
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
        self.name = name
        self.vocab_size = architecture.vocab_size
        self.context_length = architecture.context_length
        self.exact_rows = exact_rows
        self._architecture = architecture
        self._compiled = compiled
        self._buffers = Buffers(compiled, architecture)
        self._hidden = HiddenRows(architecture.n_layers, architecture.width, architecture.context_length)
        self._cached: NDArray[np.int64] = np.empty(0, np.int64)  # the ids whose keys and values the buffers hold
        self._early = EarlyCache()
        self._early_buffers: dict[int, Buffers] = {}

    @property
    def n_layers(self) -> int:
        """How many layers there are."""
        return self._architecture.n_layers

    def n_weights(self, n_layers: int) -> int:
        """See `LayeredModel.n_weights`."""
        return self._architecture.n_weights(n_layers)

    def fork(self, *, name: str | None = None, exact_rows: bool | None = None) -> OnnxTransformer:
        """The same weights with buffers of their own; by another name or with another mode of rows, if one is given."""
        exact = self.exact_rows if exact_rows is None else exact_rows
        return OnnxTransformer(self._architecture, self._compiled, name=name or self.name, exact_rows=exact)

    def logits(self, context: Tokens, last: int = 1) -> Logits:
        """See `Model.logits`; float32, shape (last, vocab_size).

        Raises
        ------
        PromptError
            If the context is empty, longer than `context_length` or holds an id outside the
            vocabulary, or if `last` is not from 1 to its length.
        ForwardError
            If ONNX Runtime fails.
        """
        ids = self._checked(context, last)
        first_asked = len(ids) - last
        pieces = self._feed(ids, min(n_common(ids, self._cached), first_asked), first_asked)
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def hidden(self, context: Tokens, last: int = 1, taps: tuple[int, ...] = ()) -> Array:
        """See `HiddenModel.hidden`; float32, shape (last, 1 + len(taps), width).

        Raises
        ------
        PromptError, ForwardError
            As `logits` does.
        SettingError
            If a tap is not the index of a layer.
        """
        ids = self._checked(context, last)
        if self._hidden.keep(taps):
            self._cached = ids[:0]  # fed before its hidden rows were kept
        self._feed(ids, n_common(ids, self._cached), len(ids))
        return self._hidden.read(len(ids) - last, len(ids), taps)

    def early_logits(self, context: Tokens, last: int, n_layers: int) -> Logits:
        """See `LayeredModel.early_logits`; float32, shape (last, vocab_size).

        Raises
        ------
        PromptError, ForwardError
            As `logits` does.
        BackendError
            If the graph that ends there cannot be made.
        """
        ids = self._checked(context, last)
        first_asked = len(ids) - last
        kept = min(self._early.n_kept(ids, n_layers, self._cached), first_asked)
        if n_layers not in self._early_buffers:
            host = self._buffers
            self._early_buffers[n_layers] = Buffers(self._compiled, self._architecture, n_layers=n_layers, host=host)
        pieces = []
        for start in range(kept, len(ids), CHUNK):
            self._cached = self._cached[:start]  # behind it the first layers are overwritten
            self._early.begin(ids[:start], n_layers)
            piece = ids[start : start + CHUNK]
            pieces.append(self._run(self._early_buffers[n_layers], piece, start, first_asked))
            self._early.begin(ids[: start + len(piece)], n_layers)
        return np.concatenate(pieces)

    def _checked(self, context: Tokens, last: int) -> NDArray[np.int64]:
        return checked_ids(self.name, context, last, vocab_size=self.vocab_size, context_length=self.context_length)

    def _feed(self, ids: NDArray[np.int64], kept: int, first_asked: int) -> list[Array]:
        """Run the tokens behind the first `kept`, in chunks; the rows of logits from `first_asked` on."""
        names = {tap: "final" if tap == FINAL else residual(tap) for tap in self._hidden.taps}
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
