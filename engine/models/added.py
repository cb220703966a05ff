"""The user's own models: names for GGUF files that stay where they are, in one small JSON file."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path

from engine.errors import ModelError, ModelFileError, ModelNotFound
from engine.folders import data_folder
from engine.models.locks import file_lock

__all__ = ["check_gguf", "forget", "read_added", "write_added"]

_FILE_NAME = "models.json"
_HEADER = struct.Struct("<4sIQQ")  # magic, version, number of tensors, number of metadata pairs
_VERSIONS = (2, 3)


def read_added() -> dict[str, Path]:
    """Names and absolute paths, sorted by name; the files may have gone since.

    Raises
    ------
    ModelError
        If the list cannot be read.
    """
    place = data_folder() / _FILE_NAME
    try:
        text = place.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except OSError as failure:
        raise ModelError(f"the list of added models, {place}, cannot be read: {failure.strerror}") from failure
    try:
        models = json.loads(text)["models"]
        return {str(name): Path(path) for name, path in sorted(models.items())}
    except (ValueError, KeyError, TypeError, AttributeError) as failure:
        raise ModelError(
            f"the list of added models, {place}, is damaged; mend it, or delete it and add the models again"
        ) from failure


def write_added(name: str, path: Path) -> None:
    """Let `name` stand for `path`."""
    with file_lock(data_folder() / f"{_FILE_NAME}.lock"):
        _write({**read_added(), name: path})


def forget(name: str) -> None:
    """Take `name` off the list; the file is not touched."""
    with file_lock(data_folder() / f"{_FILE_NAME}.lock"):
        _write({other: path for other, path in read_added().items() if other != name})


def check_gguf(path: Path) -> None:
    """Refuse a file that does not begin like a GGUF; the rest is checked when it is loaded.

    Raises
    ------
    ModelNotFound
        If there is no such file.
    ModelFileError
        If it cannot be read, or is no GGUF of version 2 or 3 with tensors in it.
    """
    if not path.is_file():
        raise ModelNotFound(f"there is no file {path}")
    try:
        with path.open("rb") as file:
            head = file.read(_HEADER.size)
    except OSError as failure:
        raise ModelFileError(f"{path} cannot be read: {failure.strerror}") from failure
    if not head.startswith(b"GGUF"):
        raise ModelFileError(f"{path} is not a GGUF file: it begins with {head[:4]!r}, not with b'GGUF'")
    if len(head) < _HEADER.size:
        raise ModelFileError(f"{path} is cut short: it ends inside the GGUF header; fetch it again")
    _, version, n_tensors, _ = _HEADER.unpack(head)
    if version not in _VERSIONS or n_tensors == 0:
        raise ModelFileError(
            f"{path} is a GGUF of version {version} with {n_tensors} tensors; "
            "expected version 2 or 3, little-endian, with at least one tensor"
        )


def _write(models: dict[str, Path]) -> None:
    place = data_folder() / _FILE_NAME
    text = json.dumps({"version": 1, "models": {name: str(path) for name, path in models.items()}}, indent=2)
    part = place.with_suffix(".part")
    try:
        part.write_text(text + "\n", encoding="utf-8")
        os.replace(part, place)
    except OSError as failure:
        raise ModelError(f"the list of added models, {place}, cannot be written: {failure.strerror}") from failure
