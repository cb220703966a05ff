"""Replay in a real browser: any state of a finished run, from the store alone, exactly as it was live."""

import re

import pytest

from dashboard.event_log import EventLog
from engine import RunSpec, RunStore, Step, Tally, build
from tests.dashboard.browser import LIVE, TOKENS, start, tokens_of, wait_for_state
from tests.engine.models.tiny_files import Tiny
from tests.engine.models.tiny_files import write as write_model

pytestmark = pytest.mark.browser

STREAM = f"""() => [...{LIVE}.querySelectorAll('.stream .chunk')].map((chunk) => chunk.innerHTML
    .replaceAll(' aria-current="step"', ''))"""
FIGURES = f"""() => [...{LIVE}.querySelectorAll('[data-figure], .progress, [data-share], .speculation')]
    .map((element) => element.textContent)"""
CHARTS = f"""() => [...{LIVE}.querySelectorAll('.plot')]
    .map((plot) => JSON.stringify(plot.data?.map(({{x, y}}) => [x, y])))"""


def keep(home, spec, events):
    with RunStore(home / "data" / "runs.sqlite").begin(spec) as writer:
        for event in events:
            writer.add(event)
    return writer.run_id


def open_run(page, address, run_id, step):
    page.goto(f"{address}/history?run={run_id}&step={step}")
    page.wait_for_function(
        f"""() => {LIVE}?.dataset.run === '{run_id}' && {LIVE}.dataset.step === '{step}'
            && !{LIVE}.querySelector('.player').hidden""",
        timeout=60_000,
    )


def scrub(page, step):
    page.evaluate(f"""() => {{
        const slider = {LIVE}.querySelector('.player-slider');
        slider.value = {step};
        slider.dispatchEvent(new Event('input'));
    }}""")
    shows(page, step)


def shows(page, step):
    page.wait_for_function(
        f"() => {LIVE}.dataset.step === '{step}' && !{LIVE}.matches('.awaits-figures')", timeout=30_000
    )


def first_steps(events, n_steps):
    return [event for event in events if not isinstance(event, Step) or event.index < n_steps]


def test_a_run_replays_without_its_model(page, server, tmp_path):
    address, home = server
    model = write_model(tmp_path / "tiny.gguf", Tiny())
    spec = RunSpec(target=str(model), drafter="ngram", backend="numpy", prompt="hello hello world", max_tokens=40)
    events = list(build(spec).events())
    steps = [event for event in events if isinstance(event, Step)]
    run_id = keep(home, spec, events)
    model.rename(tmp_path / "moved.gguf")
    open_run(page, address, run_id, 3)
    assert page.evaluate(TOKENS) == list(tokens_of(first_steps(events, 3)))
    for step in (0, len(steps) - 1, 1, 5):
        scrub(page, step)
        assert page.evaluate(TOKENS) == list(tokens_of(first_steps(events, step)))
    page.get_by_role("button", name="To the end").click()
    wait_for_state(page, "finished")
    assert page.evaluate(TOKENS) == list(tokens_of(events))
    assert page.errors == []


def test_the_last_state_is_the_live_one_and_going_back_changes_nothing_in_it(page, server):
    address, _ = server
    start(page, address, "max_tokens=150&seed=4")
    wait_for_state(page, "finished")
    page.wait_for_function(f"() => {LIVE}.querySelectorAll('.js-plotly-plot').length === 4", timeout=60_000)
    page.wait_for_timeout(1500)
    live = [page.evaluate(what) for what in (STREAM, FIGURES, CHARTS)]
    for step in (0, 40, 7):
        scrub(page, step)
    page.wait_for_function(f"() => {LIVE}.dataset.state === 'replay'")
    assert page.evaluate(STREAM) != live[0]
    assert page.evaluate(FIGURES) != live[1]
    page.get_by_role("button", name="To the end").click()
    wait_for_state(page, "finished")
    page.wait_for_function(
        f"(charts) => JSON.stringify(({CHARTS})()) === JSON.stringify(charts)", arg=live[2], timeout=20_000
    )
    assert [page.evaluate(what) for what in (STREAM, FIGURES)] == live[:2]
    assert page.errors == []


