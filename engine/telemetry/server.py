"""The counters over HTTP, for a run on the command line."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import start_http_server

from engine.errors import SettingError
from engine.telemetry.prometheus import PrometheusMetrics

__all__ = ["HOST", "serve"]

HOST = "127.0.0.1"
"""This machine only: the counters tell what runs here, and nobody is asked for a password."""


@contextmanager
def serve(metrics: PrometheusMetrics, port: int) -> Iterator[str]:
    """Serve `metrics` in a thread of its own while the block runs; gives the address.

    Parameters
    ----------
    metrics : PrometheusMetrics
    port : int
        0 takes one that is free.

    Raises
    ------
    SettingError
        If the port is out of range, taken, or may not be used.

    Examples
    --------
    >>> from urllib.request import urlopen
    >>> with serve(PrometheusMetrics(), 0) as address, urlopen(address) as answer:
    ...     answer.status, address.endswith("/metrics")
    (200, True)
    """
    if not 0 <= port <= 65535:
        raise SettingError(f"the metrics port is {port}; give a number from 0 (any that is free) to 65535")
    try:
        server, thread = start_http_server(port, HOST, metrics.registry)
    except OSError as failure:
        raise SettingError(f"metrics cannot be served at {HOST}:{port}: {_reason(failure)}") from failure
    try:
        yield f"http://{HOST}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _reason(failure: OSError) -> str:
    if failure.errno == errno.EADDRINUSE:
        return "another program listens there; choose another port, or 0 for one that is free"
    if failure.errno == errno.EACCES:
        return "the system does not allow it; choose a port from 1024 up, or 0 for one that is free"
    return failure.strerror or str(failure)
