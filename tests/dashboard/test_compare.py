"""The page Compare through AppTest, its runs beside the page, and what the lanes are told."""

import json
import time
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.comparisons import Busy, comparisons
from dashboard.plain_text import plain
from dashboard.runner import registry
from dashboard.views import what_if
from engine import RunSpec, RunStore, build
from engine.bench.prompts import Prompt
from engine.compare.run import CompareSettings
from engine.errors import SettingError
from tests.dashboard.test_pages import SCRIPT

PAIR = {"temperature": "0.0", "max_tokens": "24", "target_ms": "20", "draft_ms": "2"}
BASE = RunSpec(temperature=0.0, max_tokens=24, target_call_seconds=0.02, draft_call_seconds=0.002, agreement=1.0)
PROMPTS = (Prompt("1", "The draft model"), Prompt("2", "The target model reads"))
LONG = RunSpec(temperature=0.0, max_tokens=20_000)


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    comparisons.stop_all(20)


def page(**address):
    def compare_page():
        from dashboard import state
        from dashboard.views import compare

        state.remember()
        compare.page()

    app = AppTest.from_function(compare_page, default_timeout=60)
    for name, value in (PAIR | address).items():
        app.query_params[name] = value
    return app.run()


def compared(app):
    app.button(key="compare_go").click().run()
    assert not app.exception
    comparison = comparisons.get(app.session_state.comparison)
    comparison.work.join(60)
    return comparison, app.run()


def until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def words(app):
    return [box.value for boxes in (app.success, app.error, app.info, app.warning) for box in boxes]


def test_the_page_compares_the_sidebars_settings_and_another_drafter_with_plain_decoding():
    app = page(agreement="1.0")
    assert not app.exception
    comparison, app = compared(app)
    assert [lane.name for lane in comparison.lanes] == ["plain", "model 4", "ngram 4"]
    assert comparison.result["runs_done"] == 9
    assert any("helps" in text and "model 4" in text for text in words(app))
    assert any("the same text" in text.value for text in app.markdown)
    assert "SIMULATED" in "".join(badge.value for badge in app.markdown)
    assert any("ONE PROMPT" in caption.value for caption in app.caption) == (comparison.result["prompts"] == 1)
    assert len(app.get("plotly_chart")) == 2
    assert len(app.get("download_button")) == 3


def test_a_draft_that_is_wrong_and_dear_hurts():
    _, app = compared(page(agreement="-1.0", draft_ms="10"))
    assert any("hurts" in text and "model 4" in text for text in words(app))


def test_up_to_three_more_configurations_differ_in_drafter_length_rule_and_temperature():
    app = page(agreement="0.5")
    app.segmented_control(key="compare_more").set_value(3).run()
    for place in (2, 3):
        app.selectbox(key=f"compare_{place}_markov_model_drafter").set_value("model")
        app.number_input(key=f"compare_{place}_markov_model_length").set_value(9)
    app.selectbox(key="compare_3_markov_model_rule").set_value("naive")
    app.number_input(key="compare_3_markov_model_0.0_temperature").set_value(1.0).run()
    comparison, app = compared(app)
    assert [lane.name for lane in comparison.lanes] == [
        "plain", "model 4", "ngram 4", "model 9", "model 9, rule naive, temperature 1.0",
    ]  # fmt: skip
    assert any("lossy" in text.value for text in app.markdown)


def test_configurations_may_differ_in_their_length_policy():
    app = page(target_ms="20", draft_ms="2")
    app.selectbox(key="compare_1_markov_model_drafter").set_value("model")
    app.selectbox(key="compare_1_markov_model_policy").set_value("cost-aware").run()
    comparison, app = compared(app)
    assert [lane.name for lane in comparison.lanes] == [
        "plain", "model 4, length policy confident", "model 4, length policy cost-aware",
    ]  # fmt: skip