def test_the_figures_of_every_step_are_the_engines(page, server):
    address, home = server
    spec = RunSpec(prompt="The draft", max_tokens=40, seed=3)
    events = list(build(spec).events())
    open_run(page, address, keep(home, spec, events), 0)
    tally = Tally()
    for event in events:
        tally.add(event)
        if isinstance(event, Step):
            page.get_by_role("button", name="One step forward").click()
            shows(page, event.index + 1)
            figures = tally.figures()
            if event is events[-2]:  # the end has the figures of the end
                tally.add(events[-1])
            words = page.evaluate(FIGURES)
            numbers = [float(word) for word in words if re.fullmatch(r"\d+\.\d\d", word)]
            assert any(abs(number - figures.tokens_per_step) < 0.00501 for number in numbers)
            assert any(
                word.endswith("%") and abs(float(word[:-1]) - 100 * figures.acceptance_rate) < 0.0501 for word in words
            )
            assert f"{figures.target_calls_saved}" in words


WORDS = f"() => [...{LIVE}.querySelectorAll('.plot')].map((plot) => plot.textContent)"
YET = "Once something is drafted:"


def test_charts_of_the_beginning_say_what_comes_and_not_that_nothing_did(page, server):
    """No token is shown before the first step, and none that was drafted."""
    address, home = server
    spec = RunSpec(prompt="The draft", max_tokens=40, seed=3)
    open_run(page, address, keep(home, spec, list(build(spec).events())), 8)
    begins = f"(words) => ({WORDS})().every((text, place) => text.startsWith(words[place]))"
    drawn = f"() => [...{LIVE}.querySelectorAll('.plot')].every((plot) => plot.querySelector('.xtick'))"
    page.wait_for_function(drawn)
    scrub(page, 0)
    page.wait_for_function(begins, arg=["Once tokens arrive:", YET, YET, YET], timeout=10_000)
    page.get_by_role("button", name="To the end").click()
    page.wait_for_function(drawn)
    assert page.errors == []


def test_charts_whose_figures_are_on_their_way_do_not_say_that_nothing_was_drafted(page, server):
    address, home = server
    spec = RunSpec(prompt="The draft", max_tokens=40, seed=3)
    page.route("**/figures?*", lambda route: None)  # no answer comes
    open_run(page, address, keep(home, spec, list(build(spec).events())), 8)
    page.wait_for_function(f"() => ({WORDS})().every(Boolean)")
    assert all(words.startswith(YET) for words in page.evaluate(WORDS)[2:])


def test_a_plain_run_whose_end_comes_alone_says_that_nothing_was_drafted(page, server):
    """Not that something will be; of the states before its end the charts do not know."""
    address, home = server
    spec = RunSpec(prompt="The draft", max_tokens=40, seed=3, drafter="none")
    events = list(build(spec).events())
    log = EventLog()
    for event in events[:-1]:
        log.add(event)
    log.state = "running"
    page.route(
        "**/draftscope/runs/*/events*",
        lambda route: route.fulfill(body=log.since(int(re.search(r"from=(\d+)", route.request.url)[1]))),
    )
    page.goto(f"{address}/history?run={keep(home, spec, events)}")
    say = f"(said) => {LIVE} && ({WORDS})().slice(1).every((words) => words.startsWith(said))"
    page.wait_for_function(say, arg=YET)
    log.add(events[-1])
    page.wait_for_function(say, arg="Nothing was drafted in this run.")


