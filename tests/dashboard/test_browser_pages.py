"""History, Compare, Lab and links in a real browser."""

from pathlib import Path

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg

from dashboard.settings_link import address_of
from engine import RunSpec, RunStore
from engine.failures import failures
from engine.lab.lossless import lossless
from engine.lab.small_pair import SmallPair
from tests.dashboard.browser import LIVE, kept, start, wait_for_state

pytestmark = pytest.mark.browser


SHADED = """() => [...document.querySelectorAll('[data-testid=stBidiComponentIsolated]')]
    .map((host) => host.shadowRoot?.querySelector('.shaded .text'))
    .find(Boolean)"""
LIVES = """() => [...document.querySelectorAll('[data-testid=stBidiComponentIsolated]')]
    .map((host) => host.shadowRoot?.querySelector('.live')).filter(Boolean)"""


def select_row(page, row):
    """The table is drawn on a canvas: a click where its box for that row is."""
    page.locator("[data-testid=stDataFrame] canvas").first.wait_for(timeout=120_000)
    page.wait_for_timeout(500)
    box = page.locator("[data-testid=stDataFrame]").first.bounding_box()
    page.mouse.click(box["x"] + 18, box["y"] + 52 + 35 * row)


def test_the_text_of_a_kept_run_is_shaded_as_the_engine_says(page, server):
    address, home = server
    store, [run_id, _] = kept(home)
    page.goto(f"{address}/history")
    select_row(page, 0)
    page.get_by_text("Where drafts fail").click(timeout=60_000)
    page.wait_for_function(f"({SHADED})()?.querySelectorAll('.token').length === 60", timeout=60_000)
    found = failures(store.events(run_id)).text
    spans = page.evaluate(f"""() => [...({SHADED})().querySelectorAll('.token')].map(
        (span) => [span.className, span.style.getPropertyValue('--refusal'), span.title])""")
    for (classes, refusal, title), token in zip(spans, found, strict=True):
        assert classes.split()[1] == token.outcome
        assert ("untested" in classes) == (token.accept_prob is None)
        if token.accept_prob is not None:
            assert float(refusal.rstrip("%")) == pytest.approx(100 * (1 - token.accept_prob), abs=0.051)
            assert ("was refused here" in title) == bool(token.refused)
    assert page.errors == []


def test_two_kept_runs_are_shown_side_by_side(page, server):
    address, home = server
    _, run_ids = kept(home)
    page.goto(f"{address}/history")
    select_row(page, 0)
    page.get_by_role("button", name="Delete 1").wait_for(timeout=60_000)
    select_row(page, 1)
    page.get_by_text("Settings that differ:").wait_for(timeout=60_000)
    page.wait_for_function(
        f"({LIVES})().filter((live) => live.dataset.state === 'finished').length === 2", timeout=60_000
    )
    assert page.evaluate(f"({LIVES})().map((live) => live.dataset.run)") == run_ids
    page.wait_for_function(
        f"({LIVES})().every((live) => live.querySelectorAll('.js-plotly-plot .main-svg').length >= 4)", timeout=60_000
    )
    assert "seed" in page.locator("p", has_text="Settings that differ:").inner_text()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 1300
    assert page.errors == []


def test_a_deleted_run_comes_back_by_undo(page, server):
    address, home = server
    store, [run_id, other] = kept(home)
    page.goto(f"{address}/history")
    select_row(page, 0)
    page.get_by_role("button", name="Delete 1").click(timeout=60_000)
    page.get_by_text("Deleted 1 run.").wait_for(timeout=60_000)
    assert store.runs()[0].id == other
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Deleted 1 run.").wait_for(state="hidden", timeout=60_000)
    assert store.runs()[0].id == run_id


def test_a_download_of_a_run_that_is_gone_says_so(page, server):
    address, home = server
    start(page, address, "max_tokens=20&seed=4")
    wait_for_state(page, "finished")
    button = page.get_by_role("button", name="Run as JSONL")
    with page.expect_download() as download:
        button.click()
    run_id = page.evaluate(f"() => {LIVE}.dataset.run")
    assert run_id in Path(download.value.path()).read_text()
    store = RunStore(home / "data" / "runs.sqlite")
    store.delete([run_id])
    button.click()
    page.get_by_text(f"Nothing was downloaded: {run_id} was deleted meanwhile.").wait_for(timeout=60_000)
    assert page.errors == []


def test_every_press_of_an_export_button_brings_a_file_and_runs_no_script(page, server):
    """Streamlit empties the queue in which the file waits when the script begins, so a press must not do both."""
    address, _ = server
    sent = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(BackMsg.FromString(frame))))
    start(page, address, "max_tokens=20&seed=4")
    wait_for_state(page, "finished")
    page.get_by_role("button", name="Tokens as CSV").wait_for()
    page.wait_for_selector("[data-test-script-state=notRunning]")
    sent.clear()
    for name in ("Steps as CSV", "Tokens as CSV", "Run as JSONL", "Replay as HTML", "Steps as CSV"):
        with page.expect_download():
            page.get_by_role("button", name=name).click()
    asked = [message for message in sent if not message.rerun_script.fragment_id]
    assert [message.WhichOneof("type") for message in asked] == ["backend_operation_request"] * 5


LANES = LIVE.replace(".live", ".lanes")


