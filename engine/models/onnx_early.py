"""A compiled graph that ends behind its first layers, over the same file of weights.

It is a part of the whole graph: its first nodes, the output norm moved forward, and the head.  The
weights lie where they are and are read from there; the part itself is some kilobytes in the same folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from engine.errors import BackendError
from engine.models.compiled import GRAPH
from engine.models.onnx_graph import residual

if TYPE_CHECKING:
    from onnx import ModelProto
    from onnxruntime import InferenceSession

__all__ = ["EarlySessions", "early_graph", "written"]


class EarlySessions:
    """The sessions that end early, each opened when it is first asked for; threads may share them.

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
        self._sessions: dict[int, InferenceSession] = {}

    def session(self, n_layers: int) -> InferenceSession:
        """The graph of the first `n_layers` layers, norm and head.

        Raises
        ------
        BackendError
            If it cannot be written or loaded.
        """
        from engine.models.onnx_session import open_session

        with self._lock:
            if n_layers not in self._sessions:
                path = written(
                    self._folder,
                    f"first-{n_layers}.onnx",
                    f"of the first {n_layers} layers",
                    lambda whole: early_graph(whole, n_layers),
                )
                self._sessions[n_layers] = open_session(path, n_threads=self._n_threads)
            return self._sessions[n_layers]


def written(folder: Path, name: str, what: str, part_of: Callable[[ModelProto], ModelProto]) -> Path:
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


def early_graph(whole: ModelProto, n_layers: int) -> ModelProto:
    """The part of a graph of `engine.models.onnx_graph` that ends behind the first `n_layers` layers.

    Its inputs and outputs are those of the whole graph, without the keys and values of later layers and
    without hidden rows.
    """
    from onnx import helper

    nodes = list(whole.graph.node)
    # the next layer begins where the branch of the last one is added to the residual stream, and is normed
    place = next(i for i, node in enumerate(nodes) if residual(n_layers - 1) in node.output)
    stream, branch, _ = nodes[place].input
    epsilon = next(setting.f for setting in nodes[place].attribute if setting.name == "epsilon")
    norm = helper.make_node(
        nodes[place].op_type,
        [stream, branch, "final.weight"],
        ["final"],
        domain=nodes[place].domain,
        epsilon=epsilon,
    )
    nodes = [*nodes[:place], norm, *nodes[-2:]]  # the last two take the rows that are asked for through the head
    used = {name for node in nodes for name in node.input}
    made = {name for node in nodes for name in node.output}
    graph = helper.make_graph(
        nodes,
        whole.graph.name,
        [value for value in whole.graph.input if value.name in used],
        [value for value in whole.graph.output if value.name in made and value.name != "final"],
        [array for array in whole.graph.initializer if array.name in used],
    )
    return helper.make_model(
        graph, opset_imports=whole.opset_import, ir_version=whole.ir_version, producer_name=whole.producer_name
    )
