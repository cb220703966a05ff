"""What the page's live view fetches: the log of a run from a cursor, and plotly.js. Read-only."""

from __future__ import annotations

from pathlib import Path

import plotly
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from dashboard.comparisons import comparisons
from dashboard.runner import registry
from dashboard.stored_log import stored_log
from engine.errors import DraftscopeError, RunNotFound

__all__ = ["routes"]

PLOTLY_JS = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"


def events(request: Request) -> Response:
    """The entries of a run's log since `?from=N`, with its state and figures."""
    run_id = request.path_params["run_id"]
    run = registry.get(run_id)
    try:
        body = (run or stored_log(run_id)).since(_cursor(request))
    except RunNotFound as failure:
        return JSONResponse({"error": str(failure)}, status_code=404)
    except DraftscopeError as failure:
        return JSONResponse({"error": str(failure)}, status_code=503)
    return Response(body, media_type="application/json", headers={"Cache-Control": "no-store"})


def lanes(request: Request) -> Response:
    """What is new in the lanes of a comparison since `?at=RUN:CURSOR,RUN:CURSOR,...`, one for each lane."""
    comparison = comparisons.get(request.path_params["comparison_id"])
    if comparison is None:
        return JSONResponse({"error": "this comparison is not in memory"}, status_code=404)
    body = comparison.since(_lane_cursors(request.query_params.get("at", "")))
    return Response(body, media_type="application/json", headers={"Cache-Control": "no-store"})


def plotly_js(request: Request) -> Response:
    """The plotly.js that the plotly package brings; its address carries the version."""
    return FileResponse(
        PLOTLY_JS, media_type="text/javascript", headers={"Cache-Control": "public, max-age=31536000, immutable"}
    )


def _cursor(request: Request) -> int:
    text = request.query_params.get("from", "0")
    return int(text) if text.isdecimal() else 0


def _lane_cursors(text: str) -> list[tuple[int, int]]:
    pairs = (part.partition(":") for part in text.split(","))
    return [(int(run), int(at)) if run.isdecimal() and at.isdecimal() else (0, 0) for run, _, at in pairs]


routes = [
    Route("/draftscope/runs/{run_id}/events", events),
    Route("/draftscope/comparisons/{comparison_id}/lanes", lanes),
    Route("/draftscope/plotly.min.js", plotly_js),
]
