"""Runs on their way out: deleted, restored, purged, and what room the store takes.

A deleted run is marked, in one transaction with all that are deleted beside it, and no list shows it
any more. It can be restored until it is purged: with the first look at the history that comes
`KEPT_DAYS` after it was deleted, or at once when asked for. Purging takes it out of the
file and gives its room back to the disk. A crash leaves a run deleted or not, never half of it.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from engine.errors import SettingError
from engine.spec import RunSpec

__all__ = ["KEPT_DAYS", "DeletedRun", "Storage", "deleted_runs", "give_room_back", "purge", "storage"]

KEPT_DAYS = 7

ROOM_MILLISECONDS = 500
"""How long to wait for others before room is left as it is."""


@dataclass(frozen=True, slots=True)
class DeletedRun:
    """A run that waits to be purged.

    Attributes
    ----------
    id : str
    created_at, deleted_at : str
        UTC, ISO 8601.
    spec : RunSpec or None
        None where it cannot be read.
    n_bytes : int
        Of its steps and texts.
    """

    id: str
    created_at: str
    deleted_at: str
    spec: RunSpec | None
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Storage:
    """What the store takes on disk.

    Attributes
    ----------
    n_bytes : int
        Of its files.
    n_runs, n_deleted : int
        Runs that are listed, and those that wait to be purged.
    deleted_bytes : int
        How much of it the latter take.
    """

    n_bytes: int
    n_runs: int
    n_deleted: int
    deleted_bytes: int


def deleted_runs(connection: sqlite3.Connection) -> list[DeletedRun]:
    """What can be restored, the latest deleted first."""
    found = connection.execute(
        """
        SELECT id, created_at, deleted_at, spec,
            length(spec) + coalesce(length(record), 0) + coalesce(length(started), 0) + coalesce(length(finished), 0)
            + coalesce((SELECT sum(length(event)) FROM steps WHERE run = number), 0)
        FROM runs WHERE deleted_at IS NOT NULL ORDER BY deleted_at DESC, number DESC
        """
    )
    return [DeletedRun(run_id, created, deleted, _spec(spec), size) for run_id, created, deleted, spec, size in found]


def _spec(text: str) -> RunSpec | None:
    try:
        return RunSpec.from_json(text)
    except SettingError:
        return None


def purge(connection: sqlite3.Connection, now: datetime, *, kept_days: float) -> int:
    """Take out what was deleted `kept_days` before `now`, or earlier, and return how many runs that were."""
    latest = (now - timedelta(days=kept_days)).isoformat(timespec="seconds")
    due = "WHERE deleted_at IS NOT NULL AND (deleted_at <= ?1 OR ?2 <= 0)"  # 0: all, whatever the clock did meanwhile
    if not connection.execute(f"SELECT 1 FROM runs {due} LIMIT 1", (latest, kept_days)).fetchone():
        return 0  # without a lock, and in a store that can only be read
    n_runs = connection.execute(f"DELETE FROM runs {due}", (latest, kept_days)).rowcount
    give_room_back(connection)
    return n_runs


def give_room_back(connection: sqlite3.Connection) -> None:
    """Make the file as small as what is in it; where that cannot be now, the room is used by the next runs."""
    with suppress(sqlite3.OperationalError):  # another program writes, or the disk is too full for a copy
        connection.execute(f"PRAGMA busy_timeout = {ROOM_MILLISECONDS}").fetchall()
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def storage(connection: sqlite3.Connection, path: Path) -> Storage:
    """What the store at `path` takes."""
    deleted = deleted_runs(connection)
    [n_runs] = connection.execute("SELECT count(*) FROM runs WHERE deleted_at IS NULL").fetchone()
    files = (path.with_name(path.name + ending) for ending in ("", "-wal"))  # -shm is shared memory, soon gone
    n_bytes = sum(file.stat().st_size for file in files if file.is_file())
    return Storage(n_bytes, n_runs, len(deleted), sum(run.n_bytes for run in deleted))
