"""Measure the page in a real browser: `python tools/measure_page [--tokens 2000 20000] [--runs 30]`.

1. At 100 tokens a second: the time from an event in the engine's thread to the second animation frame
   after it is in the page (an upper bound for the paint), and the bytes of the answers that carry new
   entries, for runs of different length.
2. The server's memory after each of many runs.

Needs the extra `test` (playwright) and a Chromium at /usr/bin/chromium; reads Linux's /proc.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, median, quantiles
from urllib.parse import urlencode
from urllib.request import urlopen

from playwright.sync_api import Page, Response, sync_playwright

HERE = Path(__file__).parent
BROWSER = "/usr/bin/chromium"
BROWSER_OPTIONS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
SETTLE_MS = 3000  # a reader looks at the page before pressing Run; plotly.js is read meanwhile
PROBE = """
globalThis.seen = [];
globalThis.__draftscopeProbe = (shown) =>
  requestAnimationFrame(() => requestAnimationFrame(() => globalThis.seen.push([shown, Date.now() / 1000])));
"""
FINISHED = (
    "() => document.querySelector('[data-testid=stBidiComponentIsolated]')?.shadowRoot"
    "?.querySelector('.live')?.dataset.state === 'finished'"
)


def main() -> None:
    """Run all measurements and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, nargs="+", default=[2000, 20000])
    parser.add_argument("--rate", type=int, default=100, help="tokens a second")
    parser.add_argument("--runs", type=int, default=30)
    arguments = parser.parse_args()
    with _server() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=BROWSER_OPTIONS)
        for n_tokens in arguments.tokens:
            page = browser.new_page(viewport={"width": 1400, "height": 1000})
            page.add_init_script(PROBE)
            _measure_latency(page, address, n_tokens, arguments.rate)
            page.close()
        page = browser.new_page()
        _measure_memory(page, address, arguments.runs)
        browser.close()


@contextmanager
def _server() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", "streamlit", "run", str(HERE / "app.py"), "--server.port", str(port)]
        process = subprocess.Popen(
            command, cwd=HERE.parents[1], env={**os.environ, "DRAFTSCOPE_HOME": home}, stdout=subprocess.DEVNULL
        )
        address = f"http://127.0.0.1:{port}"
        try:
            _wait_until_up(address)
            yield address
        finally:
            process.terminate()
            process.wait()


def _wait_until_up(address: str) -> None:
    for _ in range(150):
        try:
            urlopen(f"{address}/_stcore/health").close()
            return
        except OSError:
            time.sleep(0.2)
    raise SystemExit("the server did not come up within 30 s")


def _run(page: Page, address: str, **settings: object) -> str:
    """Start a run by its settings, wait for its end, return its id."""
    page.goto(f"{address}/?{urlencode(settings)}")
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(SETTLE_MS)
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_function("() => new URLSearchParams(location.search).get('run')")
    page.wait_for_function(FINISHED, timeout=600_000)
    return str(page.evaluate("() => new URLSearchParams(location.search).get('run')"))


def _measure_latency(page: Page, address: str, n_tokens: int, rate: int) -> None:
    sizes: list[int] = []

    def note(response: Response) -> None:
        if "/events?" in response.url and response.ok:
            answer = response.json()
            if answer["entries"]:
                sizes.append(len(response.body()))

    page.on("response", note)
    greedy = {"temperature": 0}  # at which the pair never draws an end token
    run_id = _run(
        page, address, target="markov", drafter_embedded="none", **greedy, paced="true", max_tokens=n_tokens, pace=rate
    )
    page.wait_for_timeout(500)
    times = page.request.get(f"{address}/measure/times/{run_id}").json()
    latencies: list[float] = []
    for shown, at in page.evaluate("() => globalThis.seen"):
        latencies.extend(1000 * (at - then) for then in times[len(latencies) : shown])
    cuts = quantiles(latencies, n=100)
    tail = sizes[-len(sizes) // 4 :]
    print(
        f"{n_tokens} tokens at {rate}/s: event to pixels p50 {cuts[49]:.0f} ms, p95 {cuts[94]:.0f} ms, "
        f"max {max(latencies):.0f} ms ({len(latencies)} of {len(times)} entries seen); "
        f"bytes per update in the last quarter: median {median(tail):.0f}, mean {mean(tail):.0f}",
        flush=True,
    )


def _measure_memory(page: Page, address: str, n_runs: int) -> None:
    sizes = []
    for seed in range(n_runs):
        _run(page, address, target="markov", max_tokens=1000, seed=seed)
        sizes.append(page.request.get(f"{address}/measure/memory").json() / 1e6)
    print(f"memory of the server after each of {n_runs} runs of 1000 tokens, MB:")
    print(" ".join(f"{size:.0f}" for size in sizes))


if __name__ == "__main__":
    main()
