"""A real browser and a server of its own, for the tests that look at the page."""

import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from engine import RunSpec, RunStore, Step, build

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
PANEL = f"{LIVE}?.querySelector('.explain')"


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


def explained(page, step, position):
    page.wait_for_function(f"() => {PANEL}.dataset.step === '{step}' && {PANEL}.dataset.position === '{position}'")
    return page.evaluate(f"() => {PANEL}.innerText")


def kept(home, **settings):
    """Two runs in the history, and their ids, the newest first."""
    store = RunStore(home / "data" / "runs.sqlite")
    for seed in (11, 12):
        spec = RunSpec(**{"prompt": "The draft model", "max_tokens": 60, "seed": seed} | settings)
        with store.begin(spec) as writer:
            for event in build(spec).events():
                writer.add(event)
    return store, [run.id for run in store.runs()[:2]]
