"""A run as the store has it, and how it is read from the rows of the database."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from engine.errors import RunNotFound, SettingError, StoreError
from engine.event_json import event_from_json
from engine.life_sign import LifeSign
from engine.report import Report
from engine.run_writer import record_json
from engine.spec import RunSpec
from engine.values import Event, Step

__all__ = [
    "RUN_ID",
    "Row",
    "RunState",
    "StoredRun",
    "events_of",
    "find",
    "if_readable",
    "rows",
    "settled",
    "stored_run",
]

RunState = Literal["running", "finished", "interrupted"]

RUN_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,63}")
"""An id that is fit for a file name."""

BEFORE_RECORD, BEHIND_RECORD = "SELECT number, id, created_at, state, spec, versions, ", ", tags, note FROM runs"
SELECT = f"{BEFORE_RECORD}record{BEHIND_RECORD}"
SELECT_BRIEF = f"""{BEFORE_RECORD}
    CASE WHEN json_valid(record) THEN json_remove(record, '$.ids', '$.text', '$.logprobs')
    ELSE record END{BEHIND_RECORD}"""
"""A record grows with its run by `ids`, `text` and `logprobs`; without them a list of runs is read in no time."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as the store has it.

    Attributes
    ----------
    id : str
    created_at : str
        When it began: UTC, ISO 8601.
    state : RunState
        "finished" says that the run came to its end, be it by an error or a cancel: see
        `record["finish_reason"]`.
    spec : RunSpec
        What it was asked to do.
    versions : dict
        What it was made with; see `engine.spec.versions`.
    record : dict
        What `engine.report.Report.record` says of it, as JSON gives it back; the figures so far
        while it is running.
    tags : tuple of str
    note : str
        The user's own words, as `tags` are.
    """

    id: str
    created_at: str
    state: RunState
    spec: RunSpec
    versions: dict[str, str]
    record: dict[str, Any]
    tags: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table of runs; see `engine.migrations`."""

    number: int
    id: str
    created_at: str
    state: RunState
    spec: str
    versions: str
    record: str | None
    tags: str
    note: str


def rows(connection: sqlite3.Connection, *, brief: bool = False) -> list[Row]:
    """All rows but deleted ones, the newest first; `brief` leaves `ids` and `text` out of their records."""
    select = SELECT_BRIEF if brief else SELECT
    return [Row(*values) for values in connection.execute(f"{select} WHERE deleted_at IS NULL ORDER BY number DESC")]


def find(connection: sqlite3.Connection, run_id: str, *, exact: bool = False, deleted: bool = False) -> Row:
    """The row of that id, or, unless it must be `exact`, whose id alone begins with it.

    Deleted runs are not seen; if `deleted` is True, they alone are.

    Raises
    ------
    RunNotFound
        If there is no such run.
    StoreError
        If there is more than one.
    """
    found: list[Row] = []
    if RUN_ID.fullmatch(run_id):
        matches = "id = ?1" if exact else "substr(id, 1, length(?1)) = ?1"
        matches += f" AND deleted_at IS {'NOT ' * deleted}NULL"
        order = "ORDER BY id = ?1 DESC, number DESC"
        found = [Row(*values) for values in connection.execute(f"{SELECT} WHERE {matches} {order}", (run_id,))]
    if not found:
        listed, command = ("deleted run", "deleted") if deleted else ("run", "list")
        raise RunNotFound(f"there is no {listed} {run_id!r}; `python -m engine runs {command}` names them all")
    if len(found) > 1 and found[0].id != run_id:
        candidates = ", ".join(row.id for row in found[:5]) + (", ..." if len(found) > 5 else "")
        raise StoreError(f"{len(found)} runs begin with {run_id!r}: {candidates}; give more of the id")
    return found[0]


def events_of(connection: sqlite3.Connection, row: Row, start: int = 0) -> Iterator[Event]:
    """The events of a run from number `start` on, read from the disk at once and turned into values one by one.

    Step i is the events 2 i + 1 (its draft) and 2 i + 2, for `Started` is event 0. One step more than
    is asked for is read: whether it came to an end tells the number of what follows.
    """
    first_step = max(0, start // 2 - 1)
    started, finished = connection.execute(
        "SELECT started, finished FROM runs WHERE number = ?", (row.number,)
    ).fetchone()
    steps = connection.execute(
        "SELECT event FROM steps WHERE run = ? AND step >= ? ORDER BY step", (row.number, first_step)
    )
    texts = [None if first_step else started, *(text for (text,) in steps), finished]
    first_number = 2 * first_step + (started is not None) if first_step else 0
    events = _events([text for text in texts if text is not None])
    return (event for number, event in enumerate(events, first_number) if number >= start)


def _events(texts: Iterable[str]) -> Iterator[Event]:
    for event in map(event_from_json, texts):
        if isinstance(event, Step):
            yield event.guess
        yield event


def settled(connection: sqlite3.Connection, row: Row, store: Path) -> Row:
    """The row with its record, and "interrupted" if it says "running" and nobody writes it any more."""
    if row.state != "running":
        return row
    life = LifeSign(store, row.id)
    alive = life.held()
    latest = connection.execute(f"{SELECT} WHERE number = ?", (row.number,)).fetchone()
    if latest is None:  # deleted between two looks
        return replace(row, state="interrupted", record=record_json(Report()))
    if Row(*latest).state != "running":  # ended between two looks
        return Row(*latest)
    record = record_json(Report(events_of(connection, row)))
    if alive:
        return replace(row, record=record)
    with suppress(sqlite3.OperationalError):  # kept for the next reader, if the file may be written
        connection.execute(
            "UPDATE runs SET state = 'interrupted', record = ? WHERE number = ? AND state = 'running'",
            (record, row.number),
        )
        life.release()
    return replace(row, state="interrupted", record=record)


def if_readable(connection: sqlite3.Connection, row: Row, store: Path, *, brief: bool = False) -> StoredRun | None:
    """The run of a row; None if the row is damaged or from a newer version.

    A `brief` row that says what it said before is not taken apart again: its run is the one of the last list.
    """
    try:
        now = settled(connection, row, store)
        return _listed_run(now) if brief and now is row else stored_run(now)
    except StoreError:
        return None


def stored_run(row: Row) -> StoredRun:
    """The run of a row that is `settled`.

    Raises
    ------
    StoreError
        If the row is damaged or from a newer version.
    """
    try:
        spec = RunSpec.from_json(row.spec)
        kept, record, tags = json.loads(row.versions), json.loads(row.record or "null"), json.loads(row.tags)
        if not isinstance(kept, dict) or not isinstance(record, dict):
            raise ValueError("its versions or its record are no JSON object")
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            raise ValueError("its tags are no JSON list of strings")
    except (SettingError, ValueError) as failure:
        raise StoreError(
            f"the run {row.id} cannot be read: {failure}. If a newer version of Draftscope wrote it, update; "
            f"or delete it: `python -m engine runs delete {row.id}`"
        ) from failure
    return StoredRun(row.id, row.created_at, row.state, spec, kept, record, tuple(tags), row.note)


_listed_run = lru_cache(maxsize=4096)(stored_run)
