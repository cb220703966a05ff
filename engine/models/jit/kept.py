"""Where numba keeps what it has compiled, and whether that is still what it wrote.

numba believes what it finds: a file that a power cut has emptied ends in one of many errors of
`pickle`, and machine code whose bytes have changed in a crash, or in other numbers. So the SHA-256 of
every file that a start reads is noted beside them, and what is not as it was noted is thrown away
before numba sees it. What makes numba compile although files are there is part of the folder's name
(other sources or newer ones, other versions, another processor), so that it reads no files but these.
Nobody asks again for the folders of what has been replaced; they go when a new one is made, and nobody has used
them for a long time.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import llvmlite
import numba
from llvmlite import binding
from numba import config

from engine.errors import BackendError, SettingError
from engine.folders import cache_folder
from engine.models.locks import file_lock

__all__ = ["cannot_keep", "checked", "folder_of_code"]

SUMS = "sums.txt"
LOCK = "lock"
KEPT_DAYS = 90
"""How long what nobody uses is kept."""
CALLED = ("program.run-*", "program.assist-*")  # from Python; what they call is in their files, too
ENDINGS = (".nbi", ".nbc")  # an index, and machine code


def folder_of_code(sources: Path) -> Path:
    """The folder for what is compiled of the modules in `sources`, made if it is missing.

    It lies in the cache folder, or where NUMBA_CACHE_DIR says. Where it is new, those beside it go that have not been
    asked for in the last `KEPT_DAYS` days.

    Raises
    ------
    BackendError
        If it cannot be made, or nothing can be written there.
    """
    try:
        folder = Path(config.CACHE_DIR or cache_folder() / "numba") / _version(sources)
    except SettingError as failure:
        raise BackendError(
            f"the backend numba cannot keep its compiled code: {failure}, or use --backend numpy"
        ) from failure
    try:
        new = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()  # only whether it can be made
        os.utime(folder)
    except OSError as failure:
        raise cannot_keep(folder, failure) from failure
    if new:
        with suppress(OSError):  # it may be writable, and its list not readable
            _remove_unused(folder.parent)
    return folder


def cannot_keep(folder: Path, failure: OSError) -> BackendError:
    """The error that tells a user that numba's code cannot be kept in a folder."""
    elsewhere = f", set NUMBA_CACHE_DIR (it is {config.CACHE_DIR}) to another folder" if config.CACHE_DIR else ""
    return BackendError(
        f"the backend numba cannot keep its compiled code in {folder}: {failure.strerror or failure}; "
        f"see that there is room and that you may write there{elsewhere}, or use --backend ort"
    )


@contextmanager
def checked(folder: Path, *called: Any, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Within it, one process at a time compiles, or takes what is kept in the folder and is as it was noted.

    What is not as it was noted is deleted before, and what is there behind it is noted. Where the functions that are
    called are compiled in this process already, none of it is read or written, and nothing is done. `waiting` is
    called now and then while another process is at it.

    Raises
    ------
    OSError
        If the folder cannot be read or written.
    """
    folder.mkdir(parents=True, exist_ok=True)  # it may have been deleted since this process began
    with file_lock(folder / LOCK, waiting):
        if called and all(function.signatures for function in called):
            yield
            return
        noted = _noted(folder)
        if noted != _sums(folder):
            noted = b""
            for path in _files(folder):
                path.unlink(missing_ok=True)
        yield
        found = _sums(folder)
        if found != noted:
            (folder / SUMS).write_bytes(found)


def _remove_unused(parent: Path) -> None:
    """Delete the folders of compiled code in `parent` that nobody uses any more; one that cannot be deleted stays."""
    for folder in list(parent.iterdir()):
        with suppress(OSError):
            if _is_unused(folder):
                with file_lock(folder / LOCK, waiting=_leave):
                    shutil.rmtree(folder, ignore_errors=True)


def _is_unused(folder: Path) -> bool:
    """Whether it is one of ours (others may keep theirs where NUMBA_CACHE_DIR says), last used long ago."""
    ours = re.fullmatch("[0-9a-f]{16}", folder.name) and (folder / LOCK).is_file()
    return bool(ours) and time.time() - folder.stat().st_mtime > KEPT_DAYS * 24 * 3600


def _leave() -> None:
    raise BlockingIOError("another process is using it")


def _noted(folder: Path) -> bytes:
    """Empty if nothing is: then all that is there goes, for numba was interrupted before it was done."""
    try:
        return (folder / SUMS).read_bytes()
    except FileNotFoundError:
        return b""


def _sums(folder: Path) -> bytes:
    called = sorted(path for path in _files(folder) if any(path.match(name) for name in CALLED))
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()} {path.relative_to(folder)}\n" for path in called]
    return "".join(lines).encode()


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.suffix in ENDINGS]


def _version(sources: Path) -> str:
    """The name of the folder. What numba compares with its index is in it, so that a start reads what was noted."""
    abilities = binding.get_host_cpu_features().flatten()
    parts = [sys.implementation.cache_tag, numba.__version__, llvmlite.__version__, str(sources.resolve())]
    parts += [binding.get_host_cpu_name(), abilities, str(config.CPU_NAME), str(config.CPU_FEATURES)]
    for path in sorted(sources.glob("*.py")):
        found = path.stat()
        parts += [path.name, str(found.st_mtime_ns), str(found.st_size)]
    text = "\n".join(parts).encode()
    return hashlib.sha256(text + b"".join(path.read_bytes() for path in sorted(sources.glob("*.py")))).hexdigest()[:16]
