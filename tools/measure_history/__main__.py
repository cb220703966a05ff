"""Measure the history: `python -m tools.measure_history [--runs 1000] [--tokens 300] [--long 5000] [--page]`.

Fills a run store in a temporary folder with many runs and a long one, then measures, in processor and in
wall-clock seconds: listing them, reading the long one, and what the page does with it. `--page` measures the
same in a real browser: from the address to the table (which loads the whole page), from a click on History in
the page to the table, and from a click on a run to all of it shown. That needs the extra `test` (playwright)
and a Chromium at /usr/bin/chromium.
"""

from __future__ import annotations

import argparse
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path
from urllib.request import urlopen

from dashboard.event_log import EventLog
from dashboard.frames import runs_frame
from engine import RunSpec, RunStore, build, measure
from engine.failures import failures

REPEATS = 5
ROOT = Path(__file__).parents[2]
LIVE = "document.querySelector('[data-testid=stBidiComponentIsolated]')?.shadowRoot?.querySelector('.live')"
COPY = """
    INSERT INTO runs (id, created_at, state, spec, versions, started, finished, record)
    SELECT id || '-' || ?2, created_at, state, spec, versions, started, finished, record FROM runs WHERE id = ?1
"""
COPY_STEPS = """
    INSERT INTO steps (run, step, event) SELECT last_insert_rowid(), step, event FROM steps
    WHERE run = (SELECT number FROM runs WHERE id = ?1)
"""


def main() -> None:
    """Fill, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--tokens", type=int, default=300, help="of each run")
    parser.add_argument("--long", type=int, default=5000, help="tokens of the long run, the newest")
    parser.add_argument("--page", action="store_true", help="measure the page in a browser, too")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        store = RunStore(Path(home) / "data" / "runs.sqlite")
        long_id = _fill(store, arguments.runs, arguments.tokens, arguments.long)
        print(f"{store.storage()}")
        _measure(f"list {arguments.runs} runs", lambda: store.listing())
        _measure("  and as a frame", lambda: runs_frame(store.listing()[0]))
        _measure("  with whole records", lambda: store.runs())
        _measure(f"read a run of {arguments.long} tokens", lambda: list(store.events(long_id)))
        _measure("  and as the log that the page fetches", lambda: _logged(store, long_id))
        _measure("  and where its drafts fail", lambda: failures(store.events(long_id)))
        if arguments.page:
            _measure_page(home)


def _fill(store: RunStore, n_runs: int, n_tokens: int, n_long: int) -> str:
    first = _keep(store, RunSpec(prompt="The draft model", max_tokens=n_tokens))
    with closing(sqlite3.connect(store.path)) as connection:
        for number in range(2, n_runs):
            connection.execute(COPY, (first, number))
            connection.execute(COPY_STEPS, (first,))
        connection.commit()
    specs = (RunSpec(prompt="The draft model", max_tokens=n_long, seed=seed) for seed in count())
    return _keep(store, next(spec for spec in specs if measure(build(spec).events()).finish_reason == "length"))


def _keep(store: RunStore, spec: RunSpec) -> str:
    with store.begin(spec) as writer:
        for event in build(spec).events():
            writer.add(event)
    return writer.run_id


def _logged(store: RunStore, run_id: str) -> None:
    log = EventLog()
    for event in store.events(run_id):
        log.add(event)
    cursor = 0
    while cursor < len(log):
        log.since(cursor)
        cursor += 2000


def _measure(what: str, action: Callable[[], object]) -> None:
    times = []
    for _ in range(REPEATS):
        processor, wall = time.process_time(), time.perf_counter()
        action()
        times.append((time.process_time() - processor, time.perf_counter() - wall))
    processor, wall = (sorted(column)[REPEATS // 2] for column in zip(*times, strict=True))
    print(f"{what:<42} {processor:6.3f} s of a processor, {wall:6.3f} s by the clock (medians of {REPEATS})")


def _measure_page(home: str) -> None:
    from playwright.sync_api import sync_playwright

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "dashboard/app.py", "--server.port", str(port)],
        cwd=ROOT, env={**os.environ, "DRAFTSCOPE_HOME": home}, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        while not _answers(f"http://127.0.0.1:{port}/_stcore/health"):
            time.sleep(0.2)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1400, "height": 1000})
            page.goto(f"http://127.0.0.1:{port}/history")  # the first look also loads everything
            table = page.locator("[data-testid=stDataFrame] canvas").first
            for _ in range(REPEATS):
                before = time.perf_counter()
                page.goto(f"http://127.0.0.1:{port}/history")
                table.wait_for(timeout=120_000)
                print(f"address to table: {time.perf_counter() - before:.2f} s")
            for _ in range(REPEATS):
                page.get_by_role("link", name="Decode").click()
                page.get_by_role("button", name="Run", exact=True).wait_for(timeout=120_000)
                page.wait_for_timeout(2000)
                before = time.perf_counter()
                page.get_by_role("link", name="History").click()
                table.wait_for(timeout=120_000)
                print(f"History clicked to table: {time.perf_counter() - before:.2f} s")
            page.wait_for_timeout(3000)
            box = table.bounding_box()
            assert box is not None
            before = time.perf_counter()
            page.mouse.click(box["x"] + 18, box["y"] + 52)
            page.wait_for_function(f"() => {LIVE}?.dataset.state === 'finished'", timeout=120_000)
            print(f"click to the whole long run: {time.perf_counter() - before:.2f} s")
            browser.close()
    finally:
        server.terminate()
        server.wait(20)


def _answers(address: str) -> bool:
    try:
        urlopen(address).close()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
