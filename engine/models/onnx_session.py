"""A compiled graph in memory, and the buffers of one context that it runs on.

Keys and values are bound as input and as output to the same memory, so that the graph writes them
in place, nothing is copied, and going back in the text is a smaller number (ONNX Runtime,
"I/O Binding"; the arrays are numpy's, which ONNX Runtime reads and writes directly).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import BackendError, ForwardError
from engine.models.architecture import Architecture
from engine.models.rope import turns

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, OrtValue

    from engine.models.onnx_parts import PartSessions

__all__ = ["Buffers", "Compiled", "open_session"]

Array = NDArray[np.float32]

SPIN_MICROSECONDS = "1000"
FIRST_ROOM = 256  # tokens that a cache has room for to begin with; doubles when it runs out


def open_session(path: Path, *, n_threads: int | None) -> InferenceSession:
    """Load the graph at `path`.

    Parameters
    ----------
    path : Path
    n_threads : int or None
        None leaves it to ONNX Runtime.

    Raises
    ------
    BackendError
        If ONNX Runtime cannot load it.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors only
    # Threads that sleep between two nodes cost a quarter of a token to wake; a thread that spins behind the last
    # node takes a core from whoever else has work. So they spin for as long as a node may take, and no longer.
    options.add_session_config_entry("session.intra_op.spin_duration_us", SPIN_MICROSECONDS)
    if n_threads is not None:
        options.intra_op_num_threads = n_threads
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as failure:  # its errors have no class of their own in common
        raise BackendError(
            f"ONNX Runtime {onnxruntime.__version__} cannot load {path}: {failure}; "
            "delete the folder that it is in, or use --backend numpy"
        ) from failure


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """What all contexts of a model share; several threads may run it at once.

    Attributes
    ----------
    session : InferenceSession
    frequencies : array, shape (n_dims / 2,)
        Radians per position of each rotating pair.
    parts : PartSessions
        The same graph, ending earlier or for trees.
    """

    session: InferenceSession
    frequencies: NDArray[np.float64]
    parts: PartSessions


class Buffers:
    """The keys and values of one context, bound to a session.

    Parameters
    ----------
    compiled : Compiled
    architecture : Architecture
    n_layers : int, optional
        Run the first layers only, on the keys and values of `host`.
    host : Buffers, optional
    for_trees : bool, default False
        Run trees, on the keys and values of `host`.
    """

    def __init__(
        self,
        compiled: Compiled,
        architecture: Architecture,
        *,
        n_layers: int = 0,
        host: Buffers | None = None,
        for_trees: bool = False,
    ) -> None:
        whole = compiled.parts.tree() if for_trees else compiled.session
        self._session = compiled.parts.early(n_layers) if n_layers else whole
        self._n_layers = n_layers or architecture.n_layers
        self._host = host
        self._frequencies = compiled.frequencies
        self._shape = architecture
        self._binding = self._session.io_binding()
        self._whole: dict[str, NDArray[Any]] = {
            "first_asked": np.zeros(1, np.int64),
            "first_repeated": np.zeros(1, np.int64),
            "n_rows": np.zeros(1, np.int64),
            "seqlens_k": np.zeros(1, np.int32),
            "total": np.zeros((), np.int32),
        }
        self._bound: dict[str, OrtValue] = {}  # what is bound must stay alive
        for name, array in self._whole.items():
            self._bind(name, array)
        self._caches: dict[str, Array] = {}
        self._room = 0

    def run(
        self,
        ids: NDArray[np.int64],
        start: int,
        *,
        first_asked: int,
        repeat: bool,
        shown: dict[str, Array],
        more: Mapping[str, NDArray[Any]] | None = None,
    ) -> Array:
        """Feed `ids` as the tokens from position `start` on.

        Parameters
        ----------
        ids : array, shape (n,)
        start : int
            Tokens before them, whose keys and values are here.
        first_asked : int
            The first of the n rows to give logits for; n for none.
        repeat : bool
            Whether to put a copy beside the last row in the attention.
        shown : dict
            Filled with the output of each of its names, shape (n, width).
        more : mapping, optional
            Further inputs of the graph, by name.

        Returns
        -------
        array, shape (n - first_asked, vocab_size)
        """
        n_rows, width = len(ids), self._shape.width
        total = start + n_rows + repeat
        self._reserve(total, start)
        whole = self._whole
        whole["first_asked"][0] = first_asked
        whole["first_repeated"][0] = n_rows - repeat
        whole["n_rows"][0] = n_rows
        whole["seqlens_k"][0] = total - 1
        whole["total"][()] = total
        self._bind("ids", np.ascontiguousarray(ids[None]))
        for name, array in (more or {}).items():
            self._bind(name, array)
        rows = self._output("logits", n_rows - first_asked, self._shape.vocab_size)
        for name in shown:
            shown[name] = self._output(name, n_rows, width)
        try:
            self._session.run_with_iobinding(self._binding)
        except Exception as failure:
            raise ForwardError(f"ONNX Runtime failed at {n_rows} tokens behind {start}: {failure}") from failure
        return rows

    def move(self, source: int, slot: int) -> None:
        """Make the keys and values at one place those of another."""
        for cache in self._caches.values():
            cache[:, :, slot] = cache[:, :, source]

    def _bind(self, name: str, array: NDArray[Any]) -> OrtValue:
        from onnxruntime import OrtValue

        value = self._bound[name] = OrtValue.ortvalue_from_numpy(array)
        self._binding.bind_ortvalue_input(name, value)
        return value

    def _output(self, name: str, *shape: int) -> Array:
        rows = np.empty(shape, np.float32)  # fresh: what was handed out before stays as it was
        self._binding.bind_output(name, "cpu", 0, np.float32, (1, *shape), rows.ctypes.data)
        return rows

    def _reserve(self, n_tokens: int, n_kept: int) -> None:
        """Make room for `n_tokens`, keeping the first `n_kept`; one place more than the context, for the copy."""
        shape, host = self._shape, self._host
        if host is not None:
            host._reserve(n_tokens, n_kept)
            room = host._room
        elif n_tokens > self._room:
            room = min(shape.context_length + 1, max(n_tokens, 2 * self._room, FIRST_ROOM))
        else:
            return
        if room == self._room:
            return
        self._room = room
        cosines, sines = turns(self._frequencies, 0, room)  # (room, 1, n_dims / 2) each
        self._bind("cosines", cosines[:, 0])
        self._bind("sines", sines[:, 0])
        for layer in range(self._n_layers):
            for part in ("key", "value"):
                name = f"past.{part}.{layer}"
                self._caches[name] = self._grown(name, n_kept) if host is None else host._caches[name]
                bound = self._bind(name, self._caches[name])
                self._binding.bind_ortvalue_output(f"present.{part}.{layer}", bound)

    def _grown(self, name: str, n_kept: int) -> Array:
        larger = np.zeros((1, self._shape.n_kv_heads, self._room, self._shape.head_dim), np.float32)
        if n_kept:
            larger[:, :, :n_kept] = self._caches[name][:, :, :n_kept]
        return larger
