"""Two runs beside each other: their settings, their figures, and where their texts part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import zip_longest
from typing import Any

from engine.metrics import Figures
from engine.spec import RunSpec

__all__ = ["FIGURES", "Pair", "figure_pairs", "first_difference", "setting_pairs"]

FIGURES = tuple(
    field.name for field in fields(Figures) if field.name not in ("accepted_length_histogram", "per_position")
)
"""The figures that are a single value."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One setting or figure of two runs, and whether it differs."""

    name: str
    left: Any
    right: Any
    differs: bool


def setting_pairs(left: RunSpec, right: RunSpec) -> tuple[Pair, ...]:
    """Every setting, in the order of `RunSpec`.

    Examples
    --------
    >>> pairs = setting_pairs(RunSpec(seed=1, prompt="a"), RunSpec(seed=2, prompt="a"))
    >>> [(pair.name, pair.left, pair.right) for pair in pairs if pair.differs]
    [('seed', 1, 2)]
    """
    return _pairs((field.name, getattr(left, field.name), getattr(right, field.name)) for field in fields(RunSpec))


def figure_pairs(left: Mapping[str, Any], right: Mapping[str, Any]) -> tuple[Pair, ...]:
    """Every figure that is a single value, of two records (`engine.report.Report.record`)."""
    return _pairs((name, left.get(name), right.get(name)) for name in FIGURES)


def _pairs(values: Iterable[tuple[str, Any, Any]]) -> tuple[Pair, ...]:
    return tuple(Pair(name, left, right, left != right) for name, left, right in values)


def first_difference(left: Sequence[int], right: Sequence[int]) -> int | None:
    """The first token, counted from 1, at which two texts are not the same, or None if they are.

    Where one only ends earlier, it is the other one's next token.

    Examples
    --------
    >>> first_difference([1, 2, 3], [1, 2, 4]), first_difference([1], [1, 2]), first_difference([1], [1])
    (3, 2, None)
    """
    for token, (ours, theirs) in enumerate(zip_longest(left, right), 1):
        if ours != theirs:
            return token
    return None
