"""The user's own models: names for GGUF files that stay where they are, in one small JSON file."""

from __future__ import annotations

import json
import os
from pathlib import Path

from engine.errors import ModelError
from engine.folders import data_folder
from engine.models.locks import file_lock

__all__ = ["forget", "read_added", "write_added"]

_FILE_NAME = "models.json"


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


def _write(models: dict[str, Path]) -> None:
    place = data_folder() / _FILE_NAME
    text = json.dumps({"version": 1, "models": {name: str(path) for name, path in models.items()}}, indent=2)
    part = place.with_suffix(".part")
    try:
        part.write_text(text + "\n", encoding="utf-8")
        os.replace(part, place)
    except OSError as failure:
        raise ModelError(f"the list of added models, {place}, cannot be written: {failure.strerror}") from failure
