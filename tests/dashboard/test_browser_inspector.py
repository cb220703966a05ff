"""The inspector in a real browser: the panel beside the tokens."""

import pytest

from engine import RunStore, Step
from engine.explain import explain
from tests.dashboard.browser import LIVE, PANEL, TOKENS, explained, start, wait_for_state

pytestmark = pytest.mark.browser


def test_a_token_that_is_clicked_is_explained(page, server):
    address, home = server
    start(page, address, "max_tokens=60&seed=4")
    wait_for_state(page, "finished")
    events = RunStore(home / "data" / "runs.sqlite").events(page.evaluate(f"() => {LIVE}.dataset.run"))
    steps = [event for event in events if isinstance(event, Step)]
    step = next(step for step in steps if [d.outcome for d in step.decisions[:2]] == ["accepted", "rejected"])
    token = page.locator(f".stream .token.rejected[data-step='{step.index}']")
    token.click()
    told = explain(step)
    words = explained(page, step.index, 1)
    for position in told["positions"][:2]:
        assert position["formula"] in words
    assert told["positions"][1]["words"] in words
    for sentence in told["choice"]["words"]:
        assert sentence in words
    rows = page.locator(".explain .alternative-name[data-token]")
    assert [int(row.get_attribute("data-token")) for row in rows.all()] == [
        row["token"] for row in told["choice"]["alternatives"]
    ]
    widths = page.evaluate(
        f"() => [...{PANEL}.querySelectorAll('.law-bar[data-law=target]')].map((bar) => parseFloat(bar.style.width))"
    )
    probs = [row["target_prob"] for row in told["choice"]["alternatives"]]
    assert [width / widths[0] for width in widths[: len(probs)]] == pytest.approx(
        [prob / probs[0] for prob in probs], abs=1e-4
    )
    token.click()  # again: closes
    assert page.evaluate(f"() => {PANEL}.hidden")
    assert page.errors == []


@pytest.mark.parametrize("width", [1000, 1300])
def test_a_double_click_is_about_the_token_that_was_pointed_at_though_the_panel_moves_the_text(page, server, width):
    address, _ = server
    page.set_viewport_size({"width": width, "height": 1000})
    start(page, address, "max_tokens=200&seed=4")
    wait_for_state(page, "finished")
    tokens = page.locator(".stream .token")
    for number in (31, 31, 80):  # the panel is closed, is open there, is open elsewhere
        one_line = (tokens.nth(place) for place in range(number, number + 9))  # the middle of others is in no line
        token = next(token for token in one_line if token.evaluate("token => token.getClientRects().length") == 1)
        step, position = (int(token.get_attribute(f"data-{name}")) for name in ("step", "position"))
        token.dblclick()
        page.wait_for_function(f"() => {LIVE}.dataset.state === 'replay' && Number({LIVE}.dataset.step) === {step + 1}")
        explained(page, step, position)
        page.get_by_role("button", name="To the end").click()
        wait_for_state(page, "finished")
    assert page.errors == []


def test_arrow_keys_go_from_token_to_token_and_from_step_to_step(page, server):
    address, _ = server
    start(page, address, "max_tokens=30&seed=4")
    wait_for_state(page, "finished")
    page.locator(".stream .token[data-step='1'][data-position='0']").first.click()
    explained(page, 1, 0)
    page.keyboard.press("ArrowDown")
    explained(page, 2, 0)
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    explained(page, 0, 0)
    tokens = page.evaluate(TOKENS)
    page.keyboard.press("ArrowRight")
    step, position, outcome, _ = tokens[1]
    assert outcome in explained(page, step, position)
    assert outcome in page.evaluate(f"() => {LIVE}.querySelector('.spoken').textContent")
    page.get_by_role("button", name="Next step").focus()
    page.keyboard.press("Enter")  # a button that was pressed keeps the focus
    explained(page, step + 1, 0)
    page.keyboard.press("Enter")
    explained(page, step + 2, 0)
    page.keyboard.press("Escape")
    assert page.evaluate(f"() => {PANEL}.hidden")
    page.keyboard.press("ArrowRight")  # the focus went back to the stream
    page.wait_for_function(f"() => !{PANEL}.hidden && {PANEL}.querySelector('.explain-lead')")


def test_log_probabilities_are_told_with_the_tokens_and_the_figures(page, server):
    address, home = server
    settings = {"repetition_penalty": 1.2, "presence_penalty": 0.5, "min_p": 0.05, "logprobs": "true"}
    start(page, address, "&".join(["max_tokens=30", *(f"{name}={value}" for name, value in settings.items())]))
    wait_for_state(page, "finished")
    run = RunStore(home / "data" / "runs.sqlite").get(page.evaluate(f"() => {LIVE}.dataset.run"))
    assert {name: str(getattr(run.spec, name)).lower() for name in settings} == {
        name: str(value) for name, value in settings.items()
    }
    perplexity = page.evaluate(f"() => {LIVE}.querySelector('.perplexity').textContent")
    assert float(perplexity.removeprefix("perplexity ")) == pytest.approx(run.record["perplexity"], rel=0.01)
    page.locator(".stream .token.recovered").first.click()
    page.wait_for_function(f"() => {PANEL}.querySelector('.explain-lead')?.textContent.includes('log-probability')")
    assert page.errors == []


def test_a_run_without_a_probe_says_that_alternatives_were_not_recorded(page, server):
    address, _ = server
    start(page, address, "max_tokens=20&seed=4&explain=false")
    wait_for_state(page, "finished")
    page.locator(".stream .token.accepted").first.click()
    page.wait_for_function(f"() => {PANEL}.querySelector('.explain-none')")
    words = page.evaluate(f"() => {PANEL}.innerText")
    assert "were not recorded" in words
    assert "min(1, " in words


@pytest.mark.parametrize("width", [390, 1000, 1800])
def test_the_panel_is_not_wider_than_its_place(page, server, width):
    address, _ = server
    page.set_viewport_size({"width": width, "height": 900})
    start(page, address, "max_tokens=20&seed=4&rule=naive")
    wait_for_state(page, "finished")
    page.locator(".stream .token.accepted").first.click()
    page.wait_for_function(f"() => {PANEL}.querySelector('.alternatives')")
    assert page.evaluate(f"() => {PANEL}.scrollWidth - {PANEL}.clientWidth") <= 0
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
