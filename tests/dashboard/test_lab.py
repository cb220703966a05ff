"""The page Lab through AppTest: what is shown is the engine's, long work goes on beside the page."""

import json
import sqlite3
import time

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.comparisons import comparisons
from dashboard.lab_laws import Laws, laws_behind
from dashboard.lab_work import LabWorks, TooMuchWork, lab_works
from engine import RunSpec, RunStore, build
from engine.lab.cases import CASES, CHAIN_RULES
from engine.lab.lossless import lossless
from engine.lab.small_pair import SmallPair
from engine.policies import POLICIES
from engine.rules import RULE_PARAMETERS

LOSSLESS, TRACE, RACE, CHECK = "Lossless?", "Same trace, every rule", "Policies race", "Statistical check"


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    lab_works.stop_all(30)
    comparisons.stop_all(30)


def page(tab=LOSSLESS, typed=None, **address):
    """The page at a tab; `typed` is a target that nobody offers."""

    def lab_page():
        from dashboard import state
        from dashboard.views import lab

        state.remember()
        lab.page()

    app = AppTest.from_function(lab_page, default_timeout=60)
    app.query_params["lab_tab"] = tab
    for name, value in address.items():
        app.query_params[name] = value
    if typed:
        app.session_state.target = typed
    app.run()
    assert not app.exception
    return app


def opened(app, tab):
    """Go to another tab."""
    app.query_params["lab_tab"] = tab
    app.run()
    assert not app.exception


def finished(app, work):
    """The page when the work has ended."""
    work.join(120)
    app.run()
    assert not app.exception
    return app


def bars(app):
    """What the bars are given."""
    return json.loads(app.get("bidi_component")[0].proto.json)


def words(app):
    return [box.value for boxes in (app.success, app.error, app.info, app.warning) for box in boxes]


# ---- Lossless? ----


def test_the_bars_begin_with_the_first_worked_case():
    shown = bars(page())
    assert shown["target"] == pytest.approx(CASES[0].pair.target)
    assert shown["result"]["same"] is True
    assert [figure["value"] for figure in shown["result"]["figures"]] == ["0.0000", "0.0000", "0.9000", "1.9000"]


@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
def test_a_worked_case_sets_everything(case):
    app = page()
    app.selectbox(key="lossless_case").set_value(case.title).run()
    assert not app.exception
    found = lossless(case.spec, case.pair, draft_length=case.draft_length, proposal=case.proposal)
    shown = bars(app)
    assert shown["trouble"] == ""
    assert [figure["value"] for figure in shown["result"]["figures"]] == [figure.text for figure in found.figures]
    assert shown["result"]["sentence"] == found.sentence
    assert shown["revision"] == (0 if case is CASES[0] else 1)
    assert app.selectbox(key="lossless_rule").value == case.rule


def test_laws_that_were_dragged_are_enumerated():
    app = page()
    kept = app.session_state.laws
    kept.target, kept.draft, kept.sent = [0.9, 0.1, 0.0], [0.2, 0.2, 0.6], 3
    app.run()
    shown = bars(app)
    found = lossless(RunSpec(), SmallPair((0.9, 0.1, 0.0), (0.2, 0.2, 0.6)))
    assert shown["result"]["first_output"] == pytest.approx(found.step.beginning(1)[0].tolist())
    assert (shown["revision"], shown["sent"]) == (0, 3)  # the bars stay under the hand


def test_a_move_counts_once_and_not_if_it_is_of_laws_that_were_replaced():
    laws = Laws([0.5, 0.5], [0.5, 0.5])
    laws.take({})
    laws.take({"revision": 0, "sent": 2, "target": [0.9, 0.1], "draft": [0.2, 0.8]})
    laws.take({"revision": 0, "sent": 1, "target": [0.7, 0.3], "draft": [0.2, 0.8]})
    assert (laws.target, laws.draft, laws.sent) == ([0.9, 0.1], [0.2, 0.8], 2)
    replaced = laws_behind(laws, [0.6, 0.4], [0.4, 0.6])
    replaced.take({"revision": 0, "sent": 3, "target": [1.0, 0.0], "draft": [1.0, 0.0]})
    assert (replaced.target, replaced.revision, replaced.sent) == ([0.6, 0.4], 1, 0)


