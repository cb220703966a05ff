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
    >>> row = {"name": "ngram 2", "drafter": "ngram", "draft_length": 2, "steps": 3, "per_token_acceptance": 0.5}
    >>> list(families_of({"configurations": [row, row | {"name": "ngram 4", "draft_length": 4}]}))
    ['ngram']
    """
    families: dict[str, Rows] = {}
    for row in result["configurations"]:
        drafts = row["draft_length"] and row["steps"] and row["per_token_acceptance"] is not None
        if drafts and not _of_trees(row):
            name = row["name"].replace(f"{row['drafter']} {row['draft_length']}", row["drafter"], 1)
            families.setdefault(name, []).append(row)
    return families


def _of_trees(row: Mapping[str, Any]) -> bool:
    """Whether more tokens were drafted than places, which siblings share.

    Examples
    --------
    >>> _of_trees({"drafted": 7, "drafted_at": [4, 3]}), _of_trees({"drafted": 12, "drafted_at": [4, 3]})
    (False, True)
    """
    at = row.get("drafted_at")
    return at is not None and row["drafted"] > sum(at)


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
