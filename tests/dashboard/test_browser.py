"""The page in a real browser: what is coloured must be what the engine said."""

from urllib.request import urlopen

import pytest

from dashboard.components.live import SCRIPTS, asset
from dashboard.event_log import EventLog
from engine import RunSpec, RunStore, Step, build
from engine.models.backends import can_run
from tests.dashboard.browser import LIVE, TOKENS, kept, served, start, tokens_of, wait_for_state
from tests.engine.models.tiny_files import Tiny
from tests.engine.models.tiny_files import write as write_model

pytestmark = pytest.mark.browser


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
    places = [".state-words", ".waiting-words"]
    words = page.evaluate(f"(places) => places.map((name) => {LIVE}.querySelector(name).textContent)", places)
    assert words == ["Loading the run", "Loading the run …"]


@pytest.mark.parametrize(("total", "words"), [(42, "Compiling: 17 of 42"), (0, "Compiling …")])
def test_while_a_model_is_loaded_the_page_says_what_is_done_and_how_far_it_is(page, server, total, words):
    address, home = server
    log = EventLog()
    log.load("compiling", 17, total)
    _, [run_id, _] = kept(home)
    page.route("**/draftscope/runs/*/events*", lambda route: route.fulfill(body=log.since(0)))
    page.goto(f"{address}/history?run={run_id}")
    wait_for_state(page, "starting")
    found = page.evaluate(f"""() => {{
        const names = ['.waiting-words', '.waiting-progress', '.progress'];
        const [text, bar, clock] = names.map((name) => {LIVE}.querySelector(name));
        return [text.textContent, bar.checkVisibility() && [bar.value, bar.max], clock.textContent]; }}""")
    assert found == [words, [17, 42] if total else False, ""]


def test_no_figure_or_button_stands_alone_in_a_second_row(page, server):
    address, _ = server
    page.set_viewport_size({"width": 1400, "height": 1000})
    start(page, address, "max_tokens=400&seed=4")
    wait_for_state(page, "finished")
    for parts in (".shares h3, .shares li, .shares .probe, .shares .prefill", ".player *[class]"):
        rows = page.evaluate(f"""() => {{
            const boxes = [...{LIVE}.querySelectorAll('{parts}')].map((part) => part.getBoundingClientRect());
            const middles = boxes.filter((box) => box.height).map((box) => (box.top + box.bottom) / 2);
            return [middles.length, Math.max(...middles) - Math.min(...middles)]; }}""")
        assert rows[0] > 4
        assert rows[1] <= 3, parts


def test_the_bar_of_the_decoding_time_is_as_wide_as_the_view_whatever_its_figures(page, server):
    address, _ = server
    start(page, address, "max_tokens=40&seed=4")
    wait_for_state(page, "finished")
    widths = page.evaluate(f"() => ['.share-bar', '.board'].map((name) => {LIVE}.querySelector(name).clientWidth)")
    assert widths[0] == widths[1] > 600


CHARTS = f"() => [...{LIVE}.querySelectorAll('.plot')].map((plot) => plot.textContent)"
DRAWN = f"() => [...{LIVE}.querySelectorAll('.plot')].every((plot) => plot.textContent)"


def test_a_chart_without_data_says_what_it_will_show(page, server):
    address, _ = server
    page.route("**/draftscope/runs/*/events*", lambda route: None)  # no answer comes
    start(page, address, "max_tokens=20&seed=4")
    page.wait_for_function(DRAWN)
    throughput, *others = page.evaluate(CHARTS)
    assert throughput == "Once tokens arrive:how many of them in a second"
    assert [words.startswith("Once something is drafted:") for words in others] == [True, True, True]


def test_a_plain_run_is_told_calmly_and_its_charts_of_drafts_have_no_axes(page, server):
    address, _ = server
    start(page, address, "max_tokens=40&seed=4&drafter_embedded=none")
    wait_for_state(page, "finished")
    page.wait_for_function(DRAWN)
    throughput, *others = page.evaluate(CHARTS)
    assert "tokens per second" in throughput
    assert others == ["Nothing was drafted in this run."] * 3
    speculation = page.locator(".speculation")
    assert speculation.inner_text() == "Plain decoding: no drafter chosen"
    assert "inactive" not in speculation.get_attribute("class")


@pytest.mark.parametrize(("text", "slight"), [(",", True), (" .", True), ("...", True), (" a", False), ("a.", False)])
def test_a_small_sign_that_was_refused_is_not_hidden_by_its_strike(page, text, slight):
    page.set_content(asset("live.html"))
    page.add_style_tag(content=asset("live.css"))
    page.add_script_tag(content="\n".join(map(asset, SCRIPTS)).replace("export default ", ""))
    lines = page.evaluate(f"""() => {{
        const token = tokenSpan(0, 0, {{outcome: 'rejected', id: 1, text: {text!r}, emitted: false}});
        document.querySelector('.stream').append(token);
        const {{textDecorationLine, backgroundImage}} = getComputedStyle(token);
        return [textDecorationLine, backgroundImage !== 'none']; }}""")
    assert lines == (["none", True] if slight else ["line-through", False])


def test_a_bad_target_ends_in_a_clear_box(page, server):
    address, _ = server
    start(page, address, "target=missing.gguf")
    wait_for_state(page, "finished")
    assert "missing.gguf" in page.locator("[data-testid=stBidiComponentIsolated]").get_by_role("alert").inner_text()


@pytest.mark.skipif(not can_run("numba"), reason="numba does not run here")
def test_why_another_backend_runs_the_model_is_told_while_it_runs(page, tmp_path, monkeypatch):
    model = write_model(tmp_path / "tiny.gguf", Tiny(head_dim=16, n_rope_dims=16, context_length=1000))
    (tmp_path / "file").write_text("no folder to keep code in")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    with served(tmp_path / "home") as address:
        start(page, address, f"target={model}&drafter=none&max_tokens=500&paced=true&pace=1&seed=4")
        box = page.get_by_role("alert").filter(has_text="runs tiny: the backend numba cannot keep its compiled code")
        box.wait_for(timeout=60_000)
        assert page.evaluate(f"() => {LIVE}.dataset.state") == "running"
        page.get_by_role("button", name="Stop", exact=True).click()
        wait_for_state(page, "finished")
        box.wait_for()
        assert box.count() == 1


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
