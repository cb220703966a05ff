"""The schema of the run store: from a blank file, from the oldest one, and from files that are not ours."""

import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Barrier, Thread

import pytest

from engine.errors import StoreError
from engine.migrations import APPLICATION_ID, MIGRATIONS, migrate
from engine.store import RunStore
from engine.values import Finished, Started

OLDEST = Path(__file__).parent / "store_version_1.sql"


def opened(path):
    return closing(sqlite3.connect(path, isolation_level=None))


def version(connection):
    return connection.execute("PRAGMA user_version").fetchone()[0]


@pytest.fixture
def oldest(tmp_path):
    path = tmp_path / "runs.sqlite"
    with opened(path) as connection:
        connection.executescript(OLDEST.read_text(encoding="utf-8"))
    return path


def test_a_blank_file_gets_every_step(tmp_path):
    (tmp_path / "runs.sqlite").touch()
    RunStore(tmp_path / "runs.sqlite")
    with opened(tmp_path / "runs.sqlite") as connection:
        assert version(connection) == len(MIGRATIONS)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)


def test_the_oldest_file_is_read_whole(oldest):
    store = RunStore(oldest)
    finished, interrupted = store.runs()
    assert (finished.id, finished.state, finished.record["tokens_generated"]) == ("f2", "finished", 2)
    assert (interrupted.id, interrupted.state, interrupted.record["tokens_generated"]) == ("a1", "interrupted", 2)
    started, *_, ended = store.events("f2")
    assert isinstance(started, Started)
    assert isinstance(ended, Finished)
    assert finished.spec.prompt == "The draft"
    with opened(oldest) as connection:
        assert version(connection) == len(MIGRATIONS)


def test_what_came_later_is_empty_in_the_oldest_file_and_can_be_used(oldest):
    store = RunStore(oldest)
    assert {(run.tags, run.note) for run in store.runs()} == {((), "")}
    assert store.deleted() == []
    store.label("f2", tags=["old"], note="from version 1")
    store.delete(["a1"])
    assert [(run.id, run.tags, run.note) for run in store.listing()[0]] == [("f2", ("old",), "from version 1")]
    store.restore(["a1"])
    assert len(list(store.events("a1"))) == 3


def test_the_oldest_file_ends_with_the_schema_of_a_blank_one(oldest, tmp_path):
    RunStore(oldest)
    RunStore(tmp_path / "blank.sqlite")
    schema = "SELECT type, name, sql FROM sqlite_master ORDER BY name"
    with opened(oldest) as old, opened(tmp_path / "blank.sqlite") as blank:
        assert columns(old) == columns(blank)
        assert len(old.execute(schema).fetchall()) == len(blank.execute(schema).fetchall())


def columns(connection):
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {name: connection.execute(f"PRAGMA table_info({name})").fetchall() for name in tables}


def test_only_the_missing_steps_are_taken(tmp_path):
    first = (("CREATE TABLE a (x)",),)
    both = (*first, ("ALTER TABLE a ADD COLUMN y", "INSERT INTO a (y) VALUES (2)"))
    with opened(tmp_path / "any.sqlite") as connection:
        migrate(connection, first)
        connection.execute("INSERT INTO a (x) VALUES (1)")
        migrate(connection, both)
        migrate(connection, both)
        assert connection.execute("SELECT x, y FROM a").fetchall() == [(1, None), (None, 2)]
        assert version(connection) == 2


def test_a_step_that_fails_leaves_the_file_as_it_was(tmp_path):
    first = (("CREATE TABLE a (x)",),)
    with opened(tmp_path / "any.sqlite") as connection:
        migrate(connection, first)
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, (*first, ("CREATE TABLE b (x)",), ("CREATE NONSENSE",)))
        assert version(connection) == 1
        assert set(columns(connection)) == {"a"}


def test_a_file_from_a_newer_version_is_refused(oldest):
    with opened(oldest) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    before = oldest.read_bytes()
    with pytest.raises(StoreError, match=r"newer version of Draftscope.*update"):
        RunStore(oldest)
    assert oldest.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path):
    path = tmp_path / "runs.sqlite"
    path.write_bytes(b"a letter to a friend\n" * 500)
    with pytest.raises(StoreError, match="no run store"):
        RunStore(path)
    assert path.read_bytes() == b"a letter to a friend\n" * 500


def test_the_database_of_another_program_is_refused_and_kept(tmp_path):
    path = tmp_path / "runs.sqlite"
    with opened(path) as connection:
        connection.execute("CREATE TABLE letters (text)")
    with pytest.raises(StoreError, match=r"runs\.sqlite.*another program"):
        RunStore(path)
    with opened(path) as connection:
        assert set(columns(connection)) == {"letters"}


def test_many_may_make_the_same_file_at_once(tmp_path):
    barrier = Barrier(8)
    failures = []

    def make():
        barrier.wait()
        try:
            RunStore(tmp_path / "runs.sqlite").runs()
        except Exception as failure:
            failures.append(failure)

    threads = [Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
