"""Compiled graphs on disk: built once for a file, loaded from the cache folder ever after.

A graph lies in a folder of its own, named after the SHA-256 of the GGUF, the format of the graph
and the version of ONNX Runtime.  It is built in a folder beside it that is renamed when everything
is on disk, so that what was only half written is never found.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from engine.errors import BackendError, SettingError
from engine.folders import cache_folder
from engine.models.architecture import Architecture
from engine.models.base import LoadProgress
from engine.models.gguf import GGUFFile
from engine.models.locks import file_lock
from engine.models.onnx_graph import FORMAT, build_graph
from engine.models.packed import DataFile

__all__ = ["GRAPH", "graph_folder", "remove_graphs"]

GRAPH = "graph.onnx"
DATA = "weights.bin"


def graph_folder(file: GGUFFile, architecture: Architecture, progress: LoadProgress | None = None) -> Path:
    """The folder with the graph of `file`, built now if there is none.

    Parameters
    ----------
    file : GGUFFile
    architecture : Architecture
    progress : callable, optional
        Told what is being done, and (parts packed, parts in all), while it is built; not called where it is there
        already.

    Raises
    ------
    ModelFileError
        If a tensor of the file is missing, wrong or left over.
    BackendError
        If the cache folder cannot be made or written.
    """
    import onnxruntime

    digest = _sha256(file.path)
    try:
        graphs = cache_folder() / "graphs"
        folder = graphs / f"{digest[:32]}-{FORMAT}-{onnxruntime.__version__}"
        if folder.is_dir():
            return folder
        graphs.mkdir(parents=True, exist_ok=True)
        with file_lock(graphs / f"{digest[:32]}.lock"):
            if not folder.is_dir():  # else another process has built it meanwhile
                _build(folder, file, architecture, progress or _untold)
                _remove_others(folder, digest[:32])
        return folder
    except SettingError as failure:
        raise BackendError(
            f"the compiled form of {file.path} cannot be kept: {failure}, or use --backend numpy"
        ) from failure
    except OSError as failure:
        raise BackendError(
            f"the compiled form of {file.path} cannot be kept in the cache folder: {failure}; "
            "make room there, or set DRAFTSCOPE_HOME to a folder that you may write to, or use --backend numpy"
        ) from failure


def remove_graphs(path: Path) -> None:
    """Delete what was compiled from the file at `path`, if there is anything.

    Raises
    ------
    OSError
        If the file cannot be read or a folder not be deleted.
    """
    graphs = cache_folder() / "graphs"
    if graphs.is_dir():
        digest = _sha256(path)[:32]
        with file_lock(graphs / f"{digest}.lock"):
            for folder in graphs.glob(f"{digest}-*"):
                shutil.rmtree(folder)


def _untold(doing: str, done: int, total: int) -> None:
    """The progress of someone who does not watch."""


def _build(folder: Path, file: GGUFFile, architecture: Architecture, progress: LoadProgress) -> None:
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)  # left by a process that was killed
    part.mkdir()
    try:
        with (part / DATA).open("wb") as weights:
            graph = build_graph(file, architecture, DataFile(weights, DATA), progress)
            weights.flush()
            os.fsync(weights.fileno())
        with (part / GRAPH).open("wb") as whole:
            whole.write(graph.SerializeToString())
            whole.flush()
            os.fsync(whole.fileno())
        os.replace(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _remove_others(folder: Path, digest: str) -> None:
    """Graphs of the same file for another version: nothing will ask for them again."""
    for other in folder.parent.glob(f"{digest}-*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
