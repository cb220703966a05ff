"""The counters of this server's runs; the runs fill them, the route serves them."""

from engine.telemetry.prometheus import PrometheusMetrics

__all__ = ["metrics"]

metrics = PrometheusMetrics()
"""Of all runs that were started on the page Decode since the server began; those of a comparison are not counted."""
