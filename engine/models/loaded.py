"""GGUF models in memory: a file is read once, and every further load shares its weights."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import partial
from pathlib import Path
from threading import Lock

from engine.errors import ModelFileError, ModelNotFound
from engine.models.base import LoadedModel, LoadProgress

__all__ = ["LoadedFiles"]

TELL_SECONDS = 0.2
"""How often one who waits for the reading of another is told of it."""

Maker = Callable[[str], LoadedModel]
Read = Callable[[Path, str, LoadProgress | None], Maker]
_Key = tuple[Path, str, int, int]  # resolved path, backend, time of change in nanoseconds, bytes


class _Reading(Future[Maker]):
    """One reading of a file, for which any number of threads may wait."""

    def __init__(self) -> None:
        super().__init__()
        self._told: tuple[str, int, int] | None = None

    def tell(self, progress: LoadProgress | None, doing: str, done: int, total: int) -> None:
        """Tell whoever reads, and keep it for those who wait."""
        self._told = doing, done, total
        if progress:
            progress(doing, done, total)

    def wait(self, progress: LoadProgress | None) -> None:
        """Wait until it is over; `progress` is told now and then what was told last."""
        while wait([self], TELL_SECONDS if progress else None).not_done:
            if progress and self._told:
                progress(*self._told)


class LoadedFiles:
    """The last few models read from files, by path, backend, time of change and size.

    Threads may share it: two that ask for one file at once wait for one reading of it.

    Parameters
    ----------
    read : callable
        Takes a path, a backend and a progress callback or None, reads the file, and returns what makes
        models of it: that takes a name and returns a `LoadedModel` with a cache of its own.
    n_kept : int, default 2
        How many files are kept; the one asked for longest ago goes first.
    """

    def __init__(self, read: Read, n_kept: int = 2) -> None:
        self._read = read
        self._n_kept = n_kept
        self._lock = Lock()
        self._kept: dict[_Key, _Reading] = {}  # in the order of use

    def load(self, path: Path, name: str, backend: str = "numpy", progress: LoadProgress | None = None) -> LoadedModel:
        """The model in the file at `path`, called `name`, with a cache of its own.

        Raises
        ------
        ModelNotFound
            If there is no such file.
        ModelError
            What the reader raises; nothing is kept then.
        """
        key = _key(path, backend)
        with self._lock:
            reading = self._kept.pop(key, None)
            mine = reading is None
            if reading is None:
                reading = _Reading()
                for old in [old for old in self._kept if old[:2] == key[:2]]:
                    del self._kept[old]  # the file has changed since
            self._kept[key] = reading
            while len(self._kept) > self._n_kept:
                del self._kept[next(iter(self._kept))]
        if mine:
            try:
                reading.set_result(self._read(path, backend, partial(reading.tell, progress)))
            except BaseException as failure:
                with self._lock:
                    self._kept.pop(key, None)
                reading.set_exception(failure)
                raise
        reading.wait(progress)
        return reading.result()(name)


def _key(path: Path, backend: str) -> _Key:
    try:
        resolved = path.resolve(strict=True)
        found = resolved.stat()
    except FileNotFoundError as failure:
        raise ModelNotFound(f"there is no file {path}") from failure
    except OSError as failure:
        raise ModelFileError(f"{path} cannot be read: {failure.strerror}") from failure
    if not resolved.is_file():
        raise ModelNotFound(f"{path} is not a file; a model is one .gguf file")
    return resolved, backend, found.st_mtime_ns, found.st_size
