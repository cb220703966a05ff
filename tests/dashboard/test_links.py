"""Links: to a run at a step, and to the settings of the sidebar. Whoever made them is not trusted."""

import json
from dataclasses import fields, replace
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.plain_text import plain
from dashboard.runner import registry
from dashboard.settings_link import BOUNDS, LONGEST_LINK, SAME, address_of, read_spec, widgets_of
from engine import RunSpec, RunStore
from engine.errors import DraftscopeError
from tests.dashboard.test_compare import page as compare_page
from tests.dashboard.test_pages import address, live_data, no_run_left, opened, run_of, saved

__all__ = ["no_run_left"]

SPEC = RunSpec(
    prompt="A & B = “c”?\n<b>#x</b>", draft_length=7, temperature=0.35, top_k=9, top_p=0.8, max_tokens=33, seed=12345,
    rule="naive", acceptance_probability=0.25, agreement=-0.5, target_call_seconds=0.02, draft_call_seconds=0.003,
    stop=("the end", "\n\n"), min_p=0.05, repetition_penalty=1.15, frequency_penalty=-0.5, presence_penalty=0.25,
    arithmetic="integer", logprobs=True,
)  # fmt: skip


def linked(spec):
    return opened(spec=parse_qs(address_of(spec)[1:])["spec"][0])


@pytest.mark.parametrize(
    "spec",
    [
        SPEC,
        RunSpec(prompt="The draft"),
        RunSpec(prompt="3 14", target="noisy", drafter="ngram", ngram_max=5, ngram_match="first"),
        RunSpec(prompt="The draft", drafter="model:markov"),
        RunSpec(prompt="The draft", rule="lenience", lenience=0.25),
        RunSpec(prompt="The draft", rule="ensemble", ensemble_weight=0.35),
        RunSpec(prompt="The draft", rule="typical", typical_threshold=0.2, typical_scale=0.75),
        RunSpec(prompt="The draft", rule="gumbel", draft_length=2),
        RunSpec(prompt="The draft", length_policy="fixed"),
        RunSpec(prompt="The draft", length_policy="confidence-threshold", confidence_threshold=0.25),
        RunSpec(prompt="The draft", length_policy="entropy-bound", entropy_bound=0.55),
        RunSpec(prompt="The draft", length_policy="draft-and-verify", start_threshold=0.75),
    ],
)
def test_a_link_fills_the_sidebar_and_runs_nothing(spec):
    before = set(registry._runs)
    app = linked(spec)
    assert not app.exception
    assert not app.error
    assert live_data(app)["run"] is None
    assert set(registry._runs) == before
    app.button(key="go").click().run()
    assert run_of(app).spec == spec


def test_every_setting_has_a_widget_and_every_number_its_bounds():
    values = {field.name: getattr(SPEC, field.name) for field in fields(RunSpec)}
    widgets = widgets_of(SPEC)
    assert {name: widgets[name] for name in SAME} == {name: values[name] for name in SAME}
    numbers = {name for name in SAME if type(values[name]) in (int, float)}
    assert numbers == set(BOUNDS) - {"target_ms", "draft_ms"}
    by_another_key = {"drafter", "stop", "prompt", "probe", "target_call_seconds", "draft_call_seconds"}
    assert values.keys() - set(SAME) == by_another_key
    assert {"drafter_embedded", "stop_at", "explain", "target_ms", "draft_ms"} < widgets.keys()


def test_an_address_without_its_owner_opens_the_run():
    run_id = saved()
    assert live_data(opened(run=run_id))["run"] == run_id


def test_a_link_is_taken_once_so_that_settings_may_be_changed():
    app = linked(SPEC)
    assert "spec" not in app.query_params
    app.slider(key="draft_length").set_value(2).run()
    assert app.slider(key="draft_length").value == 2


def test_a_refreshed_page_has_the_settings_of_its_link_and_what_was_changed_since():
    app = linked(SPEC)
    again = opened(**address(app))
    assert not again.exception
    again.slider(key="draft_length").set_value(2).run()
    again = opened(**address(again))
    again.button(key="go").click().run()
    assert run_of(again).spec == replace(SPEC, draft_length=2)


