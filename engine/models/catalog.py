"""The models by name: load one, pull one, add or remove one. `entries` is the list."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from engine.errors import BackendError, ModelError, ModelNotFound, SettingError
from engine.models.added import forget, read_added, write_added
from engine.models.backends import can_run, check_backend
from engine.models.base import LoadedModel, LoadProgress, Progress
from engine.models.entries import (
    EMBEDDED,
    Entry,
    added_entry,
    entries,
    is_ready,
    path_of,
    pulled_folder,
    ready_path,
    unknown,
)
from engine.models.loaded import LoadedFiles
from engine.models.locks import file_lock
from engine.models.markov import load_markov
from engine.models.noisy import load_noisy
from engine.models.onnx_backend import OnnxTransformer
from engine.models.pull import DOWNLOADS, fetch
from engine.stopping import Cancelled, never

__all__ = ["Entry", "add", "entries", "is_path", "is_ready", "load", "path_of", "pull", "remove"]

_NAME = re.compile(r"[\w.+:-]+")


def load(
    name_or_path: str | Path,
    *,
    agreement: float = 0.0,
    target_call_seconds: float = 0.0,
    draft_call_seconds: float = 0.0,
    backend: str = "auto",
    exact_rows: bool = True,
    progress: LoadProgress | None = None,
) -> LoadedModel:
    """A model by its name, or from a GGUF file.

    A file is read once; a second load is instant and has a cache of its own. Threads may load at
    the same time.

    Parameters
    ----------
    name_or_path : str or Path
        A name of `entries`, or a path: whatever ends in .gguf or has a path separator in it.
    agreement, target_call_seconds, draft_call_seconds : float, default 0.0
        For "markov" alone: see `engine.models.markov.load_markov`.
    backend : {"auto", "numba", "ort", "numpy"}
        What runs a GGUF file; "auto" is "numba", "ort" or "numpy": the first that is installed and can run it. The
        `note` of what comes back says why one that is installed cannot, or that there is nothing for a backend to run.
    exact_rows : bool, default True
        Whether a row is to be the same, bit for bit, alone and in a block; in "numba" and "numpy" it always is.
    progress : callable, optional
        Told what is being done, and (parts done, parts in all), while a file is packed, and while it is compiled
        the first time; by "ort" only then. For a file that another thread reads, what that is doing.

    Raises
    ------
    ModelNotFound
        If nothing is known by that name, it has not been pulled, or its file is not there.
    ModelFileError
        If the file is not a model that we run.
    SettingError
        If a setting of the embedded pair is out of range, or is given for another model, or there
        is no such backend.
    MissingPackage, BackendError
        If the backend is not installed, or cannot run the model.

    Examples
    --------
    >>> load("markov").model.name
    'markov'
    """
    check_backend(backend)
    name = str(name_or_path)
    if name == "markov":
        pair = load_markov(
            agreement=agreement, target_call_seconds=target_call_seconds, draft_call_seconds=draft_call_seconds
        )
        return _without_backend(pair, backend)
    for setting in (agreement, target_call_seconds, draft_call_seconds):
        if setting != 0:
            raise SettingError(
                f"agreement and simulated call times are for the embedded model markov; leave them at 0 for {name}"
            )
    if name == "noisy":
        return _without_backend(load_noisy(), backend)
    if is_path(name):
        path = Path(name).expanduser()
        loaded = _load_file(path, path.stem, backend, progress)
    else:
        loaded = _load_file(ready_path(name), name, backend, progress)
    if isinstance(loaded.model, OnnxTransformer):
        loaded.model.exact_rows = loaded.model.exact_rows and exact_rows  # where the processor allows it
    return loaded


def pull(name: str, progress: Progress | None = None, cancelled: Cancelled = never) -> Path:
    """Fetch a model through the user's own pip, unless it is here already.

    Parameters
    ----------
    name : str
    progress : callable, optional
        Told (bytes fetched, bytes in all); the first number never falls.
    cancelled : callable
        Asked a few times a second; True ends the pull.

    Returns
    -------
    Path
        The GGUF in the cache folder.

    Raises
    ------
    ModelNotFound
        If no model to pull has that name.
    DownloadError
        If it could not be fetched, or the pull was cancelled; see `engine.models.pull.fetch`.
    """
    if name not in DOWNLOADS:
        if name in EMBEDDED:
            raise ModelNotFound(f"{name} is embedded: it needs no download")
        raise ModelNotFound(f"there is no model {name!r} to pull; choose {' or '.join(DOWNLOADS)}")
    return fetch(DOWNLOADS[name], pulled_folder(), progress, cancelled)


def add(path: str | Path, name: str | None = None) -> Entry:
    """Give a GGUF file a name; the file stays where it is, and one that could not be run is refused.

    Parameters
    ----------
    path : str or Path
    name : str, optional
        The file's own name without .gguf if not given. Adding the same name and file again is fine.

    Raises
    ------
    ModelNotFound
        If there is no such file.
    ModelFileError
        If it is not a GGUF, or its architecture or its tokenizer is not one that we run.
    SettingError
        If the name is taken, or cannot be told from a path.
    """
    from engine.models.gguf_loader import check_gguf  # heavy: only for real models

    place = Path(path).expanduser().absolute()
    check_gguf(place)
    if name is None:
        name = re.sub(r"[^\w.+:-]+", "-", place.stem)
    if not _NAME.fullmatch(name) or is_path(name):
        raise SettingError(
            f"a model cannot be named {name!r}; use letters, digits and . _ + : - and do not end in .gguf"
        )
    if name in EMBEDDED or name in DOWNLOADS or read_added().get(name, place) != place:
        raise SettingError(f"the name {name} is taken; choose another with --name, or remove that model first")
    write_added(name, place)
    return added_entry(name, place)


def remove(name: str) -> None:
    """Take an added model off the list (its file stays), or delete a pulled one; what was compiled of it goes too.

    Raises
    ------
    SettingError
        If the model is embedded.
    ModelNotFound
        If there is nothing of that name to remove.
    ModelError
        If a file cannot be deleted.
    """
    if name in EMBEDDED:
        raise SettingError(f"{name} is embedded in Draftscope and cannot be removed")
    if name in DOWNLOADS:
        path = path_of(name)
        if path is None:
            raise ModelNotFound(f"{name} is not here: it was never pulled, or has been removed already")
        _remove_compiled(path)
        try:
            with file_lock(path.with_name(f"{path.name}.lock")):
                path.unlink(missing_ok=True)
        except OSError as failure:
            raise ModelError(f"{path} cannot be deleted: {failure.strerror}") from failure
    elif name in read_added():
        path = path_of(name)
        if path is not None and path.is_file():
            _remove_compiled(path)
        forget(name)
    else:
        raise ModelNotFound(unknown(name))


def _remove_compiled(path: Path) -> None:
    from engine.models.compiled import remove_graphs  # heavy: only for real models

    try:
        remove_graphs(path)
    except OSError as failure:
        raise ModelError(f"what was compiled of {path} cannot be deleted: {failure}") from failure


def _without_backend(loaded: LoadedModel, backend: str) -> LoadedModel:
    """An embedded model, with a note if a backend was asked for."""
    if backend == "auto":
        return loaded
    return replace(loaded, note=f"the backend {backend} runs GGUF files alone: it does nothing for {loaded.model.name}")


def _load_file(path: Path, name: str, backend: str, progress: LoadProgress | None) -> LoadedModel:
    if backend != "auto":
        return _files.load(path, name, backend, progress)
    reasons: list[str] = []
    for compiled in ("numba", "ort"):
        if can_run(compiled):
            try:
                return _with_reasons(_files.load(path, name, compiled, progress), compiled, reasons)
            except BackendError as failure:
                reasons.append(str(failure))
    return _with_reasons(_files.load(path, name, "numpy", progress), "numpy", reasons)


def _with_reasons(loaded: LoadedModel, backend: str, reasons: list[str]) -> LoadedModel:
    """The model, with a note of why those that are installed and come before its backend cannot run it."""
    return replace(loaded, note=f"{backend} runs {loaded.model.name}: {'; '.join(reasons)}") if reasons else loaded


def _read(path: Path, backend: str, progress: LoadProgress | None) -> Callable[[str], LoadedModel]:
    from engine.models.gguf_loader import read_model  # heavy: only for real models

    return read_model(path, backend=backend, progress=progress)


_files = LoadedFiles(_read)


def is_path(name: str) -> bool:
    """Whether this names a file rather than a model of the list.

    Examples
    --------
    >>> is_path("markov"), is_path("models/mine.gguf")
    (False, True)
    """
    return name.lower().endswith(".gguf") or "/" in name or "\\" in name
