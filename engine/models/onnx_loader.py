"""A GGUF file as a compiled model ready to run."""

from __future__ import annotations

from engine.errors import BackendError
from engine.models.architecture import Architecture
from engine.models.base import LoadProgress
from engine.models.compiled import GRAPH, graph_folder
from engine.models.gguf import GGUFFile
from engine.models.onnx_backend import OnnxTransformer
from engine.models.onnx_graph import why_not
from engine.models.onnx_parts import PartSessions
from engine.models.onnx_session import Compiled, open_session
from engine.models.rope import frequencies
from engine.models.row_check import rows_are_exact
from engine.models.threads import n_session_threads

__all__ = ["load_compiled"]


def load_compiled(
    file: GGUFFile, architecture: Architecture, *, name: str, progress: LoadProgress | None = None
) -> OnnxTransformer:
    """The model in `file`, from its compiled graph, which is built if it is not in the cache folder.

    Parameters
    ----------
    file : GGUFFile
    architecture : Architecture
    name : str
    progress : callable, optional
        See `graph_folder`.

    Raises
    ------
    BackendError
        If the graph cannot be built for this architecture, kept, or loaded.
    ModelFileError
        If a tensor of the file is missing, wrong or left over.
    """
    reason = why_not(architecture)
    if reason:
        raise BackendError(f"{file.path} cannot be compiled: {reason}; use --backend numpy")
    folder = graph_folder(file, architecture, progress)
    n_threads = n_session_threads("ort")
    session = open_session(folder / GRAPH, n_threads=n_threads)
    factors = None
    if "rope_freqs.weight" in file.tensors:
        factors = file.tensor("rope_freqs.weight", architecture.rope.n_dims // 2)
    series = frequencies(architecture.rope, factors)
    compiled = Compiled(session, series, PartSessions(folder, n_threads))
    model = OnnxTransformer(architecture, compiled, name=name)
    model.exact_rows = rows_are_exact(model, folder, n_threads)
    return model