def test_every_rule_and_its_parameters_can_be_chosen():
    app = page()
    for rule in CHAIN_RULES:
        app.selectbox(key="lossless_rule").set_value(rule).run()
        assert not app.exception
        assert bars(app)["trouble"] == ""
        assert all(app.slider(key=f"lossless_{name}") for name in RULE_PARAMETERS.get(rule, ()))


def test_tokens_and_draft_length_can_be_chosen():
    app = page()
    app.segmented_control(key="lossless_n_tokens").set_value(5).run()
    app.segmented_control(key="lossless_draft_length").set_value(3).run()
    shown = bars(app)
    assert shown["names"] == ["a", "b", "c", "d", "e"]
    assert len(shown["target"]) == len(shown["result"]["first_output"]) == 5
    assert [len(table["rows"]) for table in shown["result"]["tables"]] == [3, 4]


# ---- Same trace, every rule ----


def test_the_sidebars_settings_are_judged_by_every_rule():
    app = page(TRACE, max_tokens="6", draft_length="2")
    app.button(key="trace_go").click().run()
    app = finished(app, lab_works.get(app.session_state.owner, "trace").work)
    (table,) = [frame.value for frame in app.dataframe if "mean bias" in frame.value]
    assert list(table["rule"]) == ["exact (the run's)", *[rule for rule in CHAIN_RULES if rule != "exact"]]
    assert table["largest bias"].iloc[0] < 1e-12
    assert any("most probable tokens" in text.value for text in app.caption)
    assert len(app.get("plotly_chart")) == 2
    assert len(app.get("download_button")) == 1


def saved(spec):
    with RunStore().begin(spec) as writer:
        for event in build(spec).events():
            writer.add(event)
    return writer.run_id


def test_a_saved_run_is_judged_and_one_that_differs_is_refused():
    run_id = saved(RunSpec(prompt="The draft model", max_tokens=6, draft_length=2))
    app = page(TRACE)
    label = next(option for option in app.selectbox(key="trace_run").options if run_id in option)
    app.selectbox(key="trace_run").set_value(label).run()
    app.button(key="trace_go").click().run()
    app = finished(app, lab_works.get(app.session_state.owner, "trace").work)
    assert any("mean bias" in frame.value for frame in app.dataframe)
    with sqlite3.connect(RunStore().path) as connection:
        connection.execute("UPDATE runs SET spec = json_set(spec, '$.seed', 77)")
    app.button(key="trace_go").click().run()
    app = finished(app, lab_works.get(app.session_state.owner, "trace").work)
    assert any("gives another text now" in text for text in words(app))


def test_a_saved_run_whose_model_is_gone_is_refused():
    run_id = saved(RunSpec(prompt="The draft model", max_tokens=6, draft_length=2))
    with sqlite3.connect(RunStore().path) as connection:
        connection.execute("UPDATE runs SET spec = json_set(spec, '$.target', 'gone-7b')")
    app = page(TRACE)
    label = next(option for option in app.selectbox(key="trace_run").options if run_id in option)
    app.selectbox(key="trace_run").set_value(label).run()
    app.button(key="trace_go").click().run()
    app = finished(app, lab_works.get(app.session_state.owner, "trace").work)
    assert any("gone-7b" in text.replace("\\", "") for text in words(app))


# ---- Policies race ----


def test_every_policy_races_on_given_prices():
    app = page(RACE, max_tokens="16", temperature="0.0")
    assert any("Give its calls a price" in text for text in words(app))
    app.button(key="race_prices").click().run()
    app.number_input(key="race_repeats").set_value(1).run()
    app.button(key="race_go").click().run()
    race = comparisons.race(app.session_state.owner)
    app = finished(app, race.work)
    assert [row["policy"] for row in race.work.result["policies"]] == list(POLICIES)
    (table,) = [frame.value for frame in app.dataframe]
    assert list(table["policy"]) == list(POLICIES)
    assert len(app.get("plotly_chart")) == 2
    assert "SIMULATED" in "".join(badge.value for badge in app.markdown)


