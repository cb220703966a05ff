"""Where Draftscope keeps things: what can be fetched again, and what cannot.

The folders follow the platform's custom (the `platformdirs` package). The environment variable
DRAFTSCOPE_HOME puts both under one folder instead: HOME/cache and HOME/data.
"""

from __future__ import annotations

import os
from pathlib import Path

from engine.errors import SettingError

__all__ = ["HOME_VARIABLE", "cache_folder", "data_folder"]

HOME_VARIABLE = "DRAFTSCOPE_HOME"


def cache_folder() -> Path:
    """The folder of things that can be fetched again, such as pulled models; made if missing.

    Raises
    ------
    SettingError
        If it cannot be made.
    """
    return _made("cache")


def data_folder() -> Path:
    """The folder of things that are the user's own, such as finished runs; made if missing.

    Raises
    ------
    SettingError
        If it cannot be made.
    """
    return _made("data")


def _made(kind: str) -> Path:
    folder = _place(kind)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise SettingError(
            f"cannot make the {kind} folder {folder}: {failure.strerror}; "
            f"set {HOME_VARIABLE} to a folder that you may write to"
        ) from failure
    return folder


def _place(kind: str) -> Path:
    home = os.environ.get(HOME_VARIABLE)
    if home:
        return Path(home).expanduser().absolute() / kind
    import platformdirs  # imported here: `import engine` loads numpy and the standard library only

    if kind == "cache":
        return platformdirs.user_cache_path("draftscope", appauthor=False)
    return platformdirs.user_data_path("draftscope", appauthor=False)
