"""The counters as Prometheus text, in the schema that vLLM and the server of llama.cpp share.

After vllm/v1/spec_decode/metrics.py and llama.cpp's `--metrics`: the same names behind our own prefix,
so that a panel made for theirs needs another prefix only. A registry of our own is used, never the
global one of `prometheus_client`, which a program around us may use for itself.
"""

from __future__ import annotations

from dataclasses import astuple, fields

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest

from engine.telemetry.labels import LabelLimit, Labels
from engine.telemetry.recorder import Recorder, StepCounts, position_label
from engine.values import FinishReason

__all__ = ["CONTENT_TYPE", "PREFIX", "SECONDS_BUCKETS", "PrometheusMetrics"]

PREFIX = "draftscope:"
CONTENT_TYPE = CONTENT_TYPE_LATEST
LABELS = tuple(field.name for field in fields(Labels))

SECONDS_BUCKETS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Upper bounds of the histogram of step seconds."""


class PrometheusMetrics:
    """The counters of all runs of a process.

    Attributes
    ----------
    registry : prometheus_client.CollectorRegistry
        Holds these counters and nothing else.

    Examples
    --------
    >>> from engine.build import build
    >>> from engine.spec import RunSpec
    >>> metrics = PrometheusMetrics()
    >>> recorder = metrics.recorder()
    >>> for event in build(RunSpec(prompt="The draft", max_tokens=5)).events():
    ...     recorder.add(event)
    >>> [line for line in metrics.text().decode().splitlines() if line.startswith("draftscope:emitted_tokens_total")]
    ['draftscope:emitted_tokens_total{drafter="model:markov-draft",rule="exact",simulated="false",target="markov"} 5.0']
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._limit = LabelLimit()

        def counter(name: str, words: str, *more: str) -> Counter:
            return Counter(f"{PREFIX}{name}", words, (*LABELS, *more), registry=self.registry)

        self._drafts = counter("spec_decode_num_drafts", "Steps that drafted at least one token.")
        self._draft_tokens = counter("spec_decode_num_draft_tokens", "Drafted tokens.")
        self._accepted_tokens = counter("spec_decode_num_accepted_tokens", "Drafted tokens that the rule kept.")
        self._accepted_per_position = counter(
            "spec_decode_num_accepted_tokens_per_pos", "Drafts whose token at this position was kept.", "position"
        )
        self._emitted_tokens = counter("emitted_tokens", "Tokens that the user got.")
        self._runs = counter("runs", "Runs that have ended, by what ended them.", "reason")
        self._step_seconds = Histogram(
            f"{PREFIX}step_seconds",
            "Seconds of a step: drafting, verifying, and all else. Prefill is not in it.",
            LABELS,
            buckets=SECONDS_BUCKETS,
            registry=self.registry,
        )

    def recorder(self) -> Recorder:
        """What takes the events of one more run."""
        return Recorder(self, self._limit)

    def text(self) -> bytes:
        """All counters in Prometheus' text format, to be served as `CONTENT_TYPE`."""
        return generate_latest(self.registry)

    def step(self, labels: Labels, counts: StepCounts) -> None:
        """Add a step."""
        values = astuple(labels)
        if counts.drafted:
            self._drafts.labels(*values).inc()
            self._draft_tokens.labels(*values).inc(counts.drafted)
            self._accepted_tokens.labels(*values).inc(counts.accepted)
            for position in range(counts.depth):  # one that nothing passed is there too, with 0
                series = self._accepted_per_position.labels(*values, position_label(position))
                series.inc(position < counts.accepted)
        self._emitted_tokens.labels(*values).inc(counts.emitted)
        self._step_seconds.labels(*values).observe(counts.seconds)

    def run(self, labels: Labels, reason: FinishReason) -> None:
        """Add a run that has ended."""
        self._runs.labels(*astuple(labels), reason).inc()
