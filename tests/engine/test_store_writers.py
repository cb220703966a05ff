"""Many writers at once, in threads and processes, and writers that are killed."""

import subprocess
import sys
from pathlib import Path
from threading import Barrier, Thread

import pytest

from engine.metrics import measure
from engine.store import RunStore
from engine.values import Drafted, Started, Step
from tests.engine.kept_runs import EVENTS, SPEC, write
from tests.engine.sample_events import sample_events, sample_step

ROOT = Path(__file__).parents[2]


def without_trailing_guess(events):
    """What is on disk of a run whose process died: all but a draft whose step never came."""
    return events[:-1] if events and isinstance(events[-1], Drafted) else events


def start_writer(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "tests.engine.writer_process", *map(str, arguments)],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def kill(process):
    process.kill()  # SIGKILL: nothing in it is run any more
    process.communicate()


def test_a_writer_killed_after_any_event_leaves_its_run_readable(store):
    process = start_writer(store.path, "prefixes", "r")
    try:
        assert process.stdout.readline() == "ready\n"
        alive = store.runs()
    finally:
        kill(process)
    assert {run.state for run in alive} == {"running"}
    dead = store.runs()
    assert [run.id for run in dead] == [f"r{length}" for length in reversed(range(len(EVENTS)))]
    for length, before, after in zip(reversed(range(len(EVENTS))), alive, dead, strict=True):
        kept = without_trailing_guess(EVENTS[:length])
        assert after.state == "interrupted"
        assert list(store.events(after.id)) == kept
        assert after.record == before.record
        assert after.record["steps"] == measure(kept).steps
    assert store.runs() == dead
    assert list(store.path.with_name("runs.sqlite-live").iterdir()) == []


@pytest.mark.parametrize("n_steps", [1, 40, 300])
def test_a_writer_killed_at_any_moment_loses_no_step_that_it_was_done_with(store, n_steps):
    process = start_writer(store.path, "forever", "r1")
    for _ in range(n_steps):
        last = int(process.stdout.readline())
    kill(process)
    run = store.get("r1")
    started, *rest = store.events("r1")
    steps = [event for event in rest if isinstance(event, Step)]
    assert run.state == "interrupted"
    assert isinstance(started, Started)
    assert run.record["steps"] == len(steps) > last
    assert steps == [sample_step(index, index + 3, float(index)) for index in range(len(steps))]


def test_four_processes_write_at_once(tmp_path):
    path = tmp_path / "new" / "runs.sqlite"
    processes = [start_writer(path, "whole", f"r{number}", 50) for number in range(4)]
    assert [process.communicate() and process.returncode for process in processes] == [0, 0, 0, 0]
    store = RunStore(path)
    expected = list(sample_events(50))
    assert {run.id: run.state for run in store.runs()} == {f"r{number}": "finished" for number in range(4)}
    for number in range(4):
        assert list(store.events(f"r{number}")) == expected


def test_four_threads_write_at_once_through_one_store(store):
    barrier, failures = Barrier(4), []

    def run(number):
        barrier.wait()
        try:
            write(store, sample_events(50), run_id=f"r{number}")
        except Exception as failure:
            failures.append(failure)

    threads = [Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert {run.state for run in store.runs()} <= {"running", "finished"}
    for thread in threads:
        thread.join()
    assert failures == []
    assert [run.record["steps"] for run in store.runs()] == [50] * 4


def test_a_writer_may_be_handed_to_another_thread(store):
    writer = store.begin(SPEC)
    thread = Thread(target=lambda: [writer.add(event) for event in EVENTS])
    thread.start()
    thread.join()
    assert store.get(writer.run_id).state == "finished"
