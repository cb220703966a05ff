"""The counters as OpenTelemetry instruments, for whoever collects through it. Needs the extra `otel`.

The instruments are made from a meter provider of the user's; where the figures go from there is
that provider's business (https://opentelemetry.io/docs/specs/otel/metrics/).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from engine.errors import MissingPackage
from engine.telemetry.labels import LabelLimit, Labels
from engine.telemetry.recorder import Recorder, StepCounts, position_label
from engine.values import FinishReason

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

__all__ = ["OpenTelemetryMetrics"]

SCOPE = "draftscope"


class OpenTelemetryMetrics:
    """The counters of all runs of a process.

    Parameters
    ----------
    provider : opentelemetry.metrics.MeterProvider, optional
        Default: the one that the program has set for all.

    Raises
    ------
    MissingPackage
        If OpenTelemetry is not installed.
    """

    def __init__(self, provider: MeterProvider | None = None) -> None:
        try:
            from opentelemetry.metrics import get_meter
        except ImportError as missing:
            raise MissingPackage(
                "OpenTelemetry metrics need the extra otel: python -m pip install 'draftscope[otel]'"
            ) from missing
        meter = get_meter(SCOPE, meter_provider=provider)
        self._limit = LabelLimit()

        def name(last: str) -> str:
            return f"{SCOPE}.{last}"

        self._drafts = meter.create_counter(
            name("spec_decode.drafts"), "{draft}", "Steps that drafted at least one token."
        )
        self._draft_tokens = meter.create_counter(name("spec_decode.draft_tokens"), "{token}", "Drafted tokens.")
        self._accepted_tokens = meter.create_counter(
            name("spec_decode.accepted_tokens"), "{token}", "Drafted tokens that the rule kept."
        )
        self._accepted_per_position = meter.create_counter(
            name("spec_decode.accepted_tokens_per_position"), "{token}", "Drafts whose token at this position was kept."
        )
        self._emitted_tokens = meter.create_counter(name("emitted_tokens"), "{token}", "Tokens that the user got.")
        self._runs = meter.create_counter(name("runs"), "{run}", "Runs that have ended, by what ended them.")
        self._step_seconds = meter.create_histogram(
            name("step_seconds"), "s", "Seconds of a step: drafting, verifying, and all else. Prefill is not in it."
        )

    def recorder(self) -> Recorder:
        """What takes the events of one more run."""
        return Recorder(self, self._limit)

    def step(self, labels: Labels, counts: StepCounts) -> None:
        """Add a step."""
        attributes = asdict(labels)
        if counts.drafted:
            self._drafts.add(1, attributes)
            self._draft_tokens.add(counts.drafted, attributes)
            self._accepted_tokens.add(counts.accepted, attributes)
            for position in range(counts.depth):
                place = attributes | {"position": position_label(position)}
                self._accepted_per_position.add(int(position < counts.accepted), place)
        self._emitted_tokens.add(counts.emitted, attributes)
        self._step_seconds.record(counts.seconds, attributes)

    def run(self, labels: Labels, reason: FinishReason) -> None:
        """Add a run that has ended."""
        self._runs.add(1, asdict(labels) | {"reason": reason})