def test_what_stands_in_the_address_counts_more_than_what_is_kept():
    app = linked(SPEC)
    assert opened(**address(app), draft_length="3").slider(key="draft_length").value == 3


def test_another_tab_has_settings_of_its_own():
    linked(SPEC)
    assert opened().slider(key="draft_length").value == RunSpec().draft_length


def test_the_link_that_the_sidebar_offers_opens_the_same_settings():
    app = opened(max_tokens="17", seed="5")
    [offered] = [code.value for code in app.code if "?spec=" in code.value]
    spec = read_spec(parse_qs(offered.partition("?")[2])["spec"][0])
    assert (spec.max_tokens, spec.seed, spec.prompt) == (17, 5, "The draft model")


def links_of(spec):
    """What the place for a link to these settings shows: the link, or why there is none."""

    def script(text):
        from dashboard.views.links import settings_link
        from engine import RunSpec

        settings_link(RunSpec.from_json(text), key="test")

    app = AppTest.from_function(script, args=(spec.to_json(),), default_timeout=30).run()
    assert not app.exception
    return [code.value for code in app.code], [box.value for box in (*app.text, *app.caption)]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"target": "/home/somebody/models/x.gguf"}, "no files"),
        ({"drafter": "model:/home/somebody/models/x.gguf"}, "no files"),
        ({"target_call_seconds": 0.0005}, "whole milliseconds"),
        ({"prompt": "x" * LONGEST_LINK}, "characters long"),
    ],
)
def test_a_link_that_could_not_be_opened_is_not_offered(changes, words):
    links, [told] = links_of(replace(SPEC, **changes))
    assert links == []
    assert "There is no link to these settings" in told
    assert words in told


def test_a_link_to_a_run_with_another_probe_says_what_it_will_be():
    [link], told = links_of(replace(SPEC, probe=32))
    assert "?spec=" in link
    assert any("kept 32 alternatives" in words and "it will be 8" in words for words in told)
    assert not any("alternatives" in words for words in links_of(replace(SPEC, probe=8))[1])


def changed(**changes):
    return json.dumps(json.loads(SPEC.to_json()) | changes)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense", "^the link is damaged.*ask for it again$"),
        ("[]", "the link is damaged"),
        ("[" * 5000, "the link is damaged"),
        (changed(schema=2), "schema 2"),
        (changed(warmth=1), "no field 'warmth'"),
        (changed(seed="7"), 'seed is "7"; it must be a whole number'),
        (changed(seed=-1), "seed"),
        (changed(seed=2**60), "seed is 1152921504606846976; the sidebar goes from 0"),
        (changed(temperature=99), "temperature is 99.0; the sidebar goes from 0.0 to 2.0"),
        (changed(temperature=float("nan")), "temperature"),
        (changed(draft_length=33), "draft_length|draft length"),
        (changed(max_tokens=10**9), "max_tokens is 1000000000"),
        (changed(agreement=2), "agreement"),
        (changed(target_call_seconds=0.0005), "whole milliseconds"),
        (changed(target_call_seconds=float("inf")), "whole milliseconds"),
        (changed(target_call_seconds=99.0), "target_ms is 99000"),
        (changed(rule="always"), "choose exact, block"),
        (changed(drafter="oracle"), "choose none"),
        (changed(target="/etc/passwd"), "'/etc/passwd'; a link may name models that are here, and no files"),
        (changed(target="\\\\host\\share\\x.gguf"), "no files"),
        (changed(drafter="model:../x.gguf"), "no files"),
        (changed(rule="exact", drafter="eagle:/tmp/head.npz"), "no files"),
        (changed(prompt=" "), "prompt is empty"),
        (changed(prompt="x" * LONGEST_LINK), "characters long"),
    ],
)
def test_a_link_with_wrong_settings_says_so_and_changes_nothing(text, words):
    with pytest.raises(DraftscopeError, match=words):
        read_spec(text)
    app = opened(spec=text)
    assert not app.exception
    assert "The settings of the link were not taken: " in app.error[0].value.replace("\\", "")
    assert app.slider(key="draft_length").value == RunSpec().draft_length
    assert app.selectbox(key="target").value == "markov"
    assert not registry._runs


