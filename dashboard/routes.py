"""What the page's live view fetches: the log of a run from a cursor, its figures step by step, plotly.js. Read-only."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import plotly
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from dashboard.event_log import EventLog
from dashboard.runner import LiveRun, registry
from dashboard.stored_log import stored_log
from engine.errors import DraftscopeError, RunNotFound

__all__ = ["routes"]

PLOTLY_JS = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"


def events(request: Request) -> Response:
    """The entries of a run's log since `?from=N`, with its state and figures."""
    return _answer(request, lambda log, cursor: log.since(cursor))


def figures(request: Request) -> Response:
    """The figures of a run after N steps, N + 1 steps, ..., for `?from=N`."""
    return _answer(request, lambda log, cursor: log.figures_since(cursor))


def _answer(request: Request, read: Callable[[LiveRun | EventLog, int], str]) -> Response:
    run_id = request.path_params["run_id"]
    try:
        body = read(registry.get(run_id) or stored_log(run_id), _cursor(request))
    except RunNotFound as failure:
        return JSONResponse({"error": str(failure)}, status_code=404)
    except DraftscopeError as failure:
        return JSONResponse({"error": str(failure)}, status_code=503)
    return Response(body, media_type="application/json", headers={"Cache-Control": "no-store"})


def plotly_js(request: Request) -> Response:
    """The plotly.js that the plotly package brings; its address carries the version."""
    return FileResponse(
        PLOTLY_JS, media_type="text/javascript", headers={"Cache-Control": "public, max-age=31536000, immutable"}
    )


def _cursor(request: Request) -> int:
    text = request.query_params.get("from", "0")
    return int(text) if text.isdecimal() else 0


routes = [
    Route("/draftscope/runs/{run_id}/events", events),
    Route("/draftscope/runs/{run_id}/figures", figures),
    Route("/draftscope/plotly.min.js", plotly_js),
]
