"""Whether the writer of a run still lives: a lock that the operating system frees when it dies.

The writer of run ID holds a SQLite file of its own, `STORE-live/ID`, exclusively locked and empty;
whoever reads the store tries to read that file.  No clock, no process number and no thread is
involved, so a killed process, a sleeping laptop and a number that is used again are all told right.
The locks are those that SQLite relies on for the store itself.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

__all__ = ["LifeSign"]


class LifeSign:
    """The lock of one run, taken by its writer.

    Parameters
    ----------
    store : Path
        The file of the run store.
    run_id : str
        Fit for a file name.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     sign = LifeSign(Path(folder) / "runs.sqlite", "a1")
    ...     before = sign.held()
    ...     sign.take()
    ...     during = sign.held()
    ...     sign.release()
    ...     before, during, sign.held()
    (False, True, False)
    """

    def __init__(self, store: Path, run_id: str) -> None:
        self._path = store.with_name(f"{store.name}-live") / run_id
        self._connection: sqlite3.Connection | None = None

    def take(self) -> None:
        """Hold the lock until `release`, or until the process ends.

        Raises
        ------
        sqlite3.Error, OSError
            If the file cannot be made, or another writer holds it.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self._path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = OFF")  # nothing is ever written
            connection.execute("BEGIN EXCLUSIVE")
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def release(self) -> None:
        """Free the lock and remove its file; harmless if there is none."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        with suppress(OSError):  # read-only, or in use by a reader on Windows: an empty file stays behind
            self._path.unlink()

    def held(self) -> bool:
        """Whether a writer, here or in any other process, holds the lock."""
        if not self._path.exists():
            return False
        try:
            address = f"{self._path.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(address, uri=True, timeout=0)) as connection:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as failure:
            return failure.sqlite_errorname.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
        return False
