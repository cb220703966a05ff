"""What the page's live view fetches: the log of a run from a cursor, and plotly.js. Read-only."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import plotly
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from dashboard.event_log import EventLog
from dashboard.runner import registry
from engine.errors import StoreError
from engine.store import RunStore

__all__ = ["routes"]

PLOTLY_JS = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"


def events(request: Request) -> Response:
    """The entries of a run's log since `?from=N`, with its state and figures."""
    run_id = request.path_params["run_id"]
    run = registry.get(run_id)
    try:
        body = run.since(_cursor(request)) if run else _stored_log(run_id).since(_cursor(request))
    except StoreError as failure:
        return JSONResponse({"error": str(failure)}, status_code=404)
    return Response(body, media_type="application/json", headers={"Cache-Control": "no-store"})


def plotly_js(request: Request) -> Response:
    """The plotly.js that the plotly package brings; its address carries the version."""
    return FileResponse(
        PLOTLY_JS, media_type="text/javascript", headers={"Cache-Control": "public, max-age=31536000, immutable"}
    )


def _stored_log(run_id: str) -> EventLog:
    """The log of a run that is not in memory: one of an earlier day, or of another process."""
    run = RunStore().get(run_id)
    return _read_log(run.id) if run.state == "running" else _kept_log(run.id)


@lru_cache(maxsize=4)
def _kept_log(run_id: str) -> EventLog:
    log = _read_log(run_id)
    log.state = "finished"
    return log


def _read_log(run_id: str) -> EventLog:
    log = EventLog()
    for event in RunStore().events(run_id):
        log.add(event)
    return log


def _cursor(request: Request) -> int:
    text = request.query_params.get("from", "0")
    return int(text) if text.isdecimal() else 0


routes = [
    Route("/draftscope/runs/{run_id}/events", events),
    Route("/draftscope/plotly.min.js", plotly_js),
]
