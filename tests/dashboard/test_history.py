"""The history page, through Streamlit's AppTest."""

import csv
import io
import json
from datetime import date
from types import SimpleNamespace

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dashboard.charts import kinds_chart, positions_chart, runs_chart
from dashboard.frames import kinds_frame, pairs_frame, positions_frame, proposals_frame, runs_frame
from dashboard.views.exports import export_menu, run_exports
from engine import RunSpec, RunStore, build, measure
from engine.failures import failures
from engine.figure_text import size
from engine.run_labels import MOST_TAGS
from engine.side_by_side import setting_pairs
from tests.dashboard.test_pages import SCRIPT
from tests.engine.kept_runs import EVENTS, write


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


def test_the_table_begins_with_when_the_id_and_the_prompt_on_one_line():
    run_id = saved(prompt="The draft\n\nmodel " + 200 * "x")
    frame = runs_frame(RunStore().runs())
    assert list(frame.columns)[:3] == ["created_at", "id", "prompt"]
    assert frame["id"][0] == run_id
    assert frame["prompt"][0] == f"The draft model {103 * 'x'}…"


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


def select(monkeypatch, *rows):
    """AppTest cannot click a row; the table says that these are selected."""
    real = st.dataframe

    def selected(*arguments, key, **options):
        table = real(*arguments, key=key, **options)
        if key.startswith("runs "):
            table = SimpleNamespace(selection=SimpleNamespace(rows=[row for row in rows if row < len(arguments[0])]))
        return table

    monkeypatch.setattr(st, "dataframe", selected)


def test_tags_dates_and_order_choose_what_is_listed(page):
    first, second, third = (saved(seed=seed, max_tokens=tokens) for seed, tokens in ((1, 5), (2, 9), (3, 7)))
    RunStore().label(first, tags=["fast", "old"])
    RunStore().label(second, tags=["fast"], note="after the update")
    page.run()
    page.multiselect(key="filter_tags").set_value(["fast"]).run()
    assert ids(page) == [second, first]
    page.multiselect(key="filter_tags").set_value([])
    page.text_input(key="filter_text").set_value("update").run()
    assert ids(page) == [second]
    page.text_input(key="filter_text").set_value("")
    page.selectbox(key="sort_by").set_value("tokens").run()
    assert ids(page) == [second, third, first]
    page.date_input(key="filter_date").set_value([date(2020, 1, 1), date(2020, 1, 2)]).run()
    assert ids(page) == []
    assert not page.exception


def test_deleted_runs_can_be_taken_back(page, monkeypatch):
    kept, gone = saved(seed=1), saved(seed=2)
    with monkeypatch.context() as patch:
        select(patch, 0)
        page.run()
        page.button(key="delete").click().run()
    page.run()
    assert not page.exception
    assert ids(page) == [kept]
    assert [run.id for run in RunStore().deleted()] == [gone]
    page.button(key="undo").click().run()
    assert ids(page) == [gone, kept]
    assert not [button for button in page.button if button.key in ("undo", "restore", "purge")]


def test_the_last_run_deleted_leaves_a_way_back(page):
    run_id = saved()
    RunStore().delete([run_id])
    page.run()
    assert "No runs yet" in page.info[0].value
    page.multiselect(key="restore_ids").set_value([run_id]).run()
    page.button(key="restore").click().run()
    assert ids(page) == [run_id]


def test_deleted_runs_can_be_purged(page):
    RunStore().delete([saved()])
    page.run()
    page.button(key="purge").click().run()
    assert not page.exception
    assert RunStore().deleted() == []


def test_what_the_history_takes_is_said(page):
    saved()
    page.run()
    told = [caption.value for caption in page.caption if "The history has" in caption.value]
    assert told == [f"The history has 1 run and takes {size(RunStore().storage().n_bytes)} on disk."]


def test_tags_and_a_note_are_written_on_what_is_selected(page, monkeypatch):
    run_id, other = saved(seed=1), saved(seed=2)
    RunStore().label(run_id, tags=["own"])
    select(monkeypatch, 1)
    page.run()
    page.multiselect(key=f"tags {run_id}").set_value(["own", "new"])
    page.text_area(key=f"note {run_id}").set_value("=1+1")
    [save] = [button for button in page.button if button.label == "Save"]
    save.click().run()
    assert not page.exception
    assert (RunStore().get(run_id).tags, RunStore().get(run_id).note) == (("own", "new"), "=1+1")
    assert RunStore().get(other).tags == ()


def test_tags_of_several_runs_are_added_and_taken_off_each(page, monkeypatch):
    first, second = saved(seed=1), saved(seed=2)
    RunStore().label(first, tags=["shared", "own"])
    RunStore().label(second, tags=["shared"])
    select(monkeypatch, 0, 1)
    page.run()
    page.multiselect(key=f"tags {second} {first}").set_value(["new"])
    [save] = [button for button in page.button if button.label == "Save"]
    save.click().run()
    assert not page.exception
    assert RunStore().get(first).tags == ("own", "new")
    assert RunStore().get(second).tags == ("new",)


def test_tags_that_one_of_several_runs_cannot_take_are_written_on_none(page, monkeypatch):
    full, empty = saved(seed=1), saved(seed=2)
    RunStore().label(full, tags=map(str, range(MOST_TAGS)))
    select(monkeypatch, 0, 1)
    page.run()
    page.multiselect(key=f"tags {empty} {full}").set_value(["new"])
    [save] = [button for button in page.button if button.label == "Save"]
    save.click().run()
    assert f"a run can have {MOST_TAGS}" in page.error[0].value
    assert RunStore().get(empty).tags == ()


