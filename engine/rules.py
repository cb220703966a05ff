"""The acceptance rules by name."""

from __future__ import annotations

from collections.abc import Callable

from engine.acceptance import (
    AcceptanceRule,
    ExactRejection,
    NaiveThreshold,
    TreeDistinct,
    TreeIndependent,
    TreeMatch,
)
from engine.spec import RunSpec

__all__ = ["RULES"]

RULES: dict[str, Callable[[RunSpec], AcceptanceRule]] = {
    ExactRejection.name: lambda spec: ExactRejection(),
    NaiveThreshold.name: lambda spec: NaiveThreshold(spec.acceptance_probability),
    TreeIndependent.name: lambda spec: TreeIndependent(),
    TreeDistinct.name: lambda spec: TreeDistinct(),
    TreeMatch.name: lambda spec: TreeMatch(),
}
"""The acceptance rules by name, each made from the spec that asks for it."""
