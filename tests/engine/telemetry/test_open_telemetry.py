"""The counters as OpenTelemetry instruments, read by the SDK's in-memory reader."""

import sys

import pytest

from engine.build import build
from engine.errors import MissingPackage
from engine.metrics import measure
from engine.spec import RunSpec
from engine.telemetry.open_telemetry import OpenTelemetryMetrics


@pytest.fixture
def reader():
    export = pytest.importorskip("opentelemetry.sdk.metrics.export", reason="the extra otel is not installed")
    return export.InMemoryMetricReader()


def collected(reader, *runs):
    """Name -> list of (attributes, data point)."""
    from opentelemetry.sdk.metrics import MeterProvider

    provider = MeterProvider(metric_readers=[reader])
    metrics = OpenTelemetryMetrics(provider)
    for events in runs:
        recorder = metrics.recorder()
        for event in events:
            recorder.add(event)
    data = reader.get_metrics_data()
    provider.shutdown()
    [resource] = data.resource_metrics
    [scope] = resource.scope_metrics
    assert scope.scope.name == "draftscope"
    return {metric.name: [(dict(point.attributes), point) for point in metric.data.data_points]
            for metric in scope.metrics}  # fmt: skip


@pytest.mark.parametrize("settings", [{}, {"drafter": "ngram"}, {"rule": "tree-match"}, {"target_call_seconds": 0.02}])
def test_what_is_collected_after_a_run_equals_the_runs_own_counters(reader, settings):
    events = list(build(RunSpec(prompt="The draft", max_tokens=60, seed=2, **settings)).events())
    figures = measure(events)
    points = collected(reader, events)

    def only(name):
        [(attributes, point)] = points[f"draftscope.{name}"]
        assert (
            attributes.items()
            >= {
                "target": "markov",
                "rule": settings.get("rule", "exact"),
                "simulated": str(figures.simulated).lower(),
            }.items()
        )
        return point

    assert only("spec_decode.drafts").value == figures.drafting_steps
    assert only("spec_decode.draft_tokens").value == figures.drafted
    assert only("spec_decode.accepted_tokens").value == figures.accepted
    assert only("emitted_tokens").value == figures.tokens_generated
    assert only("runs").value == 1
    assert only("step_seconds").count == figures.steps
    assert only("step_seconds").sum == pytest.approx(figures.decode_seconds, rel=1e-12)
    by_position = {attributes["position"]: point.value
                   for attributes, point in points["draftscope.spec_decode.accepted_tokens_per_position"]}  # fmt: skip
    assert by_position == {str(row.position - 1): row.accepted for row in figures.per_position}


def test_drafters_are_told_apart(reader):
    runs = [build(RunSpec(prompt="The draft", max_tokens=9, drafter=drafter)).events() for drafter in ("none", "ngram")]
    points = collected(reader, *runs)["draftscope.emitted_tokens"]
    assert sorted(point.value for _, point in points) == [9, 9]


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.metrics", None)
    with pytest.raises(MissingPackage, match=r"draftscope\[otel\]"):
        OpenTelemetryMetrics()
