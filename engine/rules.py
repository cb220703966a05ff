"""The acceptance rules by name."""

from __future__ import annotations

from collections.abc import Callable

from engine.acceptance import (
    AcceptanceRule,
    BlockVerification,
    Ensemble,
    ExactRejection,
    GumbelMatch,
    Lenience,
    NaiveThreshold,
    SampleMatch,
    TreeDistinct,
    TreeIndependent,
    TreeMatch,
    TypicalAcceptance,
)
from engine.spec import RunSpec

__all__ = ["RULES", "RULE_PARAMETERS"]

RULES: dict[str, Callable[[RunSpec], AcceptanceRule]] = {
    ExactRejection.name: lambda spec: ExactRejection(),
    BlockVerification.name: lambda spec: BlockVerification(),
    SampleMatch.name: lambda spec: SampleMatch(),
    GumbelMatch.name: lambda spec: GumbelMatch(),
    TreeIndependent.name: lambda spec: TreeIndependent(),
    TreeDistinct.name: lambda spec: TreeDistinct(),
    TreeMatch.name: lambda spec: TreeMatch(),
    Lenience.name: lambda spec: Lenience(spec.lenience),
    Ensemble.name: lambda spec: Ensemble(spec.ensemble_weight),
    TypicalAcceptance.name: lambda spec: TypicalAcceptance(spec.typical_threshold, spec.typical_scale),
    NaiveThreshold.name: lambda spec: NaiveThreshold(spec.acceptance_probability),
}
"""The acceptance rules by name, each made from the spec that asks for it; the lossless ones first."""

RULE_PARAMETERS: dict[str, tuple[str, ...]] = {
    Lenience.name: ("lenience",),
    Ensemble.name: ("ensemble_weight",),
    TypicalAcceptance.name: ("typical_threshold", "typical_scale"),
    NaiveThreshold.name: ("acceptance_probability",),
}
"""The settings of a `RunSpec` that a rule reads; a rule that is not here has none."""
