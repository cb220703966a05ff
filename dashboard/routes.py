"""What is fetched over HTTP, read-only: a log, its figures step by step, a step explained, plotly.js, the counters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import plotly
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from dashboard.addresses import address
from dashboard.comparisons import comparisons
from dashboard.event_log import EventLog
from dashboard.runner import LiveRun, registry
from dashboard.stored_log import stored_log
from dashboard.telemetry import metrics
from engine.errors import DraftscopeError, RunNotFound
from engine.telemetry.prometheus import CONTENT_TYPE

__all__ = ["routes"]

PLOTLY_JS = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"


def events(request: Request) -> Response:
    """The entries of a run's log since `?from=N`, with its state and figures."""
    return _answer(lambda: _run(request).since(_cursor(request)))


def figures(request: Request) -> Response:
    """The figures of a run after N steps, N + 1 steps, ..., for `?from=N`."""
    return _answer(lambda: _run(request).figures_since(_cursor(request)))


def step(request: Request) -> Response:
    """One step of a run, explained."""
    index = request.path_params["index"]

    def told() -> str:
        run = _run(request)
        body = (run.log if isinstance(run, LiveRun) else run).step(index)
        if body is None:
            raise RunNotFound(f"the run {request.path_params['run_id']!r} has no step {index + 1}; it may still come")
        return body

    return _answer(told)


def _run(request: Request) -> LiveRun | EventLog:
    run_id = request.path_params["run_id"]
    return registry.get(run_id) or stored_log(run_id)


def _answer(made: Callable[[], str]) -> Response:
    try:
        body = made()
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


def prometheus(request: Request) -> Response:
    """The counters of all runs that were started on the page Decode, as Prometheus reads them."""
    return Response(metrics.text(), headers={"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"})


def _cursor(request: Request) -> int:
    text = request.query_params.get("from", "0")
    return int(text) if text.isdecimal() else 0


def _lane_cursors(text: str) -> list[tuple[int, int]]:
    pairs = (part.partition(":") for part in text.split(","))
    return [(int(run), int(at)) if run.isdecimal() and at.isdecimal() else (0, 0) for run, _, at in pairs]


routes = [
    Route(address("/draftscope/runs/{run_id}/events"), events),
    Route(address("/draftscope/runs/{run_id}/steps/{index:int}"), step),
    Route(address("/draftscope/runs/{run_id}/figures"), figures),
    Route(address("/draftscope/comparisons/{comparison_id}/lanes"), lanes),
    Route(address("/draftscope/plotly.min.js"), plotly_js),
    Route(address("/metrics"), prometheus),
]
