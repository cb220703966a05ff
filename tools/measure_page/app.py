"""The dashboard, with two routes more: when each entry entered a run's log, and the server's memory."""

import time
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from dashboard.event_log import EventLog
from dashboard.routes import routes
from dashboard.runner import registry

DASHBOARD = Path(__file__).resolve().parents[2] / "dashboard"
entered: dict[int, list[float]] = {}
append = EventLog._append


def timed_append(log: EventLog, *entry: Any) -> None:
    """Append an entry and note the time."""
    append(log, *entry)
    entered.setdefault(id(log), []).append(time.time())


EventLog._append = timed_append  # type: ignore[method-assign]


def times(request: Request) -> JSONResponse:
    """Seconds since the epoch at which each entry of the run entered its log."""
    run = registry.get(request.path_params["run_id"])
    return JSONResponse(entered.pop(id(run.log), []) if run else [])


def memory(request: Request) -> JSONResponse:
    """Resident memory of the server, bytes (Linux)."""
    status = Path("/proc/self/status").read_text()
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
    return JSONResponse(int(kilobytes) * 1024)


app = st.App(
    str(DASHBOARD / "pages.py"),
    routes=[*routes, Route("/measure/times/{run_id}", times), Route("/measure/memory", memory)],
)
