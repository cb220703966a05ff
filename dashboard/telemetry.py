"""The counters of this server's runs; the runs fill them, the route serves them."""

from engine.telemetry.prometheus import PrometheusMetrics

__all__ = ["metrics"]

metrics = PrometheusMetrics()
"""Of all runs that were started from the page since the server began."""