def test_two_selected_runs_stand_side_by_side_with_what_differs_marked(page, monkeypatch):
    saved(seed=1, draft_length=2)
    saved(seed=1, draft_length=6)
    select(monkeypatch, 0, 1)
    page.run()
    assert not page.exception
    [head] = [text.value for text in page.markdown if "Settings that differ" in text.value]
    assert head.startswith("**Settings that differ:** draft length.")
    views = [json.loads(view.proto.json) for view in page.get("bidi_component")]
    assert [view["run"] for view in views] == [run.id for run in RunStore().runs()]


def test_runs_of_which_one_has_gone_are_told():
    def script(run_id):
        from dashboard.views.side_by_side import side_by_side

        side_by_side(run_id, "gone")

    page = AppTest.from_function(script, args=(saved(),), default_timeout=30).run()
    assert "there is no run 'gone'" in page.error[0].value


def test_a_frame_of_pairs_marks_what_differs():
    frame = pairs_frame(setting_pairs(RunSpec(seed=1, chat=True), RunSpec(seed=2, chat=True)), "left", "right")
    assert frame.loc[frame["differs"] == "≠", ["name", "left", "right"]].to_numpy().tolist() == [["seed", "1", "2"]]
    assert frame.loc[frame["name"] == "chat", "left"].item() == "yes"


def test_every_export_is_in_one_place(monkeypatch):
    run_ids = [saved(seed=seed, max_tokens=20) for seed in (1, 2)]
    offered = {}
    monkeypatch.setattr(
        "streamlit.download_button", lambda label, contents, name, *_, **__: offered.__setitem__(name, contents)
    )
    export_menu(run_ids, chosen=True)
    assert set(offered) == {"runs.csv", "steps.csv", "tokens.csv"}
    for name, contents in offered.items():
        rows = list(csv.DictReader(io.StringIO(contents().decode(), newline="")))
        assert list(dict.fromkeys(row["run_id"] for row in rows)) == run_ids, name
    figures = [measure(RunStore().events(run_id)) for run_id in run_ids]
    assert offered["steps.csv"]().decode().count("\r\n") == 1 + sum(figure.steps for figure in figures)
    offered.clear()
    export_menu(run_ids[:1], chosen=True)
    assert set(offered) >= {"runs.csv", f"steps-{run_ids[0][:8]}.csv", f"tokens-{run_ids[0][:8]}.csv"}


def failures_page(run_id):
    def script(run_id):
        from dashboard.views.failures import where_drafts_fail

        where_drafts_fail(run_id, key="saved")

    return AppTest.from_function(script, args=(run_id,), default_timeout=30)


def opened(monkeypatch):
    """The expander as if it had been clicked."""
    real = st.expander

    class Open:
        def __init__(self, container):
            self.container, self.open = container, True

        def __enter__(self):
            return self.container.__enter__()

        def __exit__(self, *failure):
            return self.container.__exit__(*failure)

    monkeypatch.setattr(st, "expander", lambda *arguments, **options: Open(real(*arguments, **options)))


def test_where_drafts_fail_is_looked_at_only_when_it_is_opened(monkeypatch):
    run_id = saved(max_tokens=60)
    page = failures_page(run_id).run()
    assert not page.exception
    assert len(page.dataframe) == 0
    opened(monkeypatch)
    page.run()
    assert not page.exception
    found = failures(RunStore().events(run_id))
    assert len(page.dataframe[0].value) == len(found.proposals)
    [shaded] = [json.loads(view.proto.json) for view in page.get("bidi_component")]
    assert [token[0] for token in shaded["tokens"]] == [token.text for token in found.text]
    assert [token[2] for token in shaded["tokens"]] == [token.accept_prob for token in found.text]


def test_of_a_run_without_drafts_that_is_said(monkeypatch):
    opened(monkeypatch)
    page = failures_page(saved(drafter="none")).run()
    assert "drafted nothing" in page.info[0].value


def test_the_charts_of_failures_show_the_engines_rates():
    found = failures(build(RunSpec(prompt="The draft", max_tokens=120, draft_length=6)).events())
    [bars] = kinds_chart(kinds_frame(found.kinds)).data
    shown = [row.acceptance for row in found.kinds if row.acceptance.value is not None]
    assert list(bars.x) == [rate.value for rate in shown]
    assert list(bars.error_x.array) == pytest.approx([rate.high - rate.value for rate in shown])
    assert list(bars.error_x.arrayminus) == pytest.approx([rate.value - rate.low for rate in shown])
    conditional, survival = positions_chart(positions_frame(found.positions)).data
    reached = [row for row in found.positions if row.conditional.trials]
    assert list(conditional.y) == [row.conditional.value for row in reached]
    assert list(survival.y) == [row.survival.value for row in found.positions]
    assert (conditional.name, survival.name) == ("accepted / tested", "accepted / drafted")
    assert "%{customdata[1]} of %{customdata[2]} drafted" in survival.hovertemplate
    frame = proposals_frame(found.proposals)
    assert frame["rejected"].tolist() == [row.rejected for row in found.proposals]


def test_frames_of_no_failures_have_their_columns_and_charts_of_them_are_empty():
    found = failures([])
    assert len(kinds_chart(kinds_frame(found.kinds)).data[0].x) == 0
    assert all(len(trace.x) == 0 for trace in positions_chart(positions_frame(found.positions)).data)
    assert "instead" in proposals_frame(found.proposals).columns


def test_runs_with_odd_prompts_can_be_shown_compared_deleted_and_restored(page, monkeypatch):
    for _ in range(2):
        write(RunStore(), EVENTS)
    with monkeypatch.context() as patch:
        select(patch, 0, 1)
        page.run()
        assert not page.exception
        page.button(key="delete").click().run()
    page.run()
    assert not page.exception
    assert len(page.multiselect(key="restore_ids").options) == 2
