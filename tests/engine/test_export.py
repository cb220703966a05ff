"""CSV exports, read back by the csv module and by pandas."""

import csv
import io
import json
import re
from dataclasses import fields
from pathlib import Path

import pandas as pd
import pytest

from engine.csv_text import safe_text
from engine.export import RUN_COLUMNS, STEP_COLUMNS, TOKEN_COLUMNS, runs_csv, steps_csv, to_bytes, tokens_csv
from engine.metrics import Figures, measure
from engine.spec import RunSpec
from engine.values import Decision, Step
from tests.engine.kept_runs import write
from tests.engine.sample_events import TEXTS, sample_events

EVENTS = list(sample_events(12, simulated=True))
STEPS = [event for event in EVENTS if isinstance(event, Step)]
DECISIONS = [(step.index, decision) for step in STEPS for decision in step.decisions]
SPEC = RunSpec(prompt='=evil()\n"quoted", \U0001f600 汉字\0', stop=("\n", "=x"), seed=3)


@pytest.fixture
def runs(store):
    for events in (EVENTS, EVENTS[:5], EVENTS[:1]):
        write(store, events, SPEC)
    return store.runs()


def read(lines, *, bom=False):
    """Rows as dicts, as the csv module reads the bytes."""
    text = to_bytes(lines, bom=bom).decode("utf-8-sig" if bom else "utf-8")
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def read_pandas(lines, *, bom=False):
    """As `docs/csv.md` advises, in the very words of it."""
    page = (Path(__file__).parents[2] / "docs" / "csv.md").read_text(encoding="utf-8")
    advice = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1].replace('"tokens.csv"', "file")
    found = {"pandas": pd, "file": io.BytesIO(to_bytes(lines, bom=bom))}
    exec(advice.replace("pandas.read_csv", "frame = pandas.read_csv"), found)
    return found["frame"]


