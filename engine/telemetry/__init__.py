"""Counters for a monitoring system, filled from a run's events: Prometheus and OpenTelemetry.

`recorder` turns events into what is counted, `labels` says of which run, `prometheus` and
`open_telemetry` hold the counters, and `server` serves them. Names and meanings: `docs/telemetry.md`.
"""
