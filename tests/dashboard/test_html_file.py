"""A run as one HTML file: opened from disk, without a network, it steps through the whole run."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from dashboard.components.live import SCRIPTS, asset
from dashboard.html_file import html_file
from engine import Finished, RunSpec, RunStore, Started, Step, Tally, build
from engine.explain import explain
from engine.values import Decision, Drafted
from tests.dashboard.browser import tokens_of
from tests.engine.sample_events import sample_events

HOSTILE = "</script><script>globalThis.ran = 1</script><!-- \u2028\u2029 <img src=x onerror='globalThis.ran = 1'> & ]]>"
LIVE = "document.querySelector('.live')"
WALK = f"""async () => {{
    const states = [];
    const press = (name) => {LIVE}.querySelector(`[data-do="${{name}}"]`).click();
    const until = async (step) => {{
        while ({LIVE}.dataset.step !== String(step)) await new Promise(requestAnimationFrame);
    }};
    const n = Number({LIVE}.querySelector('.player-slider').max);
    press('first');
    for (let step = 0; step <= n; step++) {{
        await until(step);
        const figures = Object.fromEntries([...{LIVE}.querySelectorAll('[data-figure]')]
            .map((element) => [element.dataset.figure, element.textContent]));
        states.push([step, {LIVE}.querySelectorAll('.stream .token').length, figures]);
        if (step < n) press('forward');
    }}
    return states;
}}"""
TOKENS = f"""() => [...{LIVE}.querySelectorAll('.stream .token')].map((token) => [
    Number(token.dataset.step), Number(token.dataset.position), token.dataset.outcome, Number(token.dataset.token)])"""


def saved(spec, events):
    with RunStore().begin(spec) as writer:
        for event in events:
            writer.add(event)
    return RunStore().get(writer.run_id)


@pytest.fixture
def opened(browser, tmp_path):
    """A function that opens a file from disk in a browser without network, and what the console said."""
    contexts = []

    def open_file(content, **options):
        file = tmp_path / "run.html"
        file.write_bytes(content)
        context = browser.new_context(viewport={"width": 1300, "height": 1000}, **options)
        contexts.append(context)
        context.set_offline(True)
        page = context.new_page()
        page.said, page.asked = [], []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(file.as_uri())
        page.wait_for_function(f"() => {LIVE}.dataset.state === 'finished'", timeout=60_000)
        return page

    yield open_file
    for context in contexts:
        context.close()


@pytest.mark.browser
def test_the_file_steps_through_a_run_of_500_tokens_without_a_network(opened):
    spec = RunSpec(prompt="The draft", max_tokens=500, temperature=0.0)
    events = list(build(spec).events())
    run = saved(spec, events)
    assert run.record["tokens_generated"] == 500
    content = html_file(run, events)
    assert len(content) < 1_000_000
    page = opened(content)
    assert page.evaluate(TOKENS) == list(tokens_of(events))
    states = page.evaluate(WALK)
    tally, shown = Tally(), []
    for event in events:
        tally.add(event)
        if isinstance(event, Step):
            shown.append((event, tally.figures()))
    assert [step for step, _, _ in states] == list(range(len(shown) + 1))
    n_tokens = 0
    for (_, n_shown, words), (event, figures) in zip(states[1:], shown, strict=True):
        n_tokens += len(list(tokens_of([event])))
        assert n_shown == n_tokens
        assert words["tokens_per_step"] == f"{figures.tokens_per_step:.2f}"
        assert float(words["acceptance_rate"].rstrip("%")) == pytest.approx(100 * figures.acceptance_rate, abs=0.0501)
    assert page.evaluate(TOKENS) == list(tokens_of(events))
    assert page.said == []
    assert len(page.asked) == 1


GO = f"""async (asked) => {{
    const states = [];
    const slider = {LIVE}.querySelector('.player-slider');
    for (const step of asked) {{
        slider.value = step;
        slider.dispatchEvent(new Event('input'));
        while ({LIVE}.dataset.step !== String(step)) await new Promise(requestAnimationFrame);
        states.push([...{LIVE}.querySelectorAll('.stream .chunk')].map((chunk) => chunk.innerHTML
            .replaceAll(' aria-current="step"', '').replaceAll(' inspected', '')));
    }}
    return states;
}}"""


def split_characters(n_steps):
    """Steps that each end a character which the step before began, in a text without sentences."""
    yield Started("target", "none", "exact", True, 7, (1,), prompt_text="so")
    for index in range(n_steps):
        decisions = (
            Decision(
                0,
                "accepted",
                5,
                5,
                True,
                draft_text="<9F 98>",
                target_text="\U0001f600",
                target_parts=2 if index else 1,
            ),
            Decision(1, "bonus", None, 6, target_text="<F0>"),
        )
        yield Drafted(index, 1 + 2 * index, (5,), ("<9F 98>",), 0.01)
        yield Step(index, 1 + 2 * index, decisions, (5, 6), 0.01, 0.02, 0.0, 0.03 * (index + 1))
    yield Finished("length", (5, 6) * n_steps, "so", 0.0, 0.03 * n_steps)


@pytest.mark.browser
@pytest.mark.parametrize("events", [list(sample_events(900)), list(split_characters(900))], ids=["texts", "split"])
def test_a_state_is_the_same_from_whichever_side_it_is_reached(opened, events):
    """Over several chunks of the stream, with characters that are spread over tokens, steps and chunks."""
    page = opened(html_file(saved(RunSpec(prompt="so"), events), events))
    asked = [0, 10, 342, 343, 344, 399, 400, 401, 402, 700, 899, 900]
    forwards = dict(zip(asked, page.evaluate(GO, asked), strict=True))
    assert len(forwards[900]) > 2
    back = [*reversed(asked), 401, 10, 900, 343, 700, 342, 402, 400, 399, 899]
    for step, state in zip(back, page.evaluate(GO, back), strict=True):
        assert state == forwards[step], step
    alone = opened(html_file(saved(RunSpec(prompt="so"), cut := events[:803]), cut))
    [state] = alone.evaluate(GO, [401])
    assert state == forwards[401]
    assert page.said == []


@pytest.mark.browser
def test_a_token_tells_its_story_in_the_file(opened):
    spec = RunSpec(prompt="The draft", max_tokens=60, seed=3)
    events = list(build(spec).events())
    page = opened(html_file(saved(spec, events), events))
    page.locator(".stream .token.rejected").first.hover()
    assert "acceptance probability" in page.locator(".tooltip").inner_text()
    assert page.locator(".plot svg").count() == 4
    assert page.said == []


@pytest.mark.browser
def test_what_a_prompt_or_token_holds_does_not_run(opened):
    spec = RunSpec(prompt=HOSTILE + "\ud83d\0", target=HOSTILE)
    events = [
        replace(event, prompt_text=HOSTILE + "\ud83d") if hasattr(event, "prompt_text")
        else replace(event, decisions=tuple(replace(one, target_text=HOSTILE) for one in event.decisions), note=HOSTILE)
        if isinstance(event, Step) else event
        for event in sample_events(9)
    ]  # fmt: skip
    content = html_file(saved(spec, events), events)
    page = opened(content)
    assert page.evaluate("() => globalThis.ran") is None
    assert page.evaluate("() => document.querySelectorAll('script').length") == 2
    assert page.evaluate("() => document.querySelectorAll('img').length") == 0
    assert HOSTILE.replace("\u2028", "").replace("\u2029", "")[:40] in page.inner_text(".stream")
    assert page.said == []


@pytest.mark.browser
@pytest.mark.parametrize("how", ["error", "interrupted", "nothing"])
def test_a_run_without_a_good_end_opens_too(opened, how):
    events = list(sample_events(6))
    cut = {"error": [*events[:-1], replace(events[-1], reason="error", error="it broke")], "interrupted": events[:6],
           "nothing": []}[how]  # fmt: skip
    page = opened(html_file(saved(RunSpec(prompt="so"), cut), cut))
    words = page.inner_text("body")
    assert {"error": "It broke", "interrupted": "Interrupted", "nothing": "This run gave no tokens"}[how] in words
    assert page.said == []


@pytest.mark.browser
def test_a_run_that_goes_on_is_not_called_interrupted(opened):
    events = list(sample_events(6))
    with RunStore().begin(RunSpec(prompt="so")) as writer:
        for event in events[:6]:
            writer.add(event)
        going_on = RunStore().get(writer.run_id)
    page = opened(html_file(going_on, events[:6]))
    words = page.inner_text("body")
    assert "Still going on when this file was made" in words
    assert "Interrupted" not in words
    assert "Still going on" not in opened(html_file(going_on, events)).inner_text("body")  # it ended meanwhile
    assert page.said == []


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1300])
@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_the_file_fits_the_screen_in_both_themes(opened, width, scheme):
    spec = RunSpec(prompt="The draft", max_tokens=60, seed=3)
    events = list(build(spec).events())
    page = opened(html_file(saved(spec, events), events), color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    background = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert background == {"dark": "rgb(16, 22, 29)", "light": "rgb(255, 255, 255)"}[scheme]
    height = page.evaluate("() => document.documentElement.scrollHeight")
    page.wait_for_timeout(300)
    assert page.evaluate("() => document.documentElement.scrollHeight") == height


@pytest.mark.browser
@pytest.mark.parametrize(("target_seconds", "recording"), [(0.0, 1), (0.01, 0)])
def test_the_time_of_recording_is_told_where_it_was_measured(opened, target_seconds, recording):
    spec = RunSpec(prompt="The draft", max_tokens=20, seed=3, probe=4, target_call_seconds=target_seconds)
    events = list(build(spec).events())
    page = opened(html_file(saved(spec, events), events))
    page.locator(".stream .token.accepted").first.click()
    page.wait_for_selector(".explain .alternatives")
    assert page.get_by_text("Recording this took").count() == recording


@pytest.mark.browser
def test_what_the_naive_rule_tests_is_not_called_a_probability(opened):
    spec = RunSpec(prompt="The draft", max_tokens=20, seed=3, probe=4, rule="naive")
    events = list(build(spec).events())
    page = opened(html_file(saved(spec, events), events))
    page.locator(".stream .token").first.click()
    page.wait_for_selector(".explain .alternatives")
    heads = page.locator(".explain-positions th").all_inner_texts()
    assert "the rule's test" in [head.lower() for head in heads]


@pytest.mark.browser
def test_a_token_that_block_keeps_in_spite_of_its_own_test_says_so(opened):
    spec = RunSpec(
        prompt="The draft",
        max_tokens=120,
        seed=4,
        probe=4,
        rule="block",
        draft_length=6,
        temperature=1.0,
        agreement=-0.2,
    )
    events = list(build(spec).events())
    step, decision = next(
        (step, decision)
        for step in events if isinstance(step, Step)
        for decision in step.decisions
        if decision.outcome == "accepted" and decision.draw >= decision.accept_prob
    )  # fmt: skip
    page = opened(html_file(saved(spec, events), events))
    token = page.locator(f".stream .token.accepted[data-step='{step.index}'][data-position='{decision.position}']")
    token.hover()
    page.get_by_text("Kept for the sake of a token behind it").wait_for()
    token.click()
    row = page.locator(f".explain-positions tr[data-position='{decision.position}']")
    assert "≥" in row.locator(".draw-number").first.inner_text()
    assert row.locator(".draw-line").first.get_attribute("aria-label").endswith(": accepted")
    assert page.get_by_text("It fails, but a token behind it passes").count() == 1
    signs = {"<": 0, "≥": 0}
    for told in explain(step, rule="block")["positions"]:
        if told["draw"] is not None:
            shown = page.locator(f".explain-positions tr[data-position='{told['position']}'] .draw-number").first
            sign = "<" if told["draw"] < told["accept_prob"] else "≥"
            assert sign in shown.inner_text()
            signs[sign] += 1
    assert min(signs.values()) > 0


@pytest.mark.browser
def test_a_draw_and_the_threshold_that_it_just_missed_do_not_look_alike(opened):
    close = {"accept_prob": 0.52340012, "draw": 0.52340043}
    spec = RunSpec(prompt="The draft", max_tokens=20, seed=3, probe=4)
    events = [
        replace(event, decisions=(replace(event.decisions[0], **close), *event.decisions[1:]))
        if isinstance(event, Step) and event.decisions[0].outcome == "rejected" else event
        for event in build(spec).events()
    ]  # fmt: skip
    page = opened(html_file(saved(spec, events), events))
    page.locator(".stream .token.rejected[data-position='0']").first.click()
    assert page.locator(".draw-number").first.inner_text() == "0.5234004 ≥ 0.5234001"


@pytest.mark.browser
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("0.5", "0.5000"), ("0.99997", "0.99997"), ("0.9999996", "0.9999996"), ("1", "1.0000"), ("0", "0.0000"),
        ("0.00001", "1.0e-5"), ("null", "n/a"), ("0.52341, 0.52342", "0.52341"), ("0.5, 0.5", "0.5000"),
        ("0.0000123, 0.0000124", "1.23e-5"), ("1, 0.99999", "1.00000"),
    ],
)  # fmt: skip
def test_a_probability_has_the_digits_that_it_needs(page, given, words):
    page.add_script_tag(content=asset("words.js"))
    assert page.evaluate(f"probability({given})") == words


@pytest.mark.browser
def test_the_charts_of_a_plain_run_in_a_file_say_that_nothing_was_drafted(opened):
    spec = RunSpec(prompt="The draft model", drafter="none", max_tokens=20)
    events = list(build(spec).events())
    page = opened(html_file(saved(spec, events), events))
    page.wait_for_selector(".plot svg text")
    charts = [page.locator(".plot").nth(place).text_content() for place in range(4)]
    assert "tokens per second" in charts[0]
    assert charts[1:] == ["Nothing was drafted in this run."] * 3
    assert page.said == []


def test_the_scripts_of_the_file_share_one_scope_without_a_clash():
    script = "\n".join(map(asset, (*SCRIPTS, "svg_plots.js", "file.js")))
    names = re.findall(r"^(?:export default )?(?:async )?(?:function|class|const|let) (\w+)", script, re.MULTILINE)
    assert len(names) > 100
    assert sorted(names) == sorted(set(names))


def test_the_file_has_the_colours_of_the_page():
    theme = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text())["theme"]
    light, dark = (dict(re.findall(r"--st-([\w-]+): (#\w{6});", part)) for part in asset("file.css").split("@media"))
    for scheme, found in (("light", light), ("dark", dark)):
        assert found == {re.sub("([A-Z])", lambda up: f"-{up[1].lower()}", name): colour
                         for name, colour in theme[scheme].items()}  # fmt: skip


def test_the_data_holds_no_sign_that_html_reads():
    spec = RunSpec(prompt=HOSTILE)
    events = list(sample_events(3))
    text = html_file(saved(spec, events), events).decode()
    data = text.split('id="run">')[1].split("</script>")[0]
    assert not set("<>&\u2028\u2029") & set(data)
    assert data.isascii()
