"""Tags and notes on runs."""

import sqlite3
from contextlib import closing

import pytest

from engine.errors import RunNotFound, SettingError
from engine.run_labels import MOST_TAGS, checked_note, checked_tags
from tests.engine.kept_runs import EVENTS, SPEC, write


def test_tags_and_notes_are_kept_apart(store):
    run_id = write(store, EVENTS)
    store.label(run_id, tags=["b", "a"])
    store.label(run_id, note="  before the update\nto version 2 ")
    run = store.get(run_id)
    assert (run.tags, run.note) == (("b", "a"), "before the update\nto version 2")
    store.label(run_id, tags=[])
    assert (store.get(run_id).tags, store.get(run_id).note) == ((), "before the update\nto version 2")
    store.label(run_id, note="")
    assert store.get(run_id).note == ""
    assert store.listing()[0] != []


def test_awkward_text_comes_back(store):
    run_id = write(store, EVENTS)
    store.label(run_id, tags=["汉字 \U0001f600", "'; DROP TABLE runs; --"], note='=1+1\n"quoted" \U0001f600')
    run = store.get(run_id)
    assert run.tags == ("汉字 \U0001f600", "'; DROP TABLE runs; --")
    assert run.note == '=1+1\n"quoted" \U0001f600'


def test_several_runs_are_labelled_all_or_none(store):
    first, second = (write(store, EVENTS) for _ in range(2))

    def labels():
        return [(store.get(run_id).tags, store.get(run_id).note) for run_id in (first, second)]

    store.label_all({first: ["a"], second: ["b"]})
    assert labels() == [(("a",), ""), (("b",), "")]
    with pytest.raises(RunNotFound):
        store.label_all({first: ["c"], "zz": ["c"], second: ["c"]}, note="x")
    with pytest.raises(SettingError):
        store.label_all({first: ["c"], second: ["c,d"]}, note="x")
    assert labels() == [(("a",), ""), (("b",), "")]
    store.label_all({first: None, second: []}, note="both")
    assert labels() == [(("a",), "both"), ((), "both")]


def test_a_run_under_way_can_be_labelled(store):
    with store.begin(SPEC) as writer:
        store.label(writer.run_id, tags=["live"], note="so far so good")
        for event in EVENTS:
            writer.add(event)
    run = store.get(writer.run_id)
    assert (run.state, run.tags, run.note) == ("finished", ("live",), "so far so good")


@pytest.mark.parametrize("tag", ["", "  ", "a,b", "a\nb", "x" * 41, "a\0"])
def test_a_tag_that_cannot_be_used_is_refused_and_nothing_is_written(store, tag):
    run_id = write(store, EVENTS)
    with pytest.raises(SettingError, match="give 1 to 40 characters"):
        store.label(run_id, tags=["good", tag], note="x")
    assert (store.get(run_id).tags, store.get(run_id).note) == ((), "")


def test_too_many_tags_or_too_long_a_note_are_refused():
    assert len(checked_tags(map(str, range(MOST_TAGS)))) == MOST_TAGS
    with pytest.raises(SettingError, match="these are 21 tags; a run can have 20"):
        checked_tags(map(str, range(MOST_TAGS + 1)))
    assert len(checked_note("x" * 4000)) == 4000
    with pytest.raises(SettingError, match="4001 characters"):
        checked_note("x" * 4001)
    with pytest.raises(SettingError, match="UTF-8"):
        checked_note("\ud83d")


def test_a_run_that_is_not_there_is_told(store):
    with pytest.raises(RunNotFound):
        store.label("zz", tags=["a"])


@pytest.mark.parametrize("damaged", ["no JSON", "{}", "[1]"])
def test_damaged_tags_hide_no_other_run(store, damaged):
    kept, spoilt = (write(store, EVENTS) for _ in range(2))
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("UPDATE runs SET tags = ? WHERE id = ?", (damaged, spoilt))
        connection.commit()
    assert [run.id for run in store.runs()] == [kept]
    assert store.unreadable() == [spoilt]
