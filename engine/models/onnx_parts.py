"""Graphs that are made of a compiled one, over the same file of weights: some kilobytes each in the same folder.

They are written when they are first asked for, and kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from engine.errors import BackendError
from engine.models.compiled import GRAPH
from engine.models.onnx_early import early_graph
from engine.models.onnx_tree import tree_graph

if TYPE_CHECKING:
    from onnx import ModelProto
    from onnxruntime import InferenceSession

__all__ = ["PartSessions"]


class PartSessions:
    """The sessions of such graphs, each opened when it is first asked for; threads may share them.

    Parameters
    ----------
    folder : Path
        Where the whole graph is.
    n_threads : int or None
        See `open_session`.
    """

    def __init__(self, folder: Path, n_threads: int | None) -> None:
        self._folder = folder
        self._n_threads = n_threads
        self._lock = Lock()
        self._sessions: dict[str, InferenceSession] = {}

    def early(self, n_layers: int) -> InferenceSession:
        """The graph of the first `n_layers` layers, norm and head; see `early_graph`.

        Raises
        ------
        BackendError
            If it cannot be written or loaded.
        """
        what = f"of the first {n_layers} layers"
        return self._session(f"first-{n_layers}.onnx", what, lambda whole: early_graph(whole, n_layers))

    def tree(self) -> InferenceSession:
        """The graph that runs trees; see `tree_graph`. Raises what `early` does."""
        return self._session("tree.onnx", "of trees", tree_graph)

    def _session(self, name: str, what: str, part_of: Callable[[ModelProto], ModelProto]) -> InferenceSession:
        from engine.models.onnx_session import open_session

        with self._lock:
            if name not in self._sessions:
                path = _written(self._folder, name, what, part_of)
                self._sessions[name] = open_session(path, n_threads=self._n_threads)
            return self._sessions[name]


def _written(folder: Path, name: str, what: str, part_of: Callable[[ModelProto], ModelProto]) -> Path:
    """The path of a graph that is made of the whole one, written now if it is not there.

    Raises
    ------
    BackendError
        If it cannot be written; the message says that it is the graph `what`.
    """
    import onnx

    path = folder / name
    if path.is_file():
        return path
    part = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        whole = onnx.load(folder / GRAPH, load_external_data=False)
        part.write_bytes(part_of(whole).SerializeToString())
        os.replace(part, path)
    except OSError as failure:
        raise BackendError(
            f"the graph {what} cannot be kept in {folder}: {failure}; make room there, or use --backend numpy"
        ) from failure
    finally:
        part.unlink(missing_ok=True)
    return path
