"""The run store: what goes in comes out, whatever happens on the way."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone

import pytest

import engine.stored_run
from engine.build import build
from engine.errors import RunNotFound, StoreError
from engine.event_json import event_from_json
from engine.metrics import measure
from engine.report import Report
from engine.spec import RunSpec, versions
from engine.store import RunStore, new_run_id
from engine.values import Drafted, Finished, Step
from tests.engine.kept_runs import EVENTS, SPEC, write
from tests.engine.sample_events import sample_events


def test_a_finished_run_comes_back_whole(store):
    run_id = write(store, EVENTS)
    run = store.get(run_id)
    assert (run.id, run.state, run.spec, run.versions) == (run_id, "finished", SPEC, versions())
    assert list(store.events(run_id)) == EVENTS
    assert run.record["ids"] == list(EVENTS[-1].ids)
    assert run.record["text"] == EVENTS[-1].text
    assert run.record["tokens_generated"] == measure(EVENTS).tokens_generated
    assert store.runs() == [run]


def test_a_real_run_comes_back_whole(store):
    events = list(build(RunSpec(prompt="The draft", max_tokens=30, seed=5)).events())
    assert list(store.events(write(store, events))) == events


def test_drafts_are_made_again_from_their_steps(store):
    run_id = write(store, [event for event in EVENTS if not isinstance(event, Drafted)])
    assert list(store.events(run_id)) == EVENTS


@pytest.mark.parametrize("length", range(len(EVENTS) + 1))
def test_a_run_left_after_any_event_is_readable(store, length):
    run_id = write(store, EVENTS[:length])
    run = store.get(run_id)
    assert run.state == ("finished" if length == len(EVENTS) else "interrupted")
    assert list(store.events(run_id)) == EVENTS[:length]
    assert run.record["steps"] == sum(isinstance(event, Step) for event in EVENTS[:length])
    assert run.record["identities_ok"]


def test_a_run_under_way_shows_its_figures_so_far(store):
    with store.begin(SPEC) as writer:
        assert store.get(writer.run_id).record["steps"] == 0
        for n_steps, index in enumerate(place for place, event in enumerate(EVENTS) if isinstance(event, Step)):
            for event in EVENTS[index - 1 : index + 1]:
                writer.add(event)
            run = RunStore(store.path).get(writer.run_id)
            assert (run.state, run.record["steps"]) == ("running", n_steps + 1)
    assert store.get(writer.run_id).state == "interrupted"


def test_an_error_in_the_block_is_passed_on_and_the_run_kept(store):
    def failing():
        yield EVENTS[0]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write(store, failing(), run_id="r1")
    assert store.get("r1").state == "interrupted"


def test_a_run_that_ended_by_an_error_is_finished(store):
    failed = Finished("error", (), "", 0.0, 1.0, "step 0: the model is ill")
    run = store.get(write(store, [EVENTS[0], EVENTS[1], failed]))
    assert (run.state, run.record["finish_reason"], run.record["error"]) == ("finished", "error", failed.error)
    assert list(store.events(run.id)) == [EVENTS[0], EVENTS[1], failed]


def test_a_closed_run_takes_no_more(store):
    writer = store.begin(SPEC)
    for event in EVENTS:
        writer.add(event)
    writer.close()
    with pytest.raises(StoreError, match="is closed"):
        writer.add(EVENTS[1])


def test_a_step_comes_once(store):
    with store.begin(SPEC) as writer:
        writer.add(EVENTS[2])
        with pytest.raises(StoreError, match="has a step 0 already"):
            writer.add(EVENTS[2])


def test_an_event_that_cannot_be_kept_is_refused_and_the_run_goes_on(store):
    bad = Drafted(0, 1, (), (), float("nan"))
    with store.begin(SPEC) as writer:
        with pytest.raises(StoreError, match="cannot be written as JSON"):
            writer.add(bad)
        for event in EVENTS:
            writer.add(event)
    assert list(store.events(writer.run_id)) == EVENTS


def test_runs_come_newest_first_with_their_time_in_utc(tmp_path):
    times = iter(datetime(2025, 1, 1, hour, 30, tzinfo=timezone(timedelta(hours=2))) for hour in (5, 4))
    store = RunStore(tmp_path / "runs.sqlite", now=lambda: next(times))
    first, second = write(store, EVENTS), write(store, EVENTS)
    assert [(run.id, run.created_at) for run in store.runs()] == [
        (second, "2025-01-01T02:30:00+00:00"),
        (first, "2025-01-01T03:30:00+00:00"),
    ]


def test_ids_begin_with_a_letter_and_differ(store):
    ids = [write(store, []) for _ in range(20)] + [new_run_id() for _ in range(20)]
    assert len(set(ids)) == 40
    assert all(len(run_id) == 16 and run_id[0].isalpha() and int(run_id, 16) for run_id in ids)


def test_an_id_that_begins_with_a_digit_is_taken(store):
    assert store.get(write(store, EVENTS, run_id="2025-run")).id == "2025-run"


def test_a_run_id_may_be_given_but_only_once(store):
    write(store, EVENTS, run_id="mine-1")
    with pytest.raises(StoreError, match="a run mine-1 already"):
        store.begin(SPEC, run_id="mine-1")
    assert store.get("mine-1").state == "finished"


@pytest.mark.parametrize("run_id", ["", "../escape", "-x", "a b", "a\0", "x" * 65, "é"])
def test_a_run_id_that_is_no_file_name_is_refused(store, run_id):
    with pytest.raises(StoreError, match="use up to 64 letters, digits, '-' and '_', a letter or a digit first"):
        store.begin(SPEC, run_id=run_id)
    with pytest.raises(StoreError, match="there is no run"):
        store.get(run_id)


def test_a_beginning_of_an_id_is_enough_if_it_is_the_only_one(store):
    for run_id in ("abc1", "abc2", "abc", "b_1", "bx1"):
        write(store, EVENTS, run_id=run_id)
    assert store.get("abc1").id == "abc1"
    assert store.get("abc").id == "abc"
    assert store.get("b_").id == "b_1"
    with pytest.raises(StoreError, match=r"3 runs begin with 'ab': abc, abc2, abc1; give more"):
        store.get("ab")
    with pytest.raises(StoreError, match="there is no run 'ABC1'"):
        store.get("ABC1")
    with pytest.raises(StoreError, match="there is no run 'zz'"):
        store.events("zz")


def test_only_the_whole_id_is_enough_where_it_must_be_exact(store):
    for run_id in ("abc", "abc1"):
        write(store, EVENTS, run_id=run_id)
    assert store.get("abc", exact=True).id == "abc"
    assert list(store.events("abc1", exact=True)) == EVENTS
    for wrong in ("ab", "abc11", "ABC", "", "a%"):
        with pytest.raises(RunNotFound):
            store.get(wrong, exact=True)
        with pytest.raises(RunNotFound):
            store.events(wrong, exact=True)


@pytest.mark.parametrize("length", range(len(EVENTS) + 1))
def test_events_can_be_read_from_any_number_on(store, length):
    run_id = write(store, EVENTS[:length])
    for start in range(-1, length + 4):
        assert list(store.events(run_id, start=start)) == EVENTS[:length][max(0, start) :]


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_the_end_of_a_run_has_its_number_wherever_it_comes(store, length):
    events = [*EVENTS[:length], Finished("error", (), "", 0.0, 1.0, "step 0: the model is ill")]
    run_id = write(store, events)
    for start in range(length + 4):
        assert list(store.events(run_id, start=start)) == events[start:]


def test_events_that_are_left_out_are_not_parsed(store, monkeypatch):
    events = list(sample_events(50))
    run_id = write(store, events)
    parsed = []

    def noted(text):
        parsed.append(text)
        return event_from_json(text)

    monkeypatch.setattr(engine.stored_run, "event_from_json", noted)
    assert list(store.events(run_id, start=97)) == events[97:]
    assert len(parsed) <= 4  # steps 47 (one early), 48, 49, and the end


def test_deleted_runs_are_seen_no_more(store):
    ids = [write(store, EVENTS) for _ in range(3)]
    assert store.delete([ids[0], ids[2], ids[0]]) == 2
    assert [run.id for run in store.runs()] == [ids[1]]
    for attempt in (store.get, store.events, lambda run_id: store.label(run_id, note="x"), lambda r: store.delete([r])):
        with pytest.raises(RunNotFound, match="there is no run"):
            attempt(ids[0])
    with pytest.raises(StoreError, match="already"):
        store.begin(SPEC, run_id=ids[0])


def test_deleting_is_all_or_nothing(store):
    kept = write(store, EVENTS)
    with store.begin(SPEC) as writer:
        for others in (["zz"], [writer.run_id]):
            with pytest.raises(StoreError):
                store.delete([kept, *others])
        assert len(store.runs()) == 2
    assert store.delete([writer.run_id]) == 1
    assert store.delete([]) == 0


def test_a_run_deleted_under_its_writer_is_told_to_it(store):
    def deleted():
        yield EVENTS[0]
        with closing(sqlite3.connect(store.path)) as connection:
            connection.execute("DELETE FROM runs")
            connection.commit()
        yield EVENTS[2]

    with pytest.raises(StoreError, match="was deleted while it was being written"):
        write(store, deleted())
    assert store.runs() == []


def test_a_list_of_runs_parses_no_event_and_leaves_the_long_parts_out(store, monkeypatch):
    ids = [write(store, sample_events(60)) for _ in range(3)]
    full = store.runs()

    def refuse(text):
        raise AssertionError("an event was parsed")

    monkeypatch.setattr(engine.stored_run, "event_from_json", refuse)
    runs, unreadable = store.listing()
    assert [run.id for run in runs] == ids[::-1]
    assert unreadable == []
    for brief, whole in zip(runs, full, strict=True):
        assert set(whole.record) - set(brief.record) == {"ids", "text", "logprobs"}
        assert brief.record == {name: whole.record[name] for name in brief.record}
        assert (brief.spec, brief.versions, brief.created_at) == (whole.spec, whole.versions, whole.created_at)


def test_a_list_takes_a_row_apart_again_only_when_it_says_something_new(store, monkeypatch):
    first, second = (write(store, EVENTS) for _ in range(2))
    before = {run.id: run for run in store.listing()[0]}
    read = []
    whole = RunSpec.from_json
    monkeypatch.setattr(RunSpec, "from_json", lambda text: read.append(text) or whole(text))
    store.label(second, tags=["kept"])
    after = {run.id: run for run in store.listing()[0]}
    assert len(read) == 1
    assert after[first] is before[first]
    assert after[second].tags == ("kept",)


def test_a_list_names_what_it_cannot_read_and_has_runs_under_way(store):
    spoilt = write(store, EVENTS)
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("UPDATE runs SET record = '{'")
        connection.commit()
    with store.begin(SPEC) as writer:
        writer.add(EVENTS[2])
        [run], unreadable = store.listing()
        assert (run.state, run.record["steps"]) == ("running", 1)
        assert unreadable == [spoilt]


def test_a_store_that_is_deleted_is_made_anew(store):
    write(store, EVENTS)
    for path in store.path.parent.glob("runs.sqlite*"):
        if path.is_file():
            path.unlink()
    assert store.runs() == []
    write(store, EVENTS)
    assert len(store.runs()) == 1


def test_the_store_is_in_the_users_data_folder_by_default(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAFTSCOPE_HOME", str(tmp_path))
    assert RunStore().path == tmp_path / "data" / "runs.sqlite"
    assert RunStore().path.exists()


def test_the_record_is_the_reports(store):
    run_id = write(store, EVENTS)
    assert store.get(run_id).record == json.loads(json.dumps(Report(EVENTS).record()))
    assert datetime.fromisoformat(store.get(run_id).created_at).tzinfo == UTC