def test_the_keyboard_steers(page, server):
    address, home = server
    spec = RunSpec(prompt="The draft", max_tokens=40, seed=3)
    events = list(build(spec).events())
    n_steps = sum(isinstance(event, Step) for event in events)
    open_run(page, address, keep(home, spec, events), 5)
    for key, step in (("ArrowLeft", 4), ("ArrowRight", 5), ("Home", 0), ("End", n_steps), ("Home", 0)):
        page.keyboard.press(key)
        shows(page, step)
    page.get_by_label("Speed").select_option("16")
    page.get_by_label("Speed").evaluate("(speed) => speed.blur()")
    page.keyboard.press("Space")
    page.wait_for_function(f"() => Number({LIVE}.dataset.step) > 2")
    page.keyboard.press("Space")
    paused = page.evaluate(f"() => {LIVE}.querySelector('.player-play').getAttribute('aria-label')")
    assert paused == "Play"


@pytest.mark.parametrize("speed", ["16", "recorded"])
def test_playing_comes_to_the_end(page, server, speed):
    address, home = server
    spec = RunSpec(prompt="The draft", max_tokens=40, seed=3, target_call_seconds=0.01)
    events = list(build(spec).events())
    open_run(page, address, keep(home, spec, events), 0)
    page.get_by_label("Speed").select_option(speed)
    page.get_by_role("button", name="Play", exact=True).click()
    wait_for_state(page, "finished")
    assert page.evaluate(TOKENS) == list(tokens_of(events))
    page.get_by_label("Speed").select_option("0.25")
    page.get_by_role("button", name="Play", exact=True).click()  # from the end it begins again
    page.wait_for_function(f"() => {LIVE}.dataset.state === 'replay'")


def test_the_step_and_its_token_are_marked(page, server):
    address, home = server
    spec = RunSpec(prompt="The draft", max_tokens=40, seed=3)
    open_run(page, address, keep(home, spec, list(build(spec).events())), 4)
    marked = f"() => [...{LIVE}.querySelectorAll('.step[aria-current]')].map((step) => Number(step.dataset.step))"
    assert page.evaluate(marked) == [3]
    scrub(page, 2)
    assert page.evaluate(marked) == [1]
    assert "step 2 of" in page.evaluate(f"() => {LIVE}.querySelector('.player-words').textContent")


COPIED = """Object.defineProperty(navigator, 'clipboard', {
    value: {writeText: async (text) => void (globalThis.copied = text)},
})"""


def test_the_link_to_a_step_opens_it(page, server):
    address, home = server
    spec = RunSpec(prompt="The draft", max_tokens=40, seed=3)
    run_id = keep(home, spec, list(build(spec).events()))
    page.add_init_script(COPIED)
    open_run(page, address, run_id, 0)
    scrub(page, 6)
    page.get_by_role("button", name="Copy a link to this step").click()
    page.wait_for_function("() => globalThis.copied")
    link = page.evaluate("() => globalThis.copied")
    assert link == f"{address}/history?run={run_id}&step=6"
    page.goto(link)
    page.wait_for_function(f"() => {LIVE}?.dataset.run === '{run_id}' && {LIVE}.dataset.step === '6'", timeout=60_000)


def test_figures_that_cannot_be_fetched_are_not_asked_for_again_at_once(page, server):
    address, home = server
    spec = RunSpec(prompt="The draft", max_tokens=40, seed=3)
    run_id = keep(home, spec, list(build(spec).events()))
    asked = []

    def refuse(route):
        asked.append(route.request.url)
        route.fulfill(status=503, json={"error": "the history is busy"})

    page.route("**/figures?*", refuse)
    open_run(page, address, run_id, 6)
    for step in (5, 4, 3):
        page.keyboard.press("ArrowLeft")
        page.wait_for_function(f"() => {LIVE}.dataset.step === '{step}'")
    page.wait_for_timeout(1500)
    assert 1 <= len(asked) <= 2  # the second one is due after four seconds
    page.unroute("**/figures?*")
    shows(page, 3)
    assert page.errors == []
