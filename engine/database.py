"""SQLite as the run store uses it: how a file is opened, and how its errors are told to a user."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from engine.errors import StoreError
from engine.migrations import migrate

__all__ = ["connect", "opened", "told"]

BUSY_SECONDS = 10.0
"""How long to wait for another program that writes."""

REASONS = {
    "SQLITE_BUSY": "another program holds it locked; try again when that one is done",
    "SQLITE_LOCKED": "another program holds it locked; try again when that one is done",
    "SQLITE_READONLY": "it is read-only; give yourself the right to write to the file and its folder",
    "SQLITE_FULL": "the disk is full; make room and try again",
    "SQLITE_CANTOPEN": "the file cannot be opened or made; check its folder and the rights to it",
    "SQLITE_NOTADB": "the file is no run store (no SQLite database); move it away or name another one",
    "SQLITE_CORRUPT": "the file is damaged; move it away and a new one is made",
    "SQLITE_IOERR": "the disk failed to read or write; check its room and its health",
    "SQLITE_PERM": "the right to it is missing; check the rights to the file and its folder",
    "SQLITE_AUTH": "the right to it is missing; check the rights to the file and its folder",
}


def connect(path: Path) -> sqlite3.Connection:
    """A connection to the run store at `path`, which is made or brought up to date as needed.

    Statements commit by themselves unless a transaction is begun. The connection may be handed from
    one thread to another; two must not use it at once.

    Raises
    ------
    StoreError
        If the file cannot be opened, is no run store, or comes from a newer version.
    """
    with told(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA synchronous = NORMAL")  # a crash of the program loses nothing
            migrate(connection)
        except StoreError as failure:
            connection.close()
            raise StoreError(f"the run store {path} cannot be used: {failure}") from None
        except BaseException:
            connection.close()
            raise
        return connection


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection for one piece of work, closed behind it; see `connect`."""
    with told(path), closing(connect(path)) as connection:
        yield connection


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Turn what SQLite and the system say about `path` into a `StoreError` for a reader."""
    try:
        yield
    except sqlite3.Error as failure:
        name: str = getattr(failure, "sqlite_errorname", "") or ""
        code = "_".join(name.split("_")[:2])  # SQLITE_READONLY_DIRECTORY is a SQLITE_READONLY
        reason = REASONS.get(code, f"SQLite says: {failure}")
        raise StoreError(f"the run store {path} cannot be used: {reason}") from failure
    except OSError as failure:
        raise StoreError(f"the run store {path} cannot be used: {failure.strerror or failure}") from failure
