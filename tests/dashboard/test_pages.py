"""Every page, through Streamlit's AppTest: what the script does; the live view's JavaScript never runs here."""

import json
import time
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.controls import PROBE
from dashboard.plain_text import plain
from dashboard.runner import MOST_ACTIVE, registry
from engine import RunSpec, RunStore, build
from engine.models import catalog
from engine.models.backends import PACKAGES, can_run
from engine.policies import POLICIES, POLICY_PARAMETERS
from engine.rules import RULE_PARAMETERS, RULES
from tests.engine.models.tiny_files import Tiny, write

SCRIPT = str(Path(__file__).parents[2] / "dashboard" / "pages.py")


def opened(**address):
    app = AppTest.from_file(SCRIPT, default_timeout=30)
    for name, value in address.items():
        app.query_params[name] = value
    return app.run()


def live_data(app):
    [component] = app.get("bidi_component")
    return json.loads(component.proto.json)


def address(app):
    return {name: value[0] if isinstance(value, list) else value for name, value in dict(app.query_params).items()}


def run_of(app):
    return registry.get(live_data(app)["run"])


def until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def no_run_left():
    yield
    for run in list(registry._runs.values()):
        run.stop()
        run.join(10)
    registry._runs.clear()


def test_the_page_opens_on_the_embedded_pair_and_offers_the_real_model():
    app = opened()
    assert not app.exception
    assert app.selectbox(key="target").value == "markov"
    assert app.button(key="get").label == "Get SmolLM2-135M"
    assert live_data(app)["run"] is None
    assert app.button(key="stop").disabled
    assert app.button(key="pause").disabled


def test_run_starts_what_the_sidebar_says():
    app = opened()
    app.slider(key="draft_length").set_value(2)
    app.number_input(key="max_tokens").set_value(17)
    app.number_input(key="seed").set_value(5)
    app.slider(key="temperature").set_value(0.5)
    app.button(key="go").click().run()
    assert not app.exception
    spec = run_of(app).spec
    assert (spec.draft_length, spec.max_tokens, spec.seed, spec.temperature) == (2, 17, 5, 0.5)
    assert (spec.target, spec.drafter, spec.rule) == ("markov", "model", "exact")
    assert spec.probe == PROBE


def test_pause_step_resume_stop():
    app = opened(paced="true", pace="20", max_tokens="20000")
    app.button(key="go").click().run()
    run = run_of(app)
    app.button(key="pause").click().run()
    until(lambda: run.log.state == "paused")
    n_entries = len(run.log)
    assert app.button(key="pause").label == "Resume"
    app.button(key="step").click().run()
    until(lambda: len(run.log) == n_entries + 2)
    app.button(key="pause").click().run()
    until(lambda: len(run.log) > n_entries + 6)
    app.button(key="stop").click().run()
    until(lambda: run.finished)
    app.run()
    assert app.button(key="stop").disabled
    assert not app.button(key="go").disabled


def test_step_without_a_run_starts_one_that_waits():
    app = opened()
    app.button(key="step").click().run()
    run = run_of(app)
    until(lambda: len(run.log) == 3 and run.log.state == "paused")


def test_a_moved_slider_leaves_the_run_alone():
    app = opened(paced="true", pace="20", max_tokens="20000")
    app.button(key="go").click().run()
    run = run_of(app)
    app.slider(key="draft_length").set_value(9).run()
    assert run_of(app) is run
    assert not run.finished
    assert run.spec.draft_length == RunSpec().draft_length


def test_a_refresh_finds_its_run_and_its_settings_again():
    app = opened(max_tokens="20000", paced="true", draft_length="7")
    app.button(key="go").click().run()
    again = opened(**address(app))
    assert live_data(again)["run"] == live_data(app)["run"]
    assert again.slider(key="draft_length").value == 7


def test_another_tab_has_no_part_in_it():
    app = opened(max_tokens="20000", paced="true")
    app.button(key="go").click().run()
    stranger = opened(run=address(app)["run"])
    assert live_data(stranger)["mode"] == "review"
    assert not {"go", "pause", "stop"} & {button.key for button in stranger.button}


def test_when_too_many_runs_are_under_way_the_page_says_so():
    for _ in range(MOST_ACTIVE):
        registry.start(RunSpec(prompt="The draft", max_tokens=20_000), "another tab", paused=True)
    app = opened()
    app.button(key="go").click().run()
    assert f"{MOST_ACTIVE} runs are under way" in app.error[0].value
    app.run()
    assert not app.error


def test_a_finished_run_offers_its_files():
    app = opened(max_tokens="8")
    app.button(key="go").click().run()
    run_of(app).join(10)
    app.run()
    assert live_data(app)["finished"] is True
    assert [button.proto.label for button in app.get("download_button")] == [
        "Replay as HTML",
        "Run as JSONL",
        "Steps as CSV",
        "Tokens as CSV",
    ]


