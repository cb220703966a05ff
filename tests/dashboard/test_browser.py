"""The page in a real browser: what is coloured must be what the engine said."""

import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from dashboard.settings_link import address_of
from engine import RunSpec, RunStore, Step, build
from engine.explain import explain
from engine.failures import failures
from engine.lab.lossless import lossless
from engine.lab.small_pair import SmallPair

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LIVE = "document.querySelector('[data-testid=stBidiComponentIsolated]')?.shadowRoot?.querySelector('.live')"
TOKENS = f"""() => [...{LIVE}.querySelectorAll('.stream .token')].map((token) => [
    Number(token.dataset.step), Number(token.dataset.position), token.dataset.outcome, Number(token.dataset.token)])"""


@pytest.fixture(scope="module")
def browser():
    if BROWSER is None and not os.environ.get("CI"):
        pytest.skip("no Chromium here; on Debian: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=OPTIONS)
        yield browser
        browser.close()


@contextmanager
def served(home, base=""):
    """The address of a server of its own."""
    options = ["--server.baseUrlPath", base] if base else []
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "dashboard/app.py", "--server.port", str(port), *options],
        cwd=ROOT,
        env={**os.environ, "DRAFTSCOPE_HOME": str(home)},
        stdout=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}" + (f"/{base}" if base else "")
    try:
        for _ in range(150):
            try:
                urlopen(f"{address}/_stcore/health").close()
                break
            except OSError:
                time.sleep(0.2)
        yield address
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("served")
    with served(home) as address:
        yield address, home


@pytest.fixture
def page(browser):
    page = browser.new_page(viewport={"width": 1300, "height": 1000})
    page.errors = []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    yield page
    page.close()


def start(page, address, query=""):
    page.goto(f"{address}/?{query}")
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_function(f"() => {LIVE}?.dataset.run")


def wait_for_state(page, state):
    page.wait_for_function(f"() => {LIVE}?.dataset.state === '{state}'", timeout=60_000)


def tokens_of(events):
    """What the stream has to show: step, position, outcome, id; a replacement stands behind all that was refused."""
    for event in events:
        if isinstance(event, Step):
            recovered = []
            for decision in event.decisions:
                drafted = decision.outcome in ("rejected", "declined", "unreached")
                token = decision.draft_token if drafted else decision.target_token
                yield [event.index, decision.position, decision.outcome, token]
                if decision.outcome == "rejected":
                    recovered.append([event.index, decision.position, "recovered", decision.target_token])
            yield from recovered


def test_the_coloured_tokens_are_the_engines_events(page, server):
    address, home = server
    start(page, address, "max_tokens=120&seed=4")
    wait_for_state(page, "finished")
    run_id = page.evaluate(f"() => {LIVE}.dataset.run")
    shown = page.evaluate(TOKENS)
    assert shown == list(tokens_of(RunStore(home / "data" / "runs.sqlite").events(run_id)))
    assert shown == list(tokens_of(build(RunSpec(prompt="The draft model", max_tokens=120, seed=4)).events()))
    assert {outcome for _, _, outcome, _ in shown} >= {"accepted", "rejected", "unreached", "recovered", "bonus"}
    assert page.errors == []


def test_a_tree_is_shown_as_columns_of_siblings(page, server):
    address, _ = server
    start(page, address, "max_tokens=60&seed=4&rule=tree-match&tree_width=3&temperature=0.7")
    wait_for_state(page, "finished")
    spec = RunSpec(prompt="The draft model", max_tokens=60, seed=4, rule="tree-match", tree_width=3)
    steps = [event for event in build(spec).events() if isinstance(event, Step)]
    shown = sorted(page.evaluate(TOKENS))
    assert shown == sorted(list(token) for token in tokens_of(steps))
    assert {outcome for _, _, outcome, _ in shown} >= {"accepted", "declined", "rejected", "unreached", "recovered"}
    # what can be read along the top is the text, in its order; what hangs below is none of it
    read = page.evaluate(
        f"() => [...{LIVE}.querySelectorAll('.stream .token')]"
        ".filter(({dataset}) => !['rejected', 'declined', 'unreached'].includes(dataset.outcome))"
        ".map(({dataset}) => Number(dataset.token))"
    )
    assert read == [token for step in steps for token in step.emitted]
    page.locator(".stream .token.declined").first.click()
    page.wait_for_selector(".explain-positions.of-a-tree")
    chosen = page.locator(".explain-positions tr.chosen")
    assert chosen.get_attribute("data-outcome") == "declined"
    assert "declined" in chosen.inner_text()
    page.locator(".fork-more").first.click()
    assert page.locator(".stream .step.open .aside").first.is_visible()
    page.get_by_label("Show rejected").uncheck()
    assert not page.locator(".stream .token.declined").first.is_visible()
    assert page.errors == []