def test_two_equal_configurations_are_told_before_anything_runs():
    app = page()
    app.selectbox(key="compare_1_markov_model_drafter").set_value("model").run()
    assert "there twice" in app.error[0].value
    assert app.button(key="compare_go").disabled


def test_built_in_prompts_have_categories():
    app = page()
    app.segmented_control(key="compare_prompts").set_value("The built-in prompts").run()
    app.number_input(key="compare_n_42").set_value(2)
    app.number_input(key="compare_repeats").set_value(1).run()
    comparison, app = compared(app)
    assert comparison.result["runs_done"] == 6
    assert len(app.get("plotly_chart")) == 3


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"\xff\xfe\x00broken", "no UTF-8 text"),
        (b"\n \n", "has no prompt"),
        (b'{"prompt": "one"}\nnot json\n', "line 2"),
        (b'{"question_id": 1, "category": "x", "turns": []}\n', "has no prompt"),
    ],
)
def test_a_broken_prompt_set_is_told_in_a_sentence(content, told):
    app = page()
    app.segmented_control(key="compare_prompts").set_value("A prompt set").run()
    assert "choose a file" in app.error[0].value
    app.file_uploader(key="compare_file").upload("prompts.jsonl", content, "text/plain").run()
    assert told in app.error[0].value.replace("\\", "")
    assert app.button(key="compare_go").disabled
    assert not app.exception


def test_a_spec_bench_file_is_a_prompt_set():
    app = page(agreement="1.0")
    app.segmented_control(key="compare_prompts").set_value("A prompt set").run()
    lines = [
        {"question_id": 81, "category": "writing", "turns": ["The draft model", "Again"]},
        {"question_id": 82, "category": "math", "turns": ["The target model"]},
    ]
    content = "\n".join(map(json.dumps, lines)).encode()
    app.file_uploader(key="compare_file").upload("question.jsonl", content, "text/plain").run()
    comparison, _ = compared(app)
    assert comparison.result["categories"] == ["writing", "math"]
    assert {run["prompt"] for run in comparison.result["runs"]} == {"81", "82"}


def test_stop_keeps_what_was_measured():
    app = page(max_tokens="300", agreement="0.0")
    app.number_input(key="compare_repeats").set_value(50).run()
    app.button(key="compare_go").click().run()
    comparison = comparisons.get(app.session_state.comparison)
    until(lambda: comparison.work.done >= 3)
    app.button(key="compare_stop").click().run()
    comparison.work.join(30)
    app.run()
    assert comparison.result["partial"]
    assert 3 <= comparison.result["runs_done"] < comparison.result["runs_planned"]
    assert "PARTIAL" in "".join(badge.value for badge in app.markdown)
    assert not app.exception


def test_a_comparison_survives_a_refresh_and_another_tab_does_not_see_it():
    app = page(agreement="1.0")
    comparison, app = compared(app)
    address = {name: value[0] if isinstance(value, list) else value for name, value in dict(app.query_params).items()}
    assert address["comparison"] == comparison.id
    again = page(**address)
    assert again.session_state.comparison == comparison.id
    stranger = page(comparison=comparison.id)
    assert stranger.session_state.comparison is None


def test_only_one_measurement_goes_on_at_a_time():
    comparisons.start(CompareSettings((LONG,), PROMPTS), "tab")
    with pytest.raises(Busy, match="another measurement"):
        comparisons.start(CompareSettings((BASE,), PROMPTS), "another tab")
    app = page()
    app.button(key="compare_go").click().run()
    assert "another measurement" in app.error[0].value


def test_a_run_that_goes_on_beside_the_measurement_is_warned_of():
    run = registry.start(RunSpec(prompt="The draft", max_tokens=20_000), "tab", steps_per_second=5)
    assert any("A run is under way" in text for text in words(page()))
    run.stop()
    run.join(10)
    assert not any("A run is under way" in text for text in words(page()))


