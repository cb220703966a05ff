"""Runs on disk, in one SQLite file: written step by step, read by any number of readers.

A run that is being written shows as "running", wherever its writer is; one whose writer has gone
without a word shows as "interrupted", with the figures of the steps that reached the disk.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from engine.database import connect, opened
from engine.deleted_runs import KEPT_DAYS, DeletedRun, Storage, deleted_runs, purge, storage
from engine.errors import StoreError
from engine.import_jsonl import ImportedRun
from engine.life_sign import LifeSign
from engine.run_labels import checked_note, checked_tags
from engine.run_writer import RunWriter
from engine.spec import RunSpec, versions
from engine.stored_run import RUN_ID, RunState, StoredRun, events_of, find, if_readable, rows, settled, stored_run
from engine.values import Event

__all__ = ["Added", "RunState", "RunStore", "StoredRun", "new_run_id"]


def new_run_id() -> str:
    """An id that nobody guesses: 16 hex digits, a letter first, so that no program reads it as a number.

    Examples
    --------
    >>> len(new_run_id()), new_run_id()[0] in "abcdef", new_run_id() == new_run_id()
    (16, True, False)
    """
    return secrets.choice("abcdef") + secrets.token_hex(8)[1:]


@dataclass(frozen=True, slots=True)
class Added:
    """What came of an import.

    Attributes
    ----------
    ids : list of str
    replaced : list of str
        Those of them that took the place of a deleted run, which can no longer be restored.
    """

    ids: list[str]
    replaced: list[str]

    @property
    def words(self) -> str:
        """What has to be told beside the number of runs; "" where nothing was lost.

        Examples
        --------
        >>> Added(["a1", "b2"], ["b2"]).words
        'It took the place of the deleted run of the same id, which can no longer be restored: b2'
        """
        if not self.replaced:
            return ""
        ids = ", ".join(self.replaced)
        if len(self.replaced) == 1:
            return f"It took the place of the deleted run of the same id, which can no longer be restored: {ids}"
        return f"They took the place of the deleted runs of the same ids, which can no longer be restored: {ids}"


class RunStore:
    """The history of runs.

    Every method opens the file anew, so that a store may be shared by threads and many may be used
    at once; a file that is missing is made.

    Parameters
    ----------
    path : Path, optional
        The file; `runs.sqlite` in the user's data folder (`engine.folders.data_folder`) by default.
    now : callable, optional
        Gives the time at which a run begins, with its zone.

    Raises
    ------
    StoreError
        Here and in every method: if the file cannot be read or written, is no run store, or comes
        from a newer version.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from engine.build import build
    >>> spec = RunSpec(prompt="The draft", max_tokens=5)
    >>> with TemporaryDirectory() as folder:
    ...     store = RunStore(Path(folder) / "runs.sqlite")
    ...     with store.begin(spec) as writer:
    ...         for event in build(spec).events():
    ...             writer.add(event)
    ...     [run] = store.runs()
    ...     run.state, run.record["tokens_generated"], run.spec == spec
    ('finished', 5, True)
    """

    def __init__(self, path: Path | None = None, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        if path is None:
            from engine.folders import data_folder  # imported here: a store with a path of its own needs no folder

            path = data_folder() / "runs.sqlite"
        self.path = path
        self._now = now
        connect(path).close()

    def begin(self, spec: RunSpec, *, run_id: str | None = None) -> RunWriter:
        """Enter a new run, and hand over what takes its events.

        Parameters
        ----------
        spec : RunSpec
        run_id : str, optional
            Up to 64 letters, digits, "-" and "_", a letter or a digit first; `new_run_id` by default.
        """
        if run_id is None:
            run_id = new_run_id()
        if not RUN_ID.fullmatch(run_id):
            raise StoreError(
                f"the run id is {run_id!r}; use up to 64 letters, digits, '-' and '_', a letter or a digit first"
            )
        return RunWriter(
            self.path,
            run_id,
            created_at=self._time(),
            spec=_ascii(spec),
            versions=json.dumps(versions()),
        )

    def runs(self) -> list[StoredRun]:
        """All runs that this version can read, the newest first; `unreadable` names the others."""
        return [run for _, run in self._all() if run is not None]

    def unreadable(self) -> list[str]:
        """The ids of the runs that `runs` leaves out: damaged, or from a newer version. `delete` takes them."""
        return [run_id for run_id, run in self._all() if run is None]

    def listing(self) -> tuple[list[StoredRun], list[str]]:
        """What `runs` and `unreadable` give, read fast: `ids`, `text` and `logprobs` are left out."""
        every = self._all(brief=True)
        return [run for _, run in every if run is not None], [run_id for run_id, run in every if run is None]

    def _all(self, *, brief: bool = False) -> list[tuple[str, StoredRun | None]]:
        with opened(self.path) as connection:
            found = rows(connection, brief=brief)
            return [(row.id, if_readable(connection, row, self.path, brief=brief)) for row in found]

    def get(self, run_id: str, *, exact: bool = False) -> StoredRun:
        """The run of that id, or whose id alone begins with it.

        Parameters
        ----------
        run_id : str
        exact : bool, default False
            Take the whole id only.

        Raises
        ------
        RunNotFound
            If there is no such run.
        StoreError
            If there is more than one, or this version cannot read it.
        """
        with opened(self.path) as connection:
            return stored_run(settled(connection, find(connection, run_id, exact=exact), self.path))

    def events(self, run_id: str, *, start: int = 0, exact: bool = False) -> Iterator[Event]:
        """The events of a run, as many as have reached the disk.

        A closed run gives back every event of `engine.decode.decode`. `Drafted` events are made again
        from their steps, which hold all that they say.

        Parameters
        ----------
        run_id : str
        start : int, default 0
            Leave out so many events at the beginning. They are not read, but for the last step among
            them, so a reader of a run that grows pays for what is new.
        exact : bool, default False
            Take the whole id only.

        Raises
        ------
        StoreError
            As for `get`; and, while reading on, if an event is damaged or from a newer version.
        """
        with opened(self.path) as connection:
            return events_of(connection, find(connection, run_id, exact=exact), start)

    def add(self, runs: Iterable[ImportedRun]) -> Added:
        """Enter runs that a file brought (`engine.import_jsonl.read_runs`): all, or none.

        A run that was deleted, and could still be restored, gives way to one of its id; `Added.replaced` tells.

        Raises
        ------
        StoreError
            If there is a run of one of the ids already.
        """
        added, replaced = list(runs), []
        with opened(self.path) as connection:
            connection.execute("BEGIN IMMEDIATE")  # closing takes back what was not committed
            for run in added:
                if connection.execute("DELETE FROM runs WHERE id = ? AND deleted_at IS NOT NULL", (run.id,)).rowcount:
                    replaced.append(run.id)
                if connection.execute("SELECT 1 FROM runs WHERE id = ?", (run.id,)).fetchone():
                    raise StoreError(
                        f"there is a run {run.id} already; delete it first if that of the file is to take its place. "
                        "Nothing was imported"
                    )
                _insert(connection, run)
            connection.execute("COMMIT")
        return Added([run.id for run in added], replaced)

    def label(self, run_id: str, *, tags: Iterable[str] | None = None, note: str | None = None) -> None:
        """Write tags or a note on a run, in place of what was there; None leaves it as it is.

        Raises
        ------
        SettingError
            If they cannot be used: see `engine.run_labels`.
        StoreError
            As for `get`.
        """
        self.label_all({run_id: tags}, note=note)

    def label_all(self, tags: Mapping[str, Iterable[str] | None], *, note: str | None = None) -> None:
        """Write tags on runs, in place of what each had, and a note on all of them: on every one, or on none.

        Parameters
        ----------
        tags : mapping
            By the id of the run; None leaves a run's tags as they are.
        note : str, optional
            The notes are left as they are by default.

        Raises
        ------
        SettingError, StoreError
            As for `label`.
        """
        checked = {run_id: None if one is None else json.dumps(checked_tags(one)) for run_id, one in tags.items()}
        kept_note = None if note is None else checked_note(note)
        with opened(self.path) as connection:
            connection.execute("BEGIN IMMEDIATE")  # closing takes back what was not committed
            for run_id, written in checked.items():
                connection.execute(
                    "UPDATE runs SET tags = coalesce(?, tags), note = coalesce(?, note) WHERE number = ?",
                    (written, kept_note, find(connection, run_id).number),
                )
            connection.execute("COMMIT")

    def delete(self, run_ids: Iterable[str]) -> int:
        """Delete runs and return how many: all of them, or none if one cannot be.

        They can be restored until they are purged, see `purge`.

        Raises
        ------
        StoreError
            As for `get`; and if a run is being written.
        """
        with opened(self.path) as connection:
            connection.execute("BEGIN IMMEDIATE")  # closing takes back what was not committed
            chosen = {row.number: row for row in (find(connection, run_id) for run_id in run_ids)}
            for row in chosen.values():
                if row.state == "running" and LifeSign(self.path, row.id).held():
                    raise StoreError(f"the run {row.id} is being written; stop it before you delete it")
                connection.execute("UPDATE runs SET deleted_at = ? WHERE number = ?", (self._time(), row.number))
            connection.execute("COMMIT")
        for row in chosen.values():
            LifeSign(self.path, row.id).release()
        return len(chosen)

    def deleted(self) -> list[DeletedRun]:
        """The runs that can be restored, the latest deleted first."""
        with opened(self.path) as connection:
            return deleted_runs(connection)

    def restore(self, run_ids: Iterable[str]) -> int:
        """Take deleted runs back and return how many: all of them, or none if one is not there.

        Raises
        ------
        RunNotFound
            If a run is not deleted, or purged already.
        """
        with opened(self.path) as connection:
            connection.execute("BEGIN IMMEDIATE")
            numbers = {find(connection, run_id, deleted=True).number for run_id in run_ids}
            for number in numbers:
                connection.execute("UPDATE runs SET deleted_at = NULL WHERE number = ?", (number,))
            connection.execute("COMMIT")
        return len(numbers)

    def purge(self, *, kept_days: float = KEPT_DAYS) -> int:
        """Take deleted runs out of the file for good, give their room back, and return how many.

        Parameters
        ----------
        kept_days : float, default 7
            Leave those that were deleted within so many days; 0 takes all.
        """
        with opened(self.path) as connection:
            return purge(connection, self._now().astimezone(UTC), kept_days=kept_days)

    def storage(self) -> Storage:
        """What the store takes on disk."""
        with opened(self.path) as connection:
            return storage(connection, self.path)

    def _time(self) -> str:
        return self._now().astimezone(UTC).isoformat(timespec="seconds")


def _ascii(spec: RunSpec) -> str:
    """The spec as JSON in ASCII: a prompt may hold what is not valid Unicode."""
    return json.dumps(json.loads(spec.to_json()))


def _insert(connection: sqlite3.Connection, run: ImportedRun) -> None:
    state = "finished" if run.finished else "interrupted"
    values = (run.id, run.created_at, state, _ascii(run.spec), json.dumps(run.versions))
    number = connection.execute(
        "INSERT INTO runs (id, created_at, state, spec, versions, started, finished, record, tags, note) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*values, run.started, run.finished, run.record, json.dumps(run.tags), run.note),
    ).lastrowid
    connection.executemany(
        "INSERT INTO steps (run, step, event) VALUES (?, ?, ?)",
        ((number, index, event) for index, event in enumerate(run.steps)),
    )
