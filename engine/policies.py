"""The length policies by name."""

from __future__ import annotations

from collections.abc import Callable

from engine.lengths import Confident, FixedLength, LengthPolicy
from engine.spec import RunSpec

__all__ = ["POLICIES"]

POLICIES: dict[str, Callable[[RunSpec], LengthPolicy]] = {
    Confident.name: lambda spec: Confident(spec.draft_length),
    FixedLength.name: lambda spec: FixedLength(spec.draft_length),
}
"""The length policies by name, each made from the spec that asks for it; the draft length is the most of each."""