@pytest.mark.parametrize("page", [opened, compare_page])
def test_what_a_link_says_is_shown_as_text(page):
    app = page(spec=changed(target="![x](http://example.org/x.png)"))
    assert "\\!\\[x\\]\\(http\\:" in app.error[0].value
    assert plain("a_b *c*\n# d") == "a\\_b \\*c\\* \\# d"


def test_a_link_opens_a_run_at_its_step_on_the_history_page():
    run_id = saved()
    app = opened(run=run_id, step="2")
    assert not app.exception
    data = live_data(app)
    assert (data["run"], data["step"], data["mode"]) == (run_id, 2, "review")
    assert data["link"] == f"/history?run={run_id}"


def test_a_closed_link_leaves_the_history():
    app = opened(run=saved(), step="0")
    app.button(key="close_link").click().run()
    assert not app.exception
    assert not app.get("bidi_component")
    assert "run" not in app.query_params


def test_a_link_to_the_tabs_own_run_stays_on_the_decode_page():
    app = opened(max_tokens="8")
    app.button(key="go").click().run()
    run = run_of(app)
    run.join(10)
    again = opened(owner=app.session_state.owner, run=run.id, step="1")
    assert (live_data(again)["run"], live_data(again)["step"], live_data(again)["mode"]) == (run.id, 1, "live")


@pytest.mark.parametrize("step", ["-1", "x", "1e3", "9" * 40, "²", "<b>1</b>"])
def test_a_step_that_is_no_number_is_told_and_the_run_shown_at_its_end(step):
    app = opened(run=saved(), step=step)
    assert not app.exception
    assert "no whole number" in app.error[0].value
    assert live_data(app)["step"] is None


def test_a_step_behind_the_end_is_told():
    run_id = saved()
    app = opened(run=run_id, step="9999")
    n_steps = RunStore().get(run_id).record["steps"]
    assert f"the run has {n_steps}" in app.warning[0].value


@pytest.mark.parametrize("run", ["nobody", "../x", "x" * 500, "' OR 1=1", "![x](http://example.org)"])
def test_a_link_to_a_run_that_is_not_here_says_so(run):
    app = opened(run=run, step="1")
    assert not app.exception
    assert "is not in this history" in app.error[0].value
    assert not app.get("bidi_component")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"max_tokens": "-5"}, "max_tokens is '-5'; the sidebar goes from 1 to 20000"),
        ({"max_tokens": "999999"}, "max_tokens is '999999'"),
        ({"target_ms": "1e999"}, "target_ms is '1e999'; the sidebar goes from 0 to 10000"),
        ({"seed": "1.5"}, "seed is '1.5'"),
        ({"draft_length": "99"}, "draft_length is '99'; the sidebar goes from 0 to 32"),
        ({"temperature": "nan", "agreement": "[x](http://example.org)"}, "agreement is '[x](http://example.org)'"),
        ({"rule": "zzz"}, "rule is 'zzz'; choose exact, block, "),
        ({"length_policy": ""}, "length_policy is ''; choose confident, fixed, "),
        ({"target": "foo"}, "target is 'foo'; choose markov or noisy"),
    ],
)
@pytest.mark.parametrize("page", [opened, compare_page])
def test_what_no_widget_has_of_an_address_is_told_and_not_taken(page, given, words):
    app = page(**given, draft_ms="3")
    assert not app.exception
    assert plain(words) in app.error[0].value
    for name in given:
        assert name not in app.query_params
    assert app.number_input(key="draft_ms").value == 3
    app.run()
    assert not app.error


@pytest.mark.parametrize("page", [opened, compare_page])
@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("max_tokens", -5, "max_tokens is -5; the sidebar goes from 1 to 20000"),
        ("max_tokens", 20_001, "max_tokens is 20001"),
        ("top_k", -1, "top_k is -1"),
        ("seed", -1, "seed is -1"),
        ("target_ms", -20, "target_ms is -20; the sidebar goes from 0 to 10000"),
    ],
)
def test_a_typed_number_beyond_its_bounds_is_told_and_starts_nothing(page, key, value, words):
    app = page()
    app.number_input(key=key).set_value(value).run()
    assert not app.exception
    assert plain(words) in app.error[0].value
    assert app.button(key="go" if page is opened else "compare_go").disabled
