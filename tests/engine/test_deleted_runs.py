"""Deleting with a way back: what is hidden, what comes back, what is gone, and the room on disk."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from engine.deleted_runs import KEPT_DAYS
from engine.errors import RunNotFound
from engine.store import RunStore
from tests.engine.kept_runs import EVENTS, SPEC, write
from tests.engine.sample_events import sample_events

BEGIN = datetime(2026, 11, 1, 12, tzinfo=UTC)


class SetClock:
    """A clock that stands where it is put."""

    def __init__(self):
        self.time = BEGIN

    def __call__(self):
        return self.time


@pytest.fixture
def clock():
    return SetClock()


@pytest.fixture
def store(tmp_path, clock):
    return RunStore(tmp_path / "runs.sqlite", now=clock)


def n_steps(store):
    with closing(sqlite3.connect(store.path)) as connection:
        return connection.execute("SELECT count(*) FROM steps").fetchone()[0]


def test_a_deleted_run_comes_back_as_it_was(store):
    ids = [write(store, EVENTS) for _ in range(3)]
    store.label(ids[1], tags=["a"], note="b")
    before = store.runs()
    store.delete(ids[:2])
    assert [run.id for run in store.runs()] == [ids[2]]
    assert store.restore(ids[:2]) == 2
    assert store.runs() == before
    assert list(store.events(ids[1])) == EVENTS


def test_restoring_is_all_or_nothing(store):
    ids = [write(store, EVENTS) for _ in range(2)]
    store.delete(ids[:1])
    for wrong in (ids[1], "zz"):
        with pytest.raises(RunNotFound, match=r"no deleted run .* runs deleted"):
            store.restore([ids[0], wrong])
    assert [run.id for run in store.deleted()] == [ids[0]]


def test_what_can_be_restored_is_told_the_latest_first(store, clock):
    ids = [write(store, EVENTS) for _ in range(2)]
    for run_id in ids:
        clock.time += timedelta(hours=1)
        store.delete([run_id])
    latest, first = store.deleted()
    assert (latest.id, first.id) == (ids[1], ids[0])
    assert latest.deleted_at == "2026-11-01T14:00:00+00:00"
    assert latest.spec == SPEC
    with closing(sqlite3.connect(store.path)) as connection:
        events = connection.execute("SELECT sum(length(event)) FROM steps WHERE run = 2").fetchone()[0]
    assert events < latest.n_bytes < events + 4000


def test_a_run_that_cannot_be_read_can_be_deleted_and_restored(store):
    run_id = write(store, EVENTS)
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("UPDATE runs SET spec = 'no JSON', started = NULL, record = NULL")
        connection.commit()
    store.delete([run_id])
    [deleted] = store.deleted()
    assert (deleted.id, deleted.spec) == (run_id, None)
    store.restore([run_id])
    assert store.unreadable() == [run_id]


def test_purging_takes_what_is_old_enough(store, clock):
    ids = [write(store, EVENTS) for _ in range(3)]
    store.delete(ids[:1])
    clock.time += timedelta(days=KEPT_DAYS - 1)
    store.delete(ids[1:2])
    assert store.purge() == 0
    clock.time += timedelta(days=1)
    assert store.purge() == 1
    assert [run.id for run in store.deleted()] == [ids[1]]
    with pytest.raises(RunNotFound):
        store.restore(ids[:1])
    assert store.purge(kept_days=0) == 1
    assert store.deleted() == []
    assert [run.id for run in store.runs()] == [ids[2]]
    assert n_steps(store) == sum(1 for _ in store.events(ids[2])) // 2 - 1


def test_purging_all_takes_all_even_if_the_clock_went_back(store, clock):
    store.delete([write(store, EVENTS)])
    clock.time -= timedelta(days=400)
    assert store.purge(kept_days=0) == 1


def test_purging_gives_the_room_back_and_keeps_the_rest(store):
    kept = write(store, EVENTS)
    store.delete([write(store, sample_events(3000))])
    before = store.storage()
    assert (before.n_runs, before.n_deleted) == (1, 1)
    assert before.n_bytes > before.deleted_bytes > 1_000_000
    store.purge(kept_days=0)
    after = store.storage()
    assert (after.n_runs, after.n_deleted, after.deleted_bytes) == (1, 0, 0)
    assert after.n_bytes < before.n_bytes - before.deleted_bytes
    assert list(store.events(kept)) == EVENTS


def test_purging_beside_a_writer_loses_nothing(store):
    store.delete([write(store, sample_events(300))])
    with store.begin(SPEC) as writer:
        for event in EVENTS[:5]:
            writer.add(event)
        assert store.purge(kept_days=0) == 1
        for event in EVENTS[5:]:
            writer.add(event)
    assert list(store.events(writer.run_id)) == EVENTS


def test_purging_while_another_program_holds_the_file_open_does_not_fail(store):
    write(store, EVENTS)
    store.delete([write(store, sample_events(300))])
    with closing(sqlite3.connect(store.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM runs").fetchone()
        assert store.purge(kept_days=0) == 1
        assert reader.execute("SELECT count(*) FROM runs").fetchone() == (2,)
    assert len(store.runs()) == 1


def test_storage_counts_what_is_still_in_the_log_of_the_database(store):
    with store.begin(SPEC) as writer:  # which holds the log open
        for event in list(sample_events(50))[:-1]:
            writer.add(event)
        log = store.path.with_name("runs.sqlite-wal").stat().st_size
        assert log > 10_000
        assert store.storage().n_bytes == store.path.stat().st_size + log


def test_a_process_that_dies_in_the_middle_of_deleting_deletes_nothing(store):
    ids = [write(store, EVENTS) for _ in range(3)]
    program = f"""
import os
from pathlib import Path
from engine.store import RunStore
class Dying(RunStore):
    def _time(self):
        self.n = getattr(self, "n", 0) + 1
        if self.n == 2:
            os._exit(9)  # as a kill between the first mark and the second
        return super()._time()
Dying(Path({str(store.path)!r})).delete({ids!r})
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 9
    assert len(store.runs()) == 3
    assert store.deleted() == []
