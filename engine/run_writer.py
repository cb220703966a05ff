"""One run on its way to disk: every step is committed on its own."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self

import numpy as np

from engine.database import connect, told
from engine.errors import StoreError
from engine.event_json import event_to_json
from engine.life_sign import LifeSign
from engine.report import Report
from engine.values import Drafted, Event, Finished, Started, Step

__all__ = ["RunWriter", "record_json"]


def record_json(report: Report) -> str:
    """The record of a run as JSON text; numpy's numbers become plain ones."""
    return json.dumps(report.record(), separators=(",", ":"), allow_nan=False, default=np.generic.item)


class RunWriter:
    """Takes the events of one run; made by `engine.store.RunStore.begin`.

    A context manager: left before `Finished` has come, it closes the run as "interrupted", with
    the figures so far. A process that dies loses the step in hand at most. One thread at a time is
    served; threads that write runs of their own do not disturb each other.

    Attributes
    ----------
    run_id : str
    """

    def __init__(self, path: Path, run_id: str, *, created_at: str, spec: str, versions: str) -> None:
        self.run_id = run_id
        self._path = path
        self._report = Report()
        self._guess: Drafted | None = None  # a draft whose step has not come
        self._lock = Lock()
        self._life = LifeSign(path, run_id)
        with told(path):
            self._connection: sqlite3.Connection | None = connect(path)
            try:
                self._number = self._insert(created_at, spec, versions)
            except BaseException:
                self._connection.close()
                raise

    def _insert(self, created_at: str, spec: str, versions: str) -> int | None:
        assert self._connection is not None
        taken = StoreError(f"there is a run {self.run_id} already; give another run_id, or none")
        if self._connection.execute("SELECT 1 FROM runs WHERE id = ?", (self.run_id,)).fetchone():
            raise taken
        self._life.take()  # first, so that no reader finds a run under way without a sign of life
        try:
            return self._connection.execute(
                "INSERT INTO runs (id, created_at, state, spec, versions) VALUES (?, ?, 'running', ?, ?)",
                (self.run_id, created_at, spec, versions),
            ).lastrowid
        except sqlite3.IntegrityError:
            self._life.release()
            raise taken from None
        except BaseException:
            self._life.release()
            raise

    def add(self, event: Event) -> None:
        """Store the next event of the run; `Finished` closes it.

        Raises
        ------
        StoreError
            If the run is closed or was deleted, or the store cannot be written.
        """
        with self._lock, told(self._path):
            if self._connection is None:
                raise StoreError(f"the run {self.run_id} is closed; begin another one")
            match event:
                case Started():
                    self._update("started = ?", event_to_json(event))
                case Drafted():
                    event_to_json(event)  # refuse now what could not be stored later
                    self._guess = event
                case Step():
                    self._insert_step(event)
                    self._guess = None
            self._report.add(event)
            if isinstance(event, Finished):
                self._end("finished", event_to_json(event))

    def close(self) -> None:
        """Close the run; one without `Finished` is "interrupted" from here on.

        Raises
        ------
        StoreError
            If the store cannot be written.
        """
        with self._lock, told(self._path):
            if self._connection is not None:
                self._end("interrupted", None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.close()
        except StoreError:
            if failure is None:  # what went wrong first is what the caller should hear
                raise

    def _end(self, state: str, finished: str | None) -> None:
        assert self._connection is not None
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            if self._guess is not None:
                self._insert_step(self._guess)
            self._update("state = ?, finished = ?, record = ?", state, finished, record_json(self._report))
            self._connection.execute("COMMIT")
        finally:
            self._connection.close()  # which takes back what was not committed
            self._connection = None
            self._life.release()  # last, so that a reader who finds it free finds the run closed

    def _insert_step(self, event: Step | Drafted) -> None:
        assert self._connection is not None
        try:
            self._connection.execute(
                "INSERT INTO steps (run, step, event) VALUES (?, ?, ?)",
                (self._number, event.index, event_to_json(event)),
            )
        except sqlite3.IntegrityError as failure:
            if failure.sqlite_errorname == "SQLITE_CONSTRAINT_FOREIGNKEY":
                raise self._deleted() from None
            raise StoreError(f"the run {self.run_id} has a step {event.index} already") from None

    def _update(self, assignments: str, *values: Any) -> None:
        assert self._connection is not None
        changed = self._connection.execute(f"UPDATE runs SET {assignments} WHERE number = ?", (*values, self._number))
        if not changed.rowcount:
            raise self._deleted()

    def _deleted(self) -> StoreError:
        return StoreError(f"the run {self.run_id} was deleted while it was being written")