def test_a_tree_puts_no_line_break_into_the_text(page, server):
    """Chunks of the stream begin on a new line; one ends where the text breaks, however many guesses there are."""
    address, _ = server
    start(page, address, "max_tokens=150&seed=4&rule=tree-match&tree_width=8&tree_nodes=32&temperature=1.0")
    wait_for_state(page, "finished")
    chunks = page.evaluate(f"""() => [...{LIVE}.querySelectorAll('.stream .chunk')].map((chunk) => ({{
        guesses: chunk.querySelectorAll('.token').length,
        last: [...chunk.querySelectorAll('.token:is([data-outcome=accepted], [data-outcome=recovered], '
            + '[data-outcome=bonus], [data-outcome=plain])')].at(-1).textContent}}))""")
    assert sum(chunk["guesses"] for chunk in chunks) > 1000
    assert all(chunk["last"].endswith("\n") for chunk in chunks[:-1])


def test_the_figures_on_the_page_are_the_engines(page, server):
    address, home = server
    start(page, address, "max_tokens=50&seed=9")
    wait_for_state(page, "finished")
    record = RunStore(home / "data" / "runs.sqlite").get(page.evaluate(f"() => {LIVE}.dataset.run")).record
    words = page.evaluate(f"() => {LIVE}.textContent")
    assert f"{record['tokens_per_step']:.2f}" in words
    assert f"{100 * record['acceptance_rate']:.1f}%" in words
    assert f"{100 * record['per_token_acceptance']:.1f}%" in words


def test_four_charts_are_drawn_and_never_remounted(page, server):
    address, _ = server
    start(page, address, "max_tokens=400&paced=true&pace=60")
    page.wait_for_function(f"() => {LIVE}.querySelectorAll('.js-plotly-plot').length === 4", timeout=30_000)
    page.evaluate(f"() => {{ globalThis.charts = [...{LIVE}.querySelectorAll('.js-plotly-plot')]; }}")
    wait_for_state(page, "finished")
    same = f"() => [...{LIVE}.querySelectorAll('.js-plotly-plot')].every((chart, i) => chart === globalThis.charts[i])"
    assert page.evaluate(same)


def test_a_run_survives_a_refresh_and_stops_when_told(page, server):
    address, _ = server
    start(page, address, "max_tokens=20000&paced=true&pace=20")
    page.wait_for_function(f"() => {LIVE}.querySelectorAll('.token').length > 20")
    run_id = page.evaluate(f"() => {LIVE}.dataset.run")
    page.reload()
    page.wait_for_function(f"() => {LIVE}?.dataset.run === '{run_id}' && {LIVE}.querySelectorAll('.token').length > 20")
    page.get_by_role("button", name="Stop", exact=True).click()
    wait_for_state(page, "finished")
    assert "Stop" in page.inner_text("body")


def test_a_reload_in_the_middle_of_a_run_never_says_that_nothing_is_running(page, server):
    address, _ = server
    start(page, address, "max_tokens=400&paced=true&pace=2")
    wait_for_state(page, "running")
    page.add_init_script(f"""globalThis.seen = new Set(); const look = () => {{
        const live = {LIVE};
        if (live) seen.add([live.dataset.state, live.querySelector('.invitation').checkVisibility()].join());
        requestAnimationFrame(look); }}; look();""")
    page.reload()
    wait_for_state(page, "running")
    seen = page.evaluate("() => [...seen]")
    page.get_by_role("button", name="Stop", exact=True).click()
    wait_for_state(page, "finished")
    assert "running,false" in seen
    assert [state for state in seen if state.startswith("idle") or state.endswith("true")] == []


