"""The length policies by name."""

from __future__ import annotations

from collections.abc import Callable

from engine.lengths import (
    AdaptiveThreshold,
    ConfidenceThreshold,
    Confident,
    CostAware,
    EntropyBound,
    FixedLength,
    Heuristic,
    NamedPolicy,
)
from engine.spec import RunSpec

__all__ = ["POLICIES", "POLICY_PARAMETERS"]

POLICIES: dict[str, Callable[[RunSpec], NamedPolicy]] = {
    Confident.name: lambda spec: Confident(spec.draft_length),
    FixedLength.name: lambda spec: FixedLength(spec.draft_length),
    Heuristic.name: lambda spec: Heuristic(spec.draft_length),
    ConfidenceThreshold.name: lambda spec: ConfidenceThreshold(spec.draft_length, spec.confidence_threshold),
    EntropyBound.name: lambda spec: EntropyBound(spec.draft_length, spec.entropy_bound),
    AdaptiveThreshold.name: lambda spec: AdaptiveThreshold(spec.draft_length, spec.start_threshold),
    CostAware.name: lambda spec: CostAware(spec.draft_length),
}
"""The length policies by name, each made from the spec that asks for it; the draft length is the most of each."""

POLICY_PARAMETERS: dict[str, tuple[str, ...]] = {
    ConfidenceThreshold.name: ("confidence_threshold",),
    EntropyBound.name: ("entropy_bound",),
    AdaptiveThreshold.name: ("start_threshold",),
}
"""The settings of a `RunSpec` that a policy reads beside the draft length; one that is not here has none."""
