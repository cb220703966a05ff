"""What is fetched over HTTP: the log of a run from a cursor, plotly.js, and the counters. Read-only."""

from __future__ import annotations

from pathlib import Path

import plotly
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from dashboard.runner import registry
from dashboard.stored_log import stored_log
from dashboard.telemetry import metrics
from engine.errors import DraftscopeError, RunNotFound
from engine.telemetry.prometheus import CONTENT_TYPE

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


def plotly_js(request: Request) -> Response:
    """The plotly.js that the plotly package brings; its address carries the version."""
    return FileResponse(
        PLOTLY_JS, media_type="text/javascript", headers={"Cache-Control": "public, max-age=31536000, immutable"}
    )


def prometheus(request: Request) -> Response:
    """The counters of all runs that were started from the page, as Prometheus reads them."""
    return Response(metrics.text(), headers={"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"})


def _cursor(request: Request) -> int:
    text = request.query_params.get("from", "0")
    return int(text) if text.isdecimal() else 0


routes = [
    Route("/draftscope/runs/{run_id}/events", events),
    Route("/draftscope/plotly.min.js", plotly_js),
    Route("/metrics", prometheus),
]
