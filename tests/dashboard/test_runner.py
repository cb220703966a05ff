"""Runs beside the page: controls, ownership, bounds, saving."""

import json
import time
from dataclasses import replace

import pytest

from dashboard import runner
from dashboard.runner import MOST_ACTIVE, MOST_KEPT, LiveRun, Registry, TooManyRuns
from engine import RunSpec, RunStore, Step

LONG = RunSpec(prompt="The draft", max_tokens=20_000)
SHORT = RunSpec(prompt="The draft", max_tokens=8)


def until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


def n_steps(run):
    return sum(entry[0] == "step" for entry in json.loads(run.since(0))["entries"])


@pytest.fixture
def registry():
    runs = Registry()
    yield runs
    for run in list(runs._runs.values()):
        run.stop()
        run.join(10)


def test_a_run_goes_to_its_end_and_is_saved(registry):
    run = registry.start(SHORT, "tab")
    run.join(10)
    assert run.finished
    stored = RunStore().get(run.id)
    assert stored.spec == SHORT
    assert stored.record["tokens_generated"] == 8


def test_pause_step_resume_and_stop(registry):
    run = registry.start(LONG, "tab", steps_per_second=50)
    until(lambda: n_steps(run) > 2)
    run.pause()
    until(lambda: run.log.state == "paused")
    before = n_steps(run)
    run.step()
    until(lambda: n_steps(run) == before + 1 and run.log.state == "paused")
    run.resume()
    until(lambda: n_steps(run) > before + 3)
    run.stop()
    run.join(10)
    assert json.loads(run.since(0))["reason"] == "cancelled"


def test_a_run_may_start_paused_and_waits_for_its_first_step(registry):
    run = registry.start(LONG, "tab", paused=True)
    until(lambda: run.log.state == "paused")
    assert n_steps(run) == 0
    run.step()
    until(lambda: n_steps(run) == 1)


def test_stop_takes_effect_within_one_step(registry):
    run = registry.start(LONG, "tab", steps_per_second=1)
    until(lambda: n_steps(run) == 1)
    asked_at = time.monotonic()
    run.stop()
    run.join(10)
    assert time.monotonic() - asked_at < 1
    assert n_steps(run) <= 2


def test_two_runs_do_not_disturb_each_other(registry):
    one = registry.start(RunSpec(prompt="The draft", max_tokens=200, seed=1), "first tab")
    two = registry.start(RunSpec(prompt="The target", max_tokens=200, seed=2), "second tab")
    one.join(20)
    two.join(20)
    alone = LiveRun(two.spec, "third tab")
    alone.start()
    alone.join(20)
    decisions = [
        [entry[2] for entry in json.loads(run.since(0))["entries"] if entry[0] == "step"] for run in (two, alone)
    ]
    assert decisions[0] == decisions[1]


def test_when_full_it_says_so(registry):
    for _ in range(MOST_ACTIVE):
        registry.start(LONG, "tab", paused=True)
    with pytest.raises(TooManyRuns, match=f"{MOST_ACTIVE} runs are under way"):
        registry.start(SHORT, "tab")


def test_only_so_many_finished_logs_stay_in_memory(registry):
    for _ in range(MOST_KEPT + 5):
        registry.start(SHORT, "tab").join(10)
    assert len(registry._runs) <= MOST_KEPT + 1


def test_a_run_that_nobody_looks_at_stops(registry, monkeypatch):
    monkeypatch.setattr(runner, "IDLE_SECONDS", 0.2)
    run = registry.start(LONG, "tab", steps_per_second=20)
    run.join(10)
    assert run.finished


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (RunSpec(target="no-such-model", prompt="x"), "no-such-model"),
        (RunSpec(prompt="  "), "prompt is empty"),
        (RunSpec(prompt="x", rule="naive", drafter="ngram"), "raw logits"),
    ],
)
def test_bad_settings_end_the_run_with_a_clear_message(registry, spec, words):
    run = registry.start(spec, "tab")
    run.join(10)
    assert words in json.loads(run.since(0))["error"]


def test_a_store_that_fails_does_not_end_the_run(registry, monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("DRAFTSCOPE_HOME", str(blocked / "below"))
    run = registry.start(SHORT, "tab")
    run.join(10)
    answer = json.loads(run.since(0))
    assert answer["reason"] == "length"
    assert answer["figures"]["tokens_generated"] == 8
    assert not run.saved
    assert run.save_error


def test_a_note_of_the_backend_is_kept_for_the_page(registry):
    run = registry.start(replace(SHORT, backend="numpy"), "tab")
    run.join(10)
    assert run.notes == ("the backend numpy runs GGUF files alone: it does nothing for markov",)
    run = registry.start(SHORT, "tab")
    run.join(10)
    assert run.notes == ()


def test_pausing_changes_no_figure(registry):
    run = registry.start(SHORT, "tab", paused=True)
    until(lambda: run.log.state == "paused")
    time.sleep(0.3)
    run.resume()
    run.join(10)
    steps = [event for event in RunStore().events(run.id) if isinstance(event, Step)]
    assert steps[-1].at_seconds < 0.25