def test_a_race_needs_a_drafter():
    app = page(RACE, drafter_embedded="none")
    app.button(key="race_go").click().run()
    assert any("nothing is drafted" in text for text in words(app))


# ---- Statistical check ----


def test_the_check_tells_that_nothing_differs_and_that_something_does():
    app = page(CHECK, temperature="1.0")
    app.number_input(key="check_runs").set_value(200).run()
    app.button(key="check_go").click().run()
    app = finished(app, lab_works.get(app.session_state.owner, "check").work)
    assert any(text.startswith("No sign of a difference") for text in words(app))
    app.selectbox(key="rule").set_value("naive").run()
    app.button(key="check_go").click().run()
    app = finished(app, lab_works.get(app.session_state.owner, "check").work)
    assert any(text.startswith("Differs") for text in words(app))
    assert len(app.get("plotly_chart")) == 1


def test_a_check_of_too_few_runs_is_no_success():
    app = page(CHECK, temperature="1.0")
    app.number_input(key="check_runs").set_value(4).run()
    app.button(key="check_go").click().run()
    app = finished(app, lab_works.get(app.session_state.owner, "check").work)
    assert not app.success
    assert any(text.value.startswith("Too few runs") for text in app.warning)


def test_a_check_that_goes_on_can_be_stopped_and_keeps_what_it_has():
    app = page(CHECK)
    app.number_input(key="check_runs").set_value(100_000).run()
    app.button(key="check_go").click().run()
    work = lab_works.get(app.session_state.owner, "check").work
    while work.done < 5:
        time.sleep(0.02)
    app.run()
    assert app.button(key="check_go").disabled
    app.button(key="check_stop").click().run()
    app = finished(app, work)
    assert any("PARTIAL" in badge.value for badge in app.markdown)
    assert work.result.runs < 100_000


def test_a_target_without_an_exact_law_is_told():
    app = page(CHECK, typed="own.gguf")
    assert any("followed to the end" in text for text in words(app))
    assert app.button(key="check_go").disabled
    assert app.button(key="check_embedded").label == "Use the embedded pair"


# ---- from tab to tab ----


def test_what_was_typed_is_still_there_when_another_tab_was_opened():
    run_id = saved(RunSpec(prompt="The draft model", max_tokens=6, draft_length=2))
    app = page(CHECK)
    app.number_input(key="check_runs").set_value(300).run()
    app.number_input(key="check_tokens").set_value(3).run()
    opened(app, RACE)
    app.number_input(key="race_repeats").set_value(7).run()
    opened(app, TRACE)
    label = next(option for option in app.selectbox(key="trace_run").options if run_id in option)
    app.selectbox(key="trace_run").set_value(label).run()
    opened(app, CHECK)
    assert (app.number_input(key="check_runs").value, app.number_input(key="check_tokens").value) == (300, 3)
    opened(app, RACE)
    assert app.number_input(key="race_repeats").value == 7
    opened(app, TRACE)
    assert app.selectbox(key="trace_run").value == label


# ---- the work beside the page ----


def test_work_is_limited_and_one_of_a_kind_for_each_tab():
    works = LabWorks()

    def wait(work):
        while not work.cancelled():
            time.sleep(0.01)

    try:
        works.start("one", "check", RunSpec(), wait)
        with pytest.raises(TooMuchWork, match="under way already"):
            works.start("one", "check", RunSpec(), wait)
        works.start("one", "trace", RunSpec(), wait)
        works.start("two", "check", RunSpec(), wait)
        with pytest.raises(TooMuchWork, match="3 pieces of work"):
            works.start("three", "check", RunSpec(), wait)
        assert works.working
    finally:
        works.stop_all(10)
    assert not works.working
    assert works.get("one", "check") is None
