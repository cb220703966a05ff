"""What goes wrong with the store on its disk is told in words, and nothing is lost by it."""

import sqlite3
from contextlib import closing

import pytest

import engine.database
import engine.run_writer
import engine.store
from engine.errors import DraftscopeError, StoreError
from engine.store import RunStore
from tests.engine.kept_runs import EVENTS, SPEC, write
from tests.engine.sample_events import sample_events, sample_step


def abandon(store):
    """Leave a run as a writer does whose process dies."""
    write(store, EVENTS[:5], run_id="r1")
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("UPDATE runs SET state = 'running', record = NULL")
        connection.commit()


def test_a_store_under_a_file_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"runs\.sqlite cannot be used: (Not a directory|File exists)"):
        RunStore(tmp_path / "file" / "runs.sqlite")


def test_a_store_that_is_a_folder_is_told(tmp_path):
    with pytest.raises(StoreError, match="cannot be opened"):
        RunStore(tmp_path)


def test_a_locked_store_is_told(store, monkeypatch):
    monkeypatch.setattr(engine.database, "BUSY_SECONDS", 0.05)
    with store.begin(SPEC) as writer, closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="another program holds it locked"):
            writer.add(EVENTS[2])
        with pytest.raises(StoreError, match="another program holds it locked"):
            store.begin(SPEC)
        assert store.get(writer.run_id).state == "running"
        other.execute("ROLLBACK")
        writer.add(EVENTS[2])
    assert store.get(writer.run_id).record["steps"] == 1


def pragma_at_connect(monkeypatch, module, pragma):
    connect = module.connect

    def connected(path):
        connection = connect(path)
        connection.execute(f"PRAGMA {pragma}")
        return connection

    monkeypatch.setattr(module, "connect", connected)


def test_a_full_disk_is_told_and_what_was_written_stays(store, monkeypatch):
    added = []

    def steps():
        for index in range(1000):
            yield sample_step(index, index, float(index))
            added.append(index)

    with monkeypatch.context() as patch:
        pragma_at_connect(patch, engine.run_writer, "max_page_count = 12")
        with pytest.raises(StoreError, match="the disk is full"):
            write(store, steps(), run_id="r1")
    run = store.get("r1")
    assert (run.state, run.record["steps"]) == ("interrupted", len(added))


def test_a_read_only_store_is_told_on_writing_and_can_be_read(store, monkeypatch):
    abandon(store)
    with monkeypatch.context() as patch:
        pragma_at_connect(patch, engine.database, "query_only = ON")
        pragma_at_connect(patch, engine.run_writer, "query_only = ON")
        assert [run.state for run in store.runs()] == ["interrupted"]
        assert store.runs()[0].record["steps"] > 0
        with pytest.raises(StoreError, match="it is read-only"):
            store.begin(SPEC)
        with pytest.raises(StoreError, match="it is read-only"):
            store.delete(["r1"])
    assert len(store.runs()) == 1


def test_a_damaged_store_is_told(store):
    write(store, sample_events(40))
    content = bytearray(store.path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    store.path.write_bytes(content)
    with pytest.raises(StoreError, match="is damaged"):
        store.runs()


def change(store, assignment, run_id):
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute(f"UPDATE runs SET {assignment} WHERE id = ?", (run_id,))
        connection.commit()


@pytest.mark.parametrize(
    "assignment",
    [
        """spec = '{"schema": 1, "warmth": 3}'""",
        """spec = '{"schema": 2}'""",
        "spec = 'no JSON'",
        "versions = '[]'",
        "record = NULL",
        "record = '{'",
        """state = 'running', started = '{"type": "begun"}'""",
    ],
)
def test_a_run_that_cannot_be_read_hides_no_other_and_can_be_deleted(store, assignment):
    kept = [write(store, EVENTS) for _ in range(3)]
    change(store, assignment, kept[1])
    assert [run.id for run in store.runs()] == [kept[2], kept[0]]
    assert store.unreadable() == [kept[1]]
    with pytest.raises(StoreError):
        store.get(kept[1])
    assert store.delete([kept[1]]) == 1
    assert store.unreadable() == []


def test_a_run_whose_settings_are_unknown_says_what_to_do(store):
    run_id = write(store, EVENTS)
    change(store, """spec = '{"schema": 1, "warmth": 3}'""", run_id)
    with pytest.raises(StoreError, match=f"run {run_id} cannot be read.*'warmth'.*newer version.*runs delete"):
        store.get(run_id)


def test_no_connection_stays_open(store, monkeypatch):
    connections = []
    connect = sqlite3.connect

    def noted(*arguments, **options):
        connections.append(connect(*arguments, **options))
        return connections[-1]

    monkeypatch.setattr(sqlite3, "connect", noted)
    run_id = write(store, EVENTS)
    store.runs()
    next(store.events(run_id))
    store.delete([run_id])
    for attempt in (
        lambda: store.get("zz"),
        lambda: write(store, [EVENTS[2]] * 2),
        lambda: store.begin(SPEC, run_id="."),
    ):
        with pytest.raises(DraftscopeError):
            attempt()
    with pytest.raises(DraftscopeError):
        RunStore(store.path.parent)
    assert len(connections) >= 8
    for connection in connections:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")
