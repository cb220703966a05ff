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

    Rows of trees are left out: the sum knows one draft token a place.

    Examples
    --------
    >>> counts = {"steps": 3, "drafted": 6, "discarded": 0, "drafted_at": [3, 3], "accepted_at": [2, 1]}
    >>> row = {"name": "ngram 2", "drafter": "ngram", "draft_length": 2, "per_token_acceptance": 0.6} | counts
    >>> list(families_of({"configurations": [row, row | {"name": "ngram 4", "draft_length": 4}]}))
    ['ngram']
    """
    families: dict[str, Rows] = {}
    for row in result["configurations"]:
        if row["draft_length"] and profile_of(row):
            name = row["name"].replace(f"{row['drafter']} {row['draft_length']}", row["drafter"], 1)
            families.setdefault(name, []).append(row)
    return families


def family_prediction(rows: Rows, costs: Costs, **supposed: Any) -> dict[str, Any]:
    """The what-if of one family.

    Parameters
    ----------
    rows : list of mapping
        Of a comparison, or one made of the record of a run, which has no `proposal` but a `drafter`.
    costs : Costs
        Of single calls, `engine.compare.run.costs_of`.
    **supposed
        Acceptance, c and flat of `engine.what_if.what_if`.
    """
    profiles: dict[int, Profile] = {}
    for row in rows:
        profile = profile_of(row)
        if profile is not None:
            profiles[row["draft_length"]] = profile
    draft = costs.draft[rows[0].get("proposal") or rows[0]["drafter"]]
    simulated = any(row["simulated"] for row in rows)
    return what_if(profiles, costs, draft, simulated=simulated, measured=rows, **supposed)