def test_a_measurement_that_goes_on_beside_a_run_is_warned_of():
    def warnings():
        return [box.value for box in AppTest.from_file(SCRIPT, default_timeout=60).run().warning]

    assert warnings() == []
    comparisons.start(CompareSettings((LONG,), PROMPTS), "tab")
    assert any("A measurement is under way" in text for text in warnings())
    comparisons.stop_all(20)
    assert warnings() == []


@pytest.mark.parametrize("note", [None, "numpy runs tiny: the graph cannot be kept"])
def test_a_note_of_the_backend_stands_with_the_circumstances(note):
    def script(note):
        from dashboard.views.circumstances import circumstances

        circumstances({"partial": False, "busy": False, "simulated": False, "backend_note": note}, "badges")

    app = AppTest.from_function(script, args=(note,), default_timeout=30).run()
    assert not app.exception
    assert [box.value for box in app.warning] == ([plain(f"{note}.")] if note else [])


def test_a_measured_run_is_not_called_a_warm_up():
    comparison = comparisons.start(CompareSettings((LONG,), PROMPTS), "tab")
    told = []
    until(lambda: told.append(json.loads(comparison.since([]))) or any(lane["run"] for lane in told[-1]["lanes"]))
    begun = json.loads(comparison.since([]))
    assert (begun["done"], begun["doing"]) == (0, "measuring")
    assert all(answer["doing"] != "measuring" for answer in told[:-1])


def test_lanes_keep_nothing_for_a_replay():
    comparison = comparisons.start(CompareSettings((BASE,), PROMPTS, repeats=1), "tab")
    comparison.work.join(30)
    for lane in comparison.lanes:
        assert len(lane.shown.log) > 0
        assert json.loads(lane.shown.log.figures_since(0))["rows"] == []
        assert lane.shown.log.step(0) is None


def test_settings_that_cannot_be_used_start_nothing():
    with pytest.raises(SettingError, match="at least 1"):
        comparisons.start(CompareSettings((BASE,), PROMPTS, repeats=0), "tab")


def test_a_comparison_that_fails_says_so():
    broken = RunSpec(target="missing.gguf", drafter="ngram")
    comparison = comparisons.start(CompareSettings((broken,), PROMPTS), "tab")
    comparison.work.join(20)
    answer = json.loads(comparison.since([]))
    assert answer["state"] == "finished"
    assert "missing.gguf" in answer["error"]
    assert comparison.result is None


def test_lanes_tell_what_is_new_and_begin_anew_with_every_run():
    comparison = comparisons.start(CompareSettings((BASE,), PROMPTS, repeats=2), "tab")
    comparison.work.join(30)
    first = json.loads(comparison.since([]))
    assert first["state"] == "finished"
    assert (first["done"], first["total"]) == (8, 8)
    plain, drafted = first["lanes"]
    assert (plain["name"], plain["run"], plain["prompt"], plain["repeat"]) == ("plain", 4, "2", 2)
    assert drafted["log"]["figures"]["tokens_generated"] == 24
    steps = sum(entry[0] == "step" for entry in drafted["log"]["entries"])
    assert steps == drafted["log"]["figures"]["steps"]
    n_entries = len(drafted["log"]["entries"])
    again = json.loads(comparison.since([(4, 0), (4, n_entries - 1)]))["lanes"]
    assert len(again[0]["log"]["entries"]) == len(plain["log"]["entries"])
    assert len(again[1]["log"]["entries"]) == 1
    assert len(json.loads(comparison.since([(3, 5), (3, 5)]))["lanes"][1]["log"]["entries"]) == n_entries


def test_what_if_of_a_comparison_after_its_costs_are_measured():
    app = page(agreement="1.0")
    _, app = compared(app)
    app.button(key="what_if_measure").click().run()
    [costs] = comparisons._costs.values()
    costs.work.join(60)
    app.run()
    assert not app.exception
    assert len(app.get("plotly_chart")) == 4
    assert any("as predicted" in text.value for text in app.markdown)
    app.toggle(key="what_if_own_acceptance").set_value(True).run()
    app.slider(key="what_if_acceptance_this comparison: model").set_value(0.0).run()
    assert any("Best draft length **0**" in text.value for text in app.markdown)


