"""GGUF models in memory: a file is read once, and every further load shares its weights."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from threading import Lock

from engine.errors import ModelFileError, ModelNotFound
from engine.models.base import LoadedModel, Progress

__all__ = ["LoadedFiles"]

Read = Callable[[Path, str, str, Progress | None], LoadedModel]
_Key = tuple[Path, str, str, int, int]  # resolved path, name, backend, time of change in nanoseconds, bytes


class LoadedFiles:
    """The last few models read from files, by path, backend, time of change and size.

    Threads may share it: two that ask for one file at once wait for one reading of it.

    Parameters
    ----------
    read : callable
        Takes a path, a name, a backend and a progress callback or None, and returns the `LoadedModel`.
    n_kept : int, default 2
        How many files are kept; the one asked for longest ago goes first.
    """

    def __init__(self, read: Read, n_kept: int = 2) -> None:
        self._read = read
        self._n_kept = n_kept
        self._lock = Lock()
        self._kept: dict[_Key, Future[LoadedModel]] = {}  # in the order of use

    def load(self, path: Path, name: str, backend: str = "numpy", progress: Progress | None = None) -> LoadedModel:
        """A fork of the model in the file at `path`, with a cache of its own.

        Raises
        ------
        ModelNotFound
            If there is no such file.
        ModelError
            What the reader raises; nothing is kept then.
        """
        key = _key(path, name, backend)
        with self._lock:
            reading = self._kept.pop(key, None)
            mine = reading is None
            if reading is None:
                reading = Future()
                for old in [old for old in self._kept if old[:3] == key[:3]]:
                    del self._kept[old]  # the file has changed since
            self._kept[key] = reading
            while len(self._kept) > self._n_kept:
                del self._kept[next(iter(self._kept))]
        if mine:
            try:
                reading.set_result(self._read(path, name, backend, progress))
            except BaseException as failure:
                with self._lock:
                    self._kept.pop(key, None)
                reading.set_exception(failure)
                raise
        loaded = reading.result()
        return replace(loaded, model=loaded.model.fork())


def _key(path: Path, name: str, backend: str) -> _Key:
    try:
        resolved = path.resolve(strict=True)
        found = resolved.stat()
    except FileNotFoundError as failure:
        raise ModelNotFound(f"there is no file {path}") from failure
    except OSError as failure:
        raise ModelFileError(f"{path} cannot be read: {failure.strerror}") from failure
    if not resolved.is_file():
        raise ModelNotFound(f"{path} is not a file; a model is one .gguf file")
    return resolved, name, backend, found.st_mtime_ns, found.st_size
