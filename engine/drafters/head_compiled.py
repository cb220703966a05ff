"""A draft head that ONNX Runtime runs; the counterpart of `NumpyHead` for a compiled target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engine.drafters.head_file import HeadWeights
from engine.drafters.head_graph import head_graph
from engine.drafters.head_network import Guess
from engine.drafters.screen import N_CANDIDATES
from engine.models.rope import Rope, frequencies, turns
from engine.models.threads import n_threads

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, IOBinding

__all__ = ["CompiledHead", "Graphs", "compile_head"]

Array = NDArray[np.float32]

FIRST_ROOM = 256  # tokens that the cache has room for to begin with; doubles when it runs out


@dataclass(frozen=True, slots=True, eq=False)
class Graphs:
    """The two graphs of a head in memory; several runs may share them.

    Attributes
    ----------
    first, further : InferenceSession
        Depth 0 and the depths behind it.
    n_candidates : int
    """

    first: InferenceSession
    further: InferenceSession
    n_candidates: int


def compile_head(weights: HeadWeights, head: Array, n_candidates: int = N_CANDIDATES) -> Graphs:
    """Build both graphs and load them; `head` (V, W) are the target's head rows of `weights.tokens`."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors only
    wanted = n_threads()
    if wanted is not None:
        options.intra_op_num_threads = wanted
    rough = head @ weights.screen_up  # (V, rank)
    n_candidates = min(n_candidates, len(weights.tokens))
    first, further = (
        onnxruntime.InferenceSession(
            head_graph(weights, rough, n_candidates, first=is_first), options, providers=["CPUExecutionProvider"]
        )
        for is_first in (True, False)
    )
    return Graphs(first, further, n_candidates)


class CompiledHead:
    """One context of a compiled head; see `NumpyHead` for what it promises.

    Parameters
    ----------
    graphs : Graphs
    weights : HeadWeights
    head : array, shape (V, W)
        The target's head rows of `weights.tokens`.
    limit : int
        Tokens that its cache may ever hold.
    """

    def __init__(self, graphs: Graphs, weights: HeadWeights, head: Array, limit: int) -> None:
        self._weights = weights
        self._head = head
        self._limit = limit
        self._first, self._further = graphs.first, graphs.further
        self._bindings: list[IOBinding] = [graphs.first.io_binding(), graphs.further.io_binding()]
        self._rope = frequencies(Rope(weights.rope_base, weights.head_dim, interleaved=False))
        self._seqlens = np.zeros(1, np.int32)
        self._total = np.zeros((), np.int32)
        self._state = np.empty((1, 1, weights.width), np.float32)
        self._guess = np.empty((1, 1, weights.width), np.float32)
        self._places = np.empty((1, 1, graphs.n_candidates), np.int64)
        self._room = 0
        self._caches: list[Array] = []
        self._alive: dict[tuple[int, str], Any] = {}  # what is bound must stay alive
        for index, binding in enumerate(self._bindings):
            self._bind(index, "seqlens_k", self._seqlens)
            self._bind(index, "total", self._total)
            for name, array in (("state", self._state), ("guess", self._guess), ("places", self._places)):
                binding.bind_output(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)

    def read(self, start: int, features: Array, embeddings: Array) -> Guess:
        """See `NumpyHead.read`."""
        return self._run(0, start, features.reshape(1, len(features), -1), embeddings[None])

    def go_on(self, place: int, state: Array, embedding: Array) -> Guess:
        """See `NumpyHead.go_on`."""
        return self._run(1, place, state[None, None], embedding[None, None])

    def _run(self, index: int, start: int, given: Array, embeddings: Array) -> Guess:
        stop = start + given.shape[1]
        self._reserve(stop)
        self._seqlens[0] = stop - 1
        self._total[()] = stop
        self._bind(index, "given", np.ascontiguousarray(given))
        self._bind(index, "embeddings", np.ascontiguousarray(embeddings))
        session = self._further if index else self._first
        session.run_with_iobinding(self._bindings[index])
        places = np.sort(self._places[0, 0])
        return Guess(self._state[0, 0].copy(), self._weights.tokens[places], self._head[places] @ self._guess[0, 0])

    def _bind(self, index: int, name: str, array: NDArray[Any]) -> Any:
        from onnxruntime import OrtValue

        value = self._alive[index, name] = OrtValue.ortvalue_from_numpy(array)
        self._bindings[index].bind_ortvalue_input(name, value)
        return value

    def _reserve(self, n_tokens: int) -> None:
        if n_tokens <= self._room:
            return
        weights, before = self._weights, self._room
        self._room = min(self._limit, max(n_tokens, 2 * self._room, FIRST_ROOM))
        cosines, sines = turns(self._rope, 0, self._room)  # (room, 1, head_dim / 2) each
        larger = [np.zeros((1, weights.n_kv_heads, self._room, weights.head_dim), np.float32) for _ in ("key", "value")]
        for new, old in zip(larger, self._caches, strict=False):
            new[:, :, :before] = old
        self._caches = larger
        for index, binding in enumerate(self._bindings):
            self._bind(index, "cosines", cosines[:, 0])
            self._bind(index, "sines", sines[:, 0])
            for part, cache in zip(("key", "value"), larger, strict=True):
                binding.bind_ortvalue_output(f"present.{part}", self._bind(index, f"past.{part}", cache))
