"""A draft head that ONNX Runtime runs; the counterpart of `NumpyHead` for a compiled target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engine.drafters.head_file import HeadWeights
from engine.drafters.head_graph import input_graph, layer_graph
from engine.drafters.head_network import Guess
from engine.drafters.screen import N_CANDIDATES
from engine.models.rope import Rope, frequencies, turns
from engine.models.threads import n_threads

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, IOBinding, OrtValue

__all__ = ["CompiledHead", "Graphs", "compile_head"]

Array = NDArray[np.float32]

KEPT_INPUTS = 33  # tokens that a step may add: their arrays are bound once for each number of tokens
FIRST_ROOM = 256  # tokens that the cache has room for to begin with; doubles when it runs out


@dataclass(frozen=True, slots=True, eq=False)
class Graphs:
    """The graphs of a head in memory; several runs may share them.

    Attributes
    ----------
    first, further : InferenceSession
        Make the layer's input, at depth 0 and at the depths behind it.
    layer : InferenceSession
    n_candidates : int
    """

    first: InferenceSession
    further: InferenceSession
    layer: InferenceSession
    n_candidates: int


def compile_head(weights: HeadWeights, head: Array, n_candidates: int = N_CANDIDATES) -> Graphs:
    """Build the graphs and load them; `head` (V, W) are the target's head rows of `weights.tokens`."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors only
    wanted = n_threads()
    if wanted is not None:
        options.intra_op_num_threads = wanted
    n_candidates = min(n_candidates, len(weights.tokens))
    first, further, layer = (
        onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        for content in (
            input_graph(weights, first=True),
            input_graph(weights, first=False),
            layer_graph(weights, head @ weights.screen_up, n_candidates),
        )
    )
    return Graphs(first, further, layer, n_candidates)


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
        self._graphs = graphs
        self._weights = weights
        self._head = head
        self._limit = limit
        self._rope = frequencies(Rope(weights.rope_base, weights.head_dim, interleaved=False))
        self._room = 0
        self._caches: list[Array] = []
        self._seqlens, self._total = np.zeros(1, np.int32), np.zeros((), np.int32)
        given, embedding, x, self._state, self._guess = (np.empty((1, 1, weights.width), np.float32) for _ in range(5))
        self._places = np.empty((1, 1, graphs.n_candidates), np.int64)
        self._rows = np.empty((graphs.n_candidates, weights.width), np.float32)  # head rows of the candidates
        self._given, self._embedding = given, embedding  # of a further depth
        self._inputs: dict[int, _Input] = {}  # of depth 0, by the number of tokens
        self._further = _Bound(graphs.further, {"given": given, "embeddings": embedding}, {"x": x})
        self._layer = _Bound(
            graphs.layer,
            {"x": x, "seqlens_k": self._seqlens, "total": self._total},
            {"state": self._state, "guess": self._guess, "places": self._places},
        )
        self._x = self._layer.take("x", x)

    def read(self, start: int, features: Array, embeddings: Array) -> Guess:
        """See `HeadNetwork.read`."""
        n_tokens = len(features)
        at_first = self._inputs.get(n_tokens) or _Input(self._graphs.first, features.shape)
        if n_tokens <= KEPT_INPUTS:
            self._inputs[n_tokens] = at_first
        self._layer.bind("x", at_first.run(features, embeddings))
        guess = self._run(start + n_tokens)
        self._layer.bind("x", self._x)
        return guess

    def go_on(self, place: int, state: Array, embedding: Array) -> Guess:
        """See `HeadNetwork.go_on`."""
        self._given[0, 0], self._embedding[0, 0] = state, embedding
        self._further.run()
        return self._run(place + 1)

    def _run(self, stop: int) -> Guess:
        self._reserve(stop)
        self._seqlens[0] = stop - 1
        self._total[()] = stop
        self._layer.run()
        places = np.sort(self._places[0, 0])
        self._head.take(places, axis=0, out=self._rows, mode="clip")  # the default mode copies twice
        return Guess(self._state[0, 0].copy(), self._weights.tokens[places], self._rows @ self._guess[0, 0])

    def _reserve(self, n_tokens: int) -> None:
        if n_tokens <= self._room:
            return
        weights, before = self._weights, self._room
        self._room = min(self._limit, max(n_tokens, 2 * self._room, FIRST_ROOM))
        cosines, sines = turns(self._rope, 0, self._room)  # (room, 1, head_dim / 2) each
        self._layer.take("cosines", cosines[:, 0])
        self._layer.take("sines", sines[:, 0])
        larger = [np.zeros((1, weights.n_kv_heads, self._room, weights.head_dim), np.float32) for _ in ("key", "value")]
        for new, old in zip(larger, self._caches, strict=False):
            new[:, :, :before] = old
        self._caches = larger
        for part, cache in zip(("key", "value"), larger, strict=True):
            self._layer.in_place(f"past.{part}", f"present.{part}", cache)


class _Bound:
    """A session with the arrays that it reads and writes; they are not copied."""

    def __init__(self, session: InferenceSession, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        self._session = session
        self._binding: IOBinding = session.io_binding()
        self._alive: dict[str, Any] = dict(outputs)  # what is bound must stay alive
        for name, array in inputs.items():
            self.take(name, array)
        for name, array in outputs.items():
            self._binding.bind_output(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)

    def run(self) -> None:
        self._session.run_with_iobinding(self._binding)

    def take(self, name: str, array: NDArray[Any]) -> OrtValue:
        from onnxruntime import OrtValue

        array = np.ascontiguousarray(array)
        value = OrtValue.ortvalue_from_numpy(array)
        self._alive[name] = (array, value)
        self.bind(name, value)
        return value

    def bind(self, name: str, value: OrtValue) -> None:
        """Read from a value whose array the caller keeps alive."""
        self._binding.bind_ortvalue_input(name, value)

    def in_place(self, past: str, present: str, array: NDArray[Any]) -> None:
        self._binding.bind_ortvalue_output(present, self.take(past, array))


class _Input:
    """The graph of depth 0 for one number of tokens; `shape` is that of their features, (n, D, W)."""

    def __init__(self, session: InferenceSession, shape: tuple[int, ...]) -> None:
        from onnxruntime import OrtValue

        n_tokens, n_taps, width = shape
        self._given = np.empty((1, n_tokens, n_taps * width), np.float32)
        self._embeddings, self._x = (np.empty((1, n_tokens, width), np.float32) for _ in range(2))
        self._bound = _Bound(session, {"given": self._given, "embeddings": self._embeddings}, {"x": self._x})
        self._value = OrtValue.ortvalue_from_numpy(self._x)

    def run(self, features: Array, embeddings: Array) -> OrtValue:
        """The layer's input, good until the next call."""
        self._given[0], self._embeddings[0] = features.reshape(len(features), -1), embeddings
        self._bound.run()
        return self._value
