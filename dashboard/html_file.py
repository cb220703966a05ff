"""A run as one HTML file that needs nothing else: no network, no server, a double click opens it.

The file is made of the live view's own HTML, CSS and JavaScript, with the log of the run and its
figures after every step as data in it. The four charts are drawn by `svg_plots.js`, for plotly.js
would make the file 5 MB larger.

What a token or a prompt holds cannot become code: the data is JSON without `<`, `>` and `&`, texts
outside of it are escaped, and the content security policy names the one script and the one style
sheet by their hashes and allows nothing else.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable
from dataclasses import asdict
from hashlib import sha256
from html import escape
from typing import Any

from dashboard.components.live import SCRIPTS, asset
from dashboard.event_log import EventLog
from engine.store import StoredRun
from engine.values import Event

__all__ = ["html_file"]

UNSAFE = {ord(character): f"\\u{ord(character):04x}" for character in "<>&"}


def html_file(run: StoredRun, events: Iterable[Event]) -> bytes:
    """The file.

    Parameters
    ----------
    run : StoredRun
    events : iterable of Event
        All of its events, in order. Of a run that goes on, those until now, and the file says so.
    """
    log = EventLog()
    for event in events:
        log.add(event)
    goes_on = run.state == "running" and log.state != "finished"
    log.state = "finished"  # nothing more will come
    data = _json({
        "run": run.id, "goes_on": goes_on,
        "events": _answers(log.since), "figures": _answers(log.figures_since), "steps": _steps(log),
    })  # fmt: skip
    style = "\n".join(map(asset, ("file.css", "live.css", "explain.css")))
    script = "\n".join(map(asset, (*SCRIPTS, "svg_plots.js", "file.js")))
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}"
    spec = run.spec
    title = f"{spec.target}, drafter {spec.drafter}, rule {spec.rule}"
    rows = {"run": run.id, "created_at": run.created_at, **asdict(spec), **run.versions}
    text = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Draftscope: {_text(title)}</title>
<style>{style}</style>
</head>
<body>
<main class="file">
<h1>{_text(title)}</h1>
<p class="file-about">Draft length {spec.draft_length}, temperature {spec.temperature}, seed {spec.seed},
{_text(run.created_at)}. Recorded by Draftscope; this file needs no network.</p>
<div id="view">{asset("live.html")}</div>
<details><summary>Settings and versions</summary><dl>{_rows(rows)}</dl></details>
</main>
<script type="application/json" id="run">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"""
    return text.encode("utf-8")


def _answers(read: Callable[[int], str]) -> list[dict[str, Any]]:
    """All that a reader gets who starts at the beginning."""
    answers: list[dict[str, Any]] = []
    cursor = 0
    while not answers or answers[-1]["more"]:
        answers.append(json.loads(read(cursor)))
        cursor += len(answers[-1].get("entries") or answers[-1].get("rows") or ())
    return answers


def _steps(log: EventLog) -> list[Any]:
    """Every step, explained."""
    steps: list[Any] = []
    while (told := log.step(len(steps))) is not None:
        steps.append(json.loads(told))
    return steps


def _json(data: object) -> str:
    """JSON in ASCII that is safe inside of a script element."""
    return json.dumps(data, separators=(",", ":")).translate(UNSAFE)


def _text(value: object) -> str:
    """Text for HTML; half a surrogate pair, which UTF-8 cannot hold, and NUL become visible signs."""
    shown = str(value).replace("\0", "\u2400").encode("utf-8", "backslashreplace").decode("utf-8")
    return escape(shown)


def _rows(values: dict[str, Any]) -> str:
    return "".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in values.items())


def _hash(content: str) -> str:
    return f"'sha256-{b64encode(sha256(content.encode('utf-8')).digest()).decode()}'"