def test_a_kept_run_loads_as_a_run_and_not_as_a_model(page, server):
    address, home = server
    _, [run_id, _] = kept(home)
    page.route("**/draftscope/runs/*/events*", lambda route: None)  # no answer comes
    page.goto(f"{address}/history?run={run_id}")
    wait_for_state(page, "loading")
    words = page.evaluate(f"() => ['.state-words', '.waiting'].map((name) => {LIVE}.querySelector(name).textContent)")
    assert words == ["Loading the run", "Loading the run …"]


def test_no_figure_or_button_stands_alone_in_a_second_row(page, server):
    address, _ = server
    page.set_viewport_size({"width": 1400, "height": 1000})
    start(page, address, "max_tokens=400&seed=4")
    wait_for_state(page, "finished")
    for bar, parts in ((".shares", ".shares li, .shares .probe, .shares .prefill"), (".player", ".player *[class]")):
        rows = page.evaluate(f"""() => {{
            const {{top, bottom}} = {LIVE}.querySelector('{bar}').getBoundingClientRect();
            const boxes = [...{LIVE}.querySelectorAll('{parts}')].map((part) => part.getBoundingClientRect());
            return boxes.filter((box) => box.height && Math.abs(box.top + box.bottom - top - bottom) > 6).length; }}""")
        assert rows == 0, bar


def test_a_bad_target_ends_in_a_clear_box(page, server):
    address, _ = server
    start(page, address, "target=missing.gguf")
    wait_for_state(page, "finished")
    assert "missing.gguf" in page.locator("[data-testid=stBidiComponentIsolated]").get_by_role("alert").inner_text()


@pytest.mark.parametrize("width", [390, 1300])
def test_nothing_is_wider_than_the_screen(page, server, width):
    address, _ = server
    page.set_viewport_size({"width": width, "height": 900})
    start(page, address, "max_tokens=60")
    wait_for_state(page, "finished")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width


def test_the_page_works_behind_a_base_path(page, tmp_path):
    with served(tmp_path, "tools") as address:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        start(page, address, "max_tokens=20&seed=4")
        wait_for_state(page, "finished")
        page.wait_for_function(f"() => {LIVE}.querySelectorAll('.js-plotly-plot').length === 4", timeout=60_000)
        page.get_by_role("button", name="One step back").click()
        page.wait_for_function(f"() => {LIVE}.dataset.state === 'replay' && !{LIVE}.matches('.awaits-figures')")
        page.get_by_role("button", name="Copy a link to this step").click()
        page.wait_for_function(f"() => {LIVE}.querySelector('.player-words').textContent === 'link copied'")
        run_id = page.evaluate(f"() => {LIVE}.dataset.run")
        assert page.evaluate("() => navigator.clipboard.readText()").startswith(f"{address}/history?run={run_id}&step=")
        assert b"draftscope:runs_total" in urlopen(f"{address}/metrics").read()
    assert page.errors == []


PANEL = f"{LIVE}?.querySelector('.explain')"


def explained(page, step, position):
    page.wait_for_function(f"() => {PANEL}.dataset.step === '{step}' && {PANEL}.dataset.position === '{position}'")
    return page.evaluate(f"() => {PANEL}.innerText")


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


SHADED = """() => [...document.querySelectorAll('[data-testid=stBidiComponentIsolated]')]
    .map((host) => host.shadowRoot?.querySelector('.shaded .text'))
    .find(Boolean)"""
LIVES = """() => [...document.querySelectorAll('[data-testid=stBidiComponentIsolated]')]
    .map((host) => host.shadowRoot?.querySelector('.live')).filter(Boolean)"""


def kept(home, **settings):
    """Two runs in the history, and their ids, the newest first."""
    store = RunStore(home / "data" / "runs.sqlite")
    for seed in (11, 12):
        spec = RunSpec(**{"prompt": "The draft model", "max_tokens": 60, "seed": seed} | settings)
        with store.begin(spec) as writer:
            for event in build(spec).events():
                writer.add(event)
    return store, [run.id for run in store.runs()[:2]]


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