def test_what_if_of_a_saved_run():
    with RunStore().begin(spec := RunSpec(**{**BASE_FIELDS, "prompt": "The draft"})) as writer:
        for event in build(spec).events():
            writer.add(event)
    app = page()
    assert app.selectbox(key="what_if_source_markov").value.startswith("run of ")
    app.button(key="what_if_measure").click().run()
    [costs] = comparisons._costs.values()
    costs.work.join(60)
    app.run()
    assert any("Best draft length" in text.value for text in app.markdown)
    assert not app.exception


def test_what_if_of_the_embedded_pair_without_prices_says_what_to_do_and_measures_nothing():
    with RunStore().begin(spec := RunSpec(prompt="The draft", max_tokens=24)) as writer:
        for event in build(spec).events():
            writer.add(event)
    app = page()
    assert any("is instant" in text and "give them a price" in text for text in words(app))
    assert "what_if_measure" not in [button.key for button in app.button]


def test_runs_that_look_alike_are_sources_of_their_own():
    spec = RunSpec(**{**BASE_FIELDS, "prompt": "The draft"})
    run_ids = []
    for _ in range(2):
        with RunStore().begin(spec) as writer:
            for event in build(spec).events():
                writer.add(event)
        run_ids.append(writer.run_id)
    with RunStore().begin(tree := replace(spec, rule="tree-match")) as writer:  # of which no prediction speaks
        for event in build(tree).events():
            writer.add(event)
    options = page().selectbox(key="what_if_source_markov").options
    assert [option.partition("(")[2] for option in options] == [f"{run_id})" for run_id in reversed(run_ids)]


def test_runs_of_the_sidebars_target_come_first_and_the_target_that_is_timed_is_named():
    for one in (RunSpec(**{**BASE_FIELDS, "prompt": "The draft"}), RunSpec(target="noisy", prompt="3 14")):
        with RunStore().begin(one) as writer:
            for event in build(one).events():
                writer.add(event)
    app = page()
    assert app.selectbox(key="what_if_source_markov").value.partition(": ")[2].startswith("markov, ")
    assert any("Times calls of **markov**" in text.value for text in app.caption)
    app.selectbox(key="target").set_value("noisy").run()
    assert app.selectbox(key="what_if_source_noisy").value.partition(": ")[2].startswith("noisy, ")


@pytest.mark.parametrize("simulated", [True, False])
def test_a_what_if_from_a_made_up_clock_says_so(monkeypatch, simulated):
    predicted = what_if.family_prediction
    monkeypatch.setattr(
        what_if, "family_prediction", lambda *one, **more: predicted(*one, **more) | {"simulated": simulated}
    )
    with RunStore().begin(spec := RunSpec(**{**BASE_FIELDS, "prompt": "The draft"})) as writer:
        for event in build(spec).events():
            writer.add(event)
    app = page()
    app.button(key="what_if_measure").click().run()
    [costs] = comparisons._costs.values()
    costs.work.join(60)
    app.run()
    assert not app.exception
    assert ("SIMULATED" in "".join(text.value for text in app.markdown)) == simulated


BASE_FIELDS = {
    "temperature": 0.0,
    "max_tokens": 24,
    "target_call_seconds": 0.02,
    "draft_call_seconds": 0.002,
}


def test_costs_of_a_target_without_time_are_refused_in_words():
    costs = comparisons.start_costs("free", CompareSettings((RunSpec(draft_call_seconds=0.1),), PROMPTS), "model")
    costs.work.join(60)
    assert "takes no time" in costs.work.error


def test_without_anything_that_drafted_the_what_if_says_what_to_do():
    assert any("make a run that drafts" in text for text in words(page()))
