"""What-if of each drafter of a comparison: its predictions beside what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.bench.costs import Costs
from engine.what_if import Profile, profile_of, what_if

__all__ = ["families_of", "family_prediction"]

Rows = list[Mapping[str, Any]]


def families_of(result: Mapping[str, Any]) -> dict[str, Rows]:
    """The rows that draft, together where they differ in nothing but the draft length; named by what they share.

    Examples
    --------
    >>> row = {"name": "ngram 2", "drafter": "ngram", "draft_length": 2, "steps": 3, "per_token_acceptance": 0.5}
    >>> list(families_of({"configurations": [row, row | {"name": "ngram 4", "draft_length": 4}]}))
    ['ngram']
    """
    families: dict[str, Rows] = {}
    for row in result["configurations"]:
        if row["draft_length"] and row["steps"] and row["per_token_acceptance"] is not None:
            name = row["name"].replace(f"{row['drafter']} {row['draft_length']}", row["drafter"], 1)
            families.setdefault(name, []).append(row)
    return families


def family_prediction(rows: Rows, costs: Costs, **supposed: Any) -> dict[str, Any]:
    """See `engine.what_if.what_if`; `supposed` are its acceptance, c and flat."""
    profiles: dict[int, Profile] = {}
    for row in rows:
        profile = profile_of(row)
        if profile is not None:
            profiles[row["draft_length"]] = profile
    return what_if(profiles, costs, costs.draft[rows[0]["drafter"]], measured=rows, **supposed)
