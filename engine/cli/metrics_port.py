"""`--metrics-port`: a run's counters over HTTP, while it decodes and for a while behind it."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event as Flag
from typing import TYPE_CHECKING

from engine.errors import SettingError
from engine.values import Event, Finished

if TYPE_CHECKING:
    from engine.telemetry.recorder import Recorder

__all__ = ["MetricsPort", "metrics_port"]


class MetricsPort:
    """Takes the events of the run, and knows whether somebody may still want its counters."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.lingers = False

    def add(self, event: Event) -> None:
        """Count the event."""
        self._recorder.add(event)
        self.lingers = isinstance(event, Finished) and event.reason != "cancelled"


@contextmanager
def metrics_port(port: int | None, linger_seconds: float | None) -> Iterator[MetricsPort | None]:
    """Serve at `port` while the block runs and, unless it failed or was interrupted, behind it.

    A run is over in seconds, and Prometheus comes by every 15 or 60: so the counters stay until Ctrl-C, or
    for `linger_seconds`.

    Parameters
    ----------
    port : int or None
        None serves nothing.
    linger_seconds : float or None
        None waits for Ctrl-C.

    Raises
    ------
    SettingError
        If the port or the time cannot be used.
    """
    if linger_seconds is not None and not (linger_seconds >= 0 and math.isfinite(linger_seconds)):
        raise SettingError(f"--metrics-linger is {linger_seconds}; give seconds, 0 or more")
    if port is None:
        if linger_seconds is not None:
            raise SettingError("--metrics-linger is of use with --metrics-port only; give a port, or leave it out")
        yield None
        return
    from engine.telemetry.prometheus import PrometheusMetrics  # imported here: most runs serve nothing
    from engine.telemetry.server import serve

    metrics = PrometheusMetrics()
    with serve(metrics, port) as address:
        print(f"metrics at {address}", file=sys.stderr, flush=True)
        taken = MetricsPort(metrics.recorder())
        yield taken
        if taken.lingers and linger_seconds != 0:
            until = "until Ctrl-C" if linger_seconds is None else f"for {linger_seconds:g} s, or until Ctrl-C"
            print(f"metrics stay at {address} {until}", file=sys.stderr, flush=True)
            with suppress(KeyboardInterrupt):
                Flag().wait(linger_seconds)
