"""The schema of the run store, as numbered steps: how a file of any age becomes one of today.

`PRAGMA user_version` says how many steps a file has behind it.  A step is never changed once it
has been released; what comes later is added at the end of `MIGRATIONS`.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from engine.errors import StoreError

__all__ = ["APPLICATION_ID", "MIGRATIONS", "migrate"]

APPLICATION_ID = 0x44525343
"""Marks a SQLite file as ours ("DRSC"), see https://www.sqlite.org/fileformat.html#application_id."""

MOST_ATTEMPTS = 100

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """
        CREATE TABLE runs (
            number INTEGER PRIMARY KEY,  -- rises with time
            id TEXT NOT NULL UNIQUE,
            created_at TEXT NOT NULL,    -- UTC, ISO 8601
            state TEXT NOT NULL CHECK (state IN ('running', 'finished', 'interrupted')),
            spec TEXT NOT NULL,          -- RunSpec as JSON
            versions TEXT NOT NULL,      -- JSON
            started TEXT,                -- the event as JSON
            finished TEXT,               -- the event as JSON
            record TEXT                  -- engine.report.Report.record as JSON, once the run is over
        )
        """,
        """
        CREATE TABLE steps (
            run INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
            step INTEGER NOT NULL,
            event TEXT NOT NULL,         -- a Step as JSON, or the Drafted of a step that never came
            PRIMARY KEY (run, step)
        ) WITHOUT ROWID
        """,
    ),
    (
        "ALTER TABLE runs ADD COLUMN tags TEXT NOT NULL DEFAULT '[]'",  # a JSON list of strings
        "ALTER TABLE runs ADD COLUMN note TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE runs ADD COLUMN deleted_at TEXT",  # UTC, ISO 8601; of a run that waits to be purged
    ),
)


def migrate(connection: sqlite3.Connection, migrations: Sequence[Sequence[str]] = MIGRATIONS) -> None:
    """Bring a database up to date: all of the missing steps, or none of them.

    Parameters
    ----------
    connection : sqlite3.Connection
        In autocommit mode (`isolation_level=None`).
    migrations : sequence of sequences of str
        SQL statements; the first entry leads from a blank file to version 1.

    Raises
    ------
    StoreError
        If the file comes from a newer version, or is a database of another program.
    sqlite3.Error
        If SQLite fails; the file stays as it was.

    Examples
    --------
    >>> connection = sqlite3.connect(":memory:", isolation_level=None)
    >>> migrate(connection)
    >>> connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    True
    >>> connection.close()
    """
    with _transaction(connection, "BEGIN"):
        version = _checked_version(connection, len(migrations))
    if version == len(migrations):
        return
    if version == 0:
        _use_write_ahead_log(connection)
    with _transaction(connection, "BEGIN IMMEDIATE"):
        version = _checked_version(connection, len(migrations))  # another process may have been faster
        for statements in migrations[version:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(migrations)}")


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """From here on readers do not wait for writers; the file remembers it."""
    for attempt in range(MOST_ATTEMPTS):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as failure:
            if attempt == MOST_ATTEMPTS - 1 or not failure.sqlite_errorname.startswith("SQLITE_BUSY"):
                raise  # SQLite itself does not wait here while others open the same blank file
            time.sleep(0.02)


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _checked_version(connection: sqlite3.Connection, newest: int) -> int:
    version = _pragma(connection, "user_version")
    owner = _pragma(connection, "application_id")
    blank = version == 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    if owner != APPLICATION_ID and not blank:
        raise StoreError(
            "this is the database of another program; move it away, or set DRAFTSCOPE_HOME to another folder"
        )
    if version > newest:
        raise StoreError(
            f"it was written by a newer version of Draftscope (schema {version}; this one reads up to "
            f"{newest}); update Draftscope, or set DRAFTSCOPE_HOME to another folder"
        )
    return version


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)