def test_a_comparison_fills_its_lanes_and_ends_in_a_verdict(page, server):
    address, _ = server
    page.goto(f"{address}/compare?temperature=0.0&max_tokens=40&agreement=1.0&target_ms=20&draft_ms=2")
    page.get_by_role("button", name="Compare", exact=True).click()
    page.wait_for_function(f"() => {LANES}?.dataset.state === 'finished'", timeout=60_000)
    assert page.evaluate(f"() => [...{LANES}.querySelectorAll('.lane')].map((lane) => lane.dataset.lane)") == [
        "plain", "model 4", "ngram 4",
    ]  # fmt: skip
    tokens = f"""() => [...{LANES}.querySelectorAll('.lane')].map((lane) => [...lane.querySelectorAll('.token')]
        .filter(({{dataset}}) => !['rejected', 'unreached'].includes(dataset.outcome) && dataset.discarded === '0')
        .map((token) => Number(token.dataset.token)))"""
    plain, *others = page.evaluate(tokens)
    assert len(plain) == 40
    assert others == [plain, plain]
    page.get_by_text("model 4 helps: ").wait_for()
    page.get_by_text("the same text: all ids are equal").first.wait_for()
    assert page.errors == []


def test_an_open_page_is_told_of_a_run_elsewhere_that_disturbs_it(browser, page, server):
    address, _ = server
    page.goto(f"{address}/compare?target=markov")
    page.get_by_role("button", name="Compare", exact=True).wait_for()
    warning = page.get_by_text("A run is under way on this server")
    assert not warning.count()
    other = browser.new_page()
    start(other, address, "target=markov&max_tokens=20000&paced=true&pace=20")
    warning.wait_for(timeout=60_000)
    other.get_by_role("button", name="Stop", exact=True).click()
    warning.wait_for(state="detached", timeout=60_000)
    other.close()
    assert page.errors == []


def test_the_settings_of_a_link_go_along_to_compare_and_back(page, server):
    address, _ = server
    page.goto(address + address_of(RunSpec(prompt="Hello there", draft_length=7, temperature=0.0)))
    for name in ("Compare", "Decode"):
        page.get_by_role("button", name="Run" if name == "Compare" else "Compare", exact=True).wait_for()
        page.get_by_role("link", name=name).click()
    page.get_by_role("button", name="Run", exact=True).wait_for()
    page.wait_for_function("() => document.querySelector('textarea')?.value === 'Hello there'")
    assert draft_length(page) == "7"
    assert page.errors == []


def draft_length(page):
    name, other, value, *_ = page.locator("[data-testid=stSlider]", has_text="Draft length").inner_text().split()
    assert (name, other) == ("Draft", "length")
    return value


@pytest.mark.parametrize("where", ["", "compare"])
def test_a_reload_keeps_the_settings_of_a_link(page, server, where):
    address, _ = server
    page.goto(address + address_of(RunSpec(prompt="Hello there", draft_length=7, temperature=0.0)))
    page.wait_for_function("() => document.querySelector('textarea')?.value === 'Hello there'")
    if where:
        page.get_by_role("link", name="Compare").click()
        page.get_by_role("button", name="Compare", exact=True).wait_for()
    page.reload()
    page.wait_for_function("() => document.querySelector('textarea')?.value === 'Hello there'")
    assert draft_length(page) == "7"
    page.locator("textarea").first.fill("Something else")
    page.get_by_text("Max tokens", exact=True).click()  # leaves the field
    page.wait_for_timeout(1000)
    page.reload()
    page.wait_for_function("() => document.querySelector('textarea')?.value === 'Something else'")
    assert page.errors == []


LAWS = "document.querySelector('[data-testid=stBidiComponentIsolated]')?.shadowRoot?.querySelector('.laws')"


def shown_laws(page):
    """The probabilities of target and draft as they stand, and of what comes out."""
    return page.evaluate(f"""() => [...{LAWS}.querySelectorAll('.law-panel')].map((panel) =>
        [...panel.querySelectorAll('.law-value')].map((value) => Number(value.textContent)))""")


def laws_settled(page):
    page.wait_for_function(f"() => !{LAWS}.classList.contains('stale')", timeout=60_000)


def test_bars_are_dragged_and_what_comes_out_is_the_engines(page, server):
    address, _ = server
    page.goto(f"{address}/lab")
    page.wait_for_function(f"() => {LAWS}?.dataset.same === 'true'", timeout=60_000)
    page.evaluate(f"() => {{ globalThis.mountedLaws = {LAWS}; }}")
    page.get_by_role("combobox", name="Worked case").click()
    page.get_by_text("Bug: softmax of an argmax draft").click()
    page.wait_for_function(f"() => {LAWS}?.dataset.same === 'false'", timeout=60_000)
    track = page.get_by_role("slider", name="draft probability of c")
    box = track.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 0.9 * box["height"])
    page.mouse.down()
    for place in range(1, 7):
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + (0.9 - 0.1 * place) * box["height"])
    page.mouse.up()
    laws_settled(page)
    for key in ("PageDown", "ArrowUp", "ArrowUp"):
        page.keyboard.press(key)  # the bar that was dragged has the focus
    laws_settled(page)
    target, draft, output = shown_laws(page)
    assert target == [0.5, 0.3, 0.2]
    assert draft[2] == pytest.approx(0.62, abs=0.015)
    assert draft[0] == pytest.approx(2 * draft[1], abs=0.002)  # as they were to each other
    assert sum(draft) == pytest.approx(1, abs=0.002)
    found = lossless(RunSpec(), SmallPair(tuple(target), tuple(draft)), proposal="argmax, softmax handed over")
    assert output == pytest.approx(found.step.beginning(1)[0].tolist(), abs=0.002)
    shown = page.evaluate(f"() => {LAWS}.querySelector('[data-figure=distance_first] dd').textContent")
    assert float(shown) == pytest.approx(found.step.distance(1), abs=0.002)
    assert page.evaluate(f"() => globalThis.mountedLaws === {LAWS}")  # never mounted anew
    assert page.errors == []
