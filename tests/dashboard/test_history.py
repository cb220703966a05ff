"""The history page, through Streamlit's AppTest."""

import csv
import io
import json

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.charts import runs_chart
from dashboard.frames import runs_frame
from dashboard.views.exports import run_exports
from engine import RunSpec, RunStore, build
from tests.dashboard.test_pages import SCRIPT


def saved(**settings):
    spec = RunSpec(**{"prompt": "The draft", "max_tokens": 6} | settings)
    with RunStore().begin(spec) as writer:
        for event in build(spec).events():
            writer.add(event)
    return writer.run_id


@pytest.fixture
def page():
    def history_page():
        from dashboard.views import history

        history.page()

    return AppTest.from_function(history_page, default_timeout=30)


def ids(page):
    return list(page.dataframe[0].value["id"])


def test_without_runs_it_says_what_will_be_here(page):
    page.run()
    assert not page.exception
    assert "No runs yet" in page.info[0].value


def test_every_run_is_listed_the_newest_first(page):
    first, second = saved(seed=1), saved(seed=2, drafter="ngram")
    page.run()
    assert not page.exception
    assert ids(page) == [second, first]
    row = page.dataframe[0].value.iloc[0]
    assert (row["drafter"], row["tokens_generated"], row["finish_reason"]) == ("ngram", 6, "length")


def test_filters_narrow_the_list(page):
    plain, other = saved(drafter="none"), saved(prompt="Rejected tokens")
    page.run()
    page.text_input(key="filter_text").set_value("rejected").run()
    assert ids(page) == [other]
    page.text_input(key="filter_text").set_value("")
    page.multiselect(key="filter_drafter").set_value(["none"]).run()
    assert ids(page) == [plain]


def test_a_filter_that_nothing_passes_is_no_error(page):
    saved()
    page.run()
    page.text_input(key="filter_text").set_value("[(no such words").run()
    assert not page.exception
    assert ids(page) == []


def test_the_page_is_reachable_from_the_navigation():
    saved()
    app = AppTest.from_file(SCRIPT, default_timeout=30).run()
    assert not app.exception


def test_a_store_that_cannot_be_read_is_said_in_a_box(page, tmp_path, monkeypatch):
    monkeypatch.setenv("DRAFTSCOPE_HOME", str(tmp_path))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "runs.sqlite").write_text("this is no database, but a text that is long enough to be read")
    page.run()
    assert not page.exception
    assert page.error


def test_a_frame_of_no_runs_has_its_columns_and_a_chart_of_it_is_empty():
    frame = runs_frame([])
    assert "acceptance_rate" in frame.columns
    assert len(runs_chart(frame).data) == 0


def test_the_chart_has_a_trace_for_every_drafter_and_leaves_out_runs_without_the_figure():
    for drafter in ("none", "ngram", "model"):
        saved(drafter=drafter, max_tokens=60)
    figure = runs_chart(runs_frame(RunStore().runs()))
    assert [trace.name for trace in figure.data] == ["model", "ngram"]


def test_the_exports_of_a_run_are_built_when_asked_for(monkeypatch):
    run_id = saved()
    offered = []
    monkeypatch.setattr("streamlit.download_button", lambda label, build, name, *_, **__: offered.append((build, name)))
    run_exports(run_id, key="test")
    html, jsonl, *tables = [build() for build, _ in offered]
    assert html.startswith(b"<!doctype html>")
    assert json.loads(jsonl.splitlines()[0])["id"] == run_id
    [steps, tokens] = [list(csv.DictReader(io.StringIO(table.decode()))) for table in tables]
    record = RunStore().get(run_id).record
    assert len(steps) == record["steps"]
    assert sum(row["outcome"] == "accepted" for row in tokens) == record["accepted"]


def test_a_selection_never_passes_to_other_rows(page):
    """Streamlit keeps a selection as row numbers, so other rows must be another table to it."""
    saved(seed=1)
    page.run()
    before = page.dataframe[0].proto.id
    page.run()
    assert page.dataframe[0].proto.id == before
    saved(seed=2)
    page.run()
    assert page.dataframe[0].proto.id != before