def cell(value):
    return {None: "", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else str(value)


@pytest.mark.parametrize("bom", [False, True])
def test_every_decision_is_a_row_with_ids_and_texts_apart(bom):
    rows = read(tokens_csv("a1", EVENTS), bom=bom)
    assert len(rows) == len(DECISIONS)
    for row, (index, decision) in zip(rows, DECISIONS, strict=True):
        assert (row["run_id"], row["step"]) == ("a1", str(index))
        for field in fields(Decision):
            value = getattr(decision, field.name)
            expected = safe_text(value) if field.name in ("draft_text", "target_text") else cell(value)
            assert row[field.name] == expected, field.name


@pytest.mark.parametrize("bom", [False, True])
def test_pandas_reads_the_same_decisions(bom):
    frame = read_pandas(tokens_csv("a1", EVENTS), bom=bom)
    assert list(frame.columns) == list(TOKEN_COLUMNS)
    assert frame["target_text"].fillna("").tolist() == [safe_text(decision.target_text) for _, decision in DECISIONS]
    assert frame["accepted"].tolist() == [decision.accepted for _, decision in DECISIONS]
    assert frame["draft_token"].dropna().tolist() == [d.draft_token for _, d in DECISIONS if d.draft_token is not None]
    assert frame["draft_prob"].dropna().tolist() == pytest.approx(
        [d.draft_prob for _, d in DECISIONS if d.draft_prob is not None], rel=1e-15
    )


def test_the_sample_holds_every_awkward_text():
    assert {decision.target_text or decision.draft_text for _, decision in DECISIONS} >= set(TEXTS)


def test_every_step_is_a_row_whose_counts_add_up():
    rows = read(steps_csv("a1", EVENTS))
    assert len(rows) == len(STEPS)
    for row, step in zip(rows, STEPS, strict=True):
        count = {name: int(row[name]) for name in STEP_COLUMNS[3:13]}
        assert (
            count["drafted"]
            == count["accepted"] + count["rejected"] + count["declined"] + count["unreached"]
            == step.n_drafted
        )
        kept = count["accepted"] + count["recovered"] + count["bonus"] + count["plain"]
        assert count["emitted"] + count["discarded"] == kept
        assert float(row["at_seconds"]) == step.at_seconds
        assert float(row["overhead_seconds"]) == step.overhead_seconds
        assert (row["simulated"], row["lossless"], row["note"]) == ("true", "true", step.note)
    figures = measure(EVENTS)
    for name in ("drafted", "accepted", "unreached", "bonus", "plain"):
        assert sum(int(row[name]) for row in rows) == getattr(figures, name)


@pytest.mark.parametrize("lines", [steps_csv, tokens_csv])
def test_the_seed_of_the_run_is_in_every_row(lines):
    assert {row["seed"] for row in read(lines("a1", EVENTS))} == {"7"}
    assert {row["seed"] for row in read(lines("a1", STEPS))} == {""}


def test_discarded_tokens_are_counted_beside_their_outcome():
    decisions = (Decision(0, "accepted", 1, 1, True), Decision(1, "bonus", target_token=2, discarded=True))
    [row] = read(steps_csv("", [Step(0, 1, decisions, (1,), 0.0, 0.0, 0.0, 0.0)]))
    assert [row[name] for name in ("accepted", "bonus", "discarded", "emitted")] == ["1", "1", "1", "1"]
    assert (row["run_id"], row["simulated"], row["lossless"]) == ("", "", "")


def test_rows_of_more_runs_follow_without_a_second_header():
    lines = [*steps_csv("a1", EVENTS), *steps_csv("b2", EVENTS, header=False)]
    assert [row["run_id"] for row in read(lines)] == ["a1"] * len(STEPS) + ["b2"] * len(STEPS)


def test_every_run_is_a_row_with_settings_and_figures(runs):
    rows = read(runs_csv(runs))
    assert [row["run_id"] for row in rows] == [run.id for run in runs]
    assert [row["state"] for row in rows] == ["interrupted", "interrupted", "finished"]
    finished = rows[-1]
    record = runs[-1].record
    assert finished["prompt"] == safe_text(SPEC.prompt)
    assert json.loads(finished["stop"]) == list(SPEC.stop)
    assert json.loads(finished["accepted_length_histogram"]) == record["accepted_length_histogram"]
    assert json.loads(finished["per_position"]) == record["per_position"]
    assert json.loads(finished["versions"]) == runs[-1].versions
    assert float(finished["total_time"]) == record["total_time"]
    assert float(finished["acceptance_rate"]) == record["acceptance_rate"]
    assert (finished["simulated"], finished["finish_reason"]) == ("true", "length")
    assert finished["target_name"] == "target"
    assert finished["text"] == safe_text(record["text"])


def test_tags_and_notes_are_cells_that_no_spreadsheet_runs(store):
    run_id = write(store, EVENTS, SPEC)
    store.label(run_id, tags=["=a", "b"], note="=1+1")
    [row] = read(runs_csv(store.runs()))
    assert json.loads(row["tags"]) == ["=a", "b"]
    assert row["note"] == "'=1+1"


def test_what_a_run_has_not_got_is_empty(runs):
    empty = read(runs_csv(runs))[0]
    assert empty["steps"] == "0"
    assert empty["acceptance_rate"] == empty["tokens_per_second"] == empty["finish_reason"] == empty["text"] == ""


def test_pandas_reads_the_same_runs(runs):
    frame = read_pandas(runs_csv(runs), bom=True)
    assert list(frame.columns) == list(RUN_COLUMNS)
    assert frame["prompt"].tolist() == [safe_text(SPEC.prompt)] * 3
    assert frame["tokens_generated"].tolist() == [run.record["tokens_generated"] for run in runs]


def test_every_setting_and_figure_has_its_column_once():
    assert len(set(RUN_COLUMNS)) == len(RUN_COLUMNS)
    assert {field.name for field in fields(RunSpec)} <= set(RUN_COLUMNS)
    assert {field.name for field in fields(Figures)} <= set(RUN_COLUMNS)


@pytest.mark.parametrize("columns", [RUN_COLUMNS, STEP_COLUMNS])
def test_a_time_has_its_unit_in_its_name_and_says_whether_it_is_simulated(columns):
    assert "simulated" in columns
    assert {name for name in columns if re.search("time", name)} <= {"total_time"}  # the one established name


def test_nothing_is_built_before_it_is_asked_for():
    def events():
        yield EVENTS[0]
        yield EVENTS[2]
        raise AssertionError("read too far")

    lines = steps_csv("a1", events())
    assert next(lines).startswith("run_id,")
    assert next(lines).startswith("a1,0,")


def test_exports_of_nothing_have_a_header():
    for lines in (runs_csv([]), steps_csv("", []), tokens_csv("", [])):
        assert len(list(lines)) == 1


def test_every_column_is_explained_in_the_documentation():
    page = (Path(__file__).parents[2] / "docs" / "csv.md").read_text(encoding="utf-8")
    metrics = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)`", page + metrics)) | {field.name for field in fields(RunSpec)}
    assert {*RUN_COLUMNS, *STEP_COLUMNS, *TOKEN_COLUMNS} - named == set()
