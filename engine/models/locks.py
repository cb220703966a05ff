"""One process at a time: a lock on a file, which the system frees when its holder dies."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["file_lock"]

_LOOK_AGAIN_SECONDS = 0.1

if sys.platform == "win32":
    import msvcrt

    def _take(file: BinaryIO) -> bool:
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _take(file: BinaryIO) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@contextmanager
def file_lock(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock of `path`, a file made for this purpose, which stays behind.

    Parameters
    ----------
    path : Path
        In a folder that exists.
    waiting : callable
        Called about ten times a second while another thread or process holds the lock; an error
        that it raises ends the wait.
    """
    with path.open("ab") as file:  # closing it frees the lock
        while not _take(file):
            waiting()
            time.sleep(_LOOK_AGAIN_SECONDS)
        yield