def test_the_naive_rule_is_said_to_be_lossy():
    app = opened()
    app.selectbox(key="rule").set_value("naive").run()
    assert "Lossy" in app.warning[0].value
    app.slider(key="acceptance_probability").set_value(0.5)
    app.button(key="go").click().run()
    assert run_of(app).spec.acceptance_probability == 0.5


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_shows_its_own_settings_and_no_others(rule):
    app = opened()
    app.selectbox(key="rule").set_value(rule).run()
    shown = {slider.key for slider in app.slider}
    settings = {name for names in RULE_PARAMETERS.values() for name in names}
    assert shown & settings == set(RULE_PARAMETERS.get(rule, ()))
    assert bool(app.warning) != RULES[rule](RunSpec()).lossless


@pytest.mark.parametrize("policy", POLICIES)
def test_a_length_policy_shows_what_it_does_and_its_own_settings(policy):
    app = opened()
    app.selectbox(key="length_policy").set_value(policy).run()
    shown = {slider.key for slider in app.slider}
    settings = {name for names in POLICY_PARAMETERS.values() for name in names}
    assert shown & settings == set(POLICY_PARAMETERS.get(policy, ()))
    assert POLICIES[policy](RunSpec()).guarantee in [caption.value for caption in app.caption]
    app.button(key="go").click().run()
    assert run_of(app).spec.length_policy == policy


def test_plain_decoding_has_no_length_policy_to_choose():
    app = opened()
    app.selectbox(key="drafter_embedded").set_value("none").run()
    assert "length_policy" not in {box.key for box in app.selectbox}


def test_the_shape_of_a_tree_is_asked_for_where_one_can_be_drafted():
    app = opened()
    assert not {"tree_width", "tree_nodes"} & {slider.key for slider in app.slider}
    app.selectbox(key="rule").set_value("tree-distinct").run()
    app.slider(key="tree_width").set_value(3).run()
    app.slider(key="tree_nodes").set_value(9)
    app.button(key="go").click().run()
    spec = run_of(app).spec
    assert (spec.rule, spec.tree_width, spec.tree_nodes) == ("tree-distinct", 3, 9)
    app.selectbox(key="drafter_embedded").set_value("ngram").run()
    assert "tree_width" not in {slider.key for slider in app.slider}
    assert any("Only a model drafts trees" in caption.value for caption in app.caption)


def test_lenience_of_one_is_said_to_be_lossless():
    app = opened()
    app.selectbox(key="rule").set_value("lenience").run()
    assert "Lossy" in app.warning[0].value
    app.slider(key="lenience").set_value(1.0).run()
    assert not app.warning
    app.button(key="go").click().run()
    assert run_of(app).spec.lenience == 1.0


def test_the_users_own_text_is_the_prompt():
    app = opened()
    app.selectbox(key="example_markov").set_value("My own text").run()
    app.text_area(key="prompt_markov_My own text").set_value("The residual").run()
    app.button(key="go").click().run()
    assert run_of(app).spec.prompt == "The residual"


def test_an_empty_prompt_ends_in_a_clear_box():
    app = opened()
    app.selectbox(key="example_markov").set_value("My own text").run()
    assert "the prompt is empty" in app.error[0].value
    assert app.button(key="go").disabled
    assert app.button(key="step").disabled
    assert not app.exception


def test_a_price_for_calls_makes_the_run_simulated():
    app = opened()
    app.number_input(key="target_ms").set_value(20)
    app.number_input(key="max_tokens").set_value(4)
    app.button(key="go").click().run()
    run = run_of(app)
    run.join(10)
    assert json.loads(run.since(0))["simulated"] is True


def test_other_targets_keep_the_page_working():
    app = opened()
    app.selectbox(key="target").set_value("noisy").run()
    assert not app.exception
    app.selectbox(key="drafter_embedded").set_value("ngram").run()
    app.button(key="go").click().run()
    run = run_of(app)
    run.join(10)
    assert not run.log.error


@pytest.mark.skipif(not can_run("ort"), reason="ONNX Runtime is not installed")
def test_a_backend_that_cannot_run_the_target_is_told_below_the_run(tmp_path, monkeypatch):
    monkeypatch.setitem(PACKAGES, "numba", ("numba_that_is_not_there",))
    catalog.add(write(tmp_path / "narrow.gguf", Tiny(head_dim=6)))
    app = opened(target="narrow", max_tokens="4", drafter="none")
    app.button(key="go").click().run()
    run_of(app).join(20)
    app.run()
    assert not app.exception
    [told] = [box.value for box in app.warning]
    assert plain("numpy runs narrow: ") in told
    assert "heads are 6 numbers wide" in told


def saved(**settings):
    spec = RunSpec(**{"prompt": "The draft", "max_tokens": 6} | settings)
    with RunStore().begin(spec) as writer:
        for event in build(spec).events():
            writer.add(event)
    return writer.run_id


def test_decisions_are_not_explained_if_that_is_switched_off():
    app = opened()
    app.toggle(key="explain").set_value(False)
    app.button(key="go").click().run()
    assert run_of(app).spec.probe == 0
