"""The plain sentence: does speculation help here, by how much, with what, and if not, why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["clearly_above_1", "clearly_below_1", "count_text", "estimate_text", "verdict"]


def verdict(rows: Sequence[Mapping[str, Any]]) -> str:
    """Judge the fastest of Draftscope's drafting configurations against plain decoding.

    The interval is judged as it is told, in hundredths: it helps only where a reader sees an interval above 1.

    Parameters
    ----------
    rows : sequence of mapping
        The configurations of a result (`engine.bench.summary`); only those that draft are looked at.

    Examples
    --------
    >>> verdict([])
    'not known: no drafter was measured beside plain decoding'
    """
    measured = [row for row in rows if row["speed_up"] is not None]
    if not measured:
        return "not known: no drafter was measured beside plain decoding"
    best = max(measured, key=lambda row: float(row["speed_up"]["value"]))
    what = f"{estimate_text(best['speed_up'])} with {best['drafter']} at draft length {best['draft_length']}"
    low, high = best["speed_up"]["low"], best["speed_up"]["high"]
    if low is None or high is None:
        return f"not sure: {what}, from one run; {_because(best)}"
    if clearly_above_1(low):
        return f"helps: {what}; {_because(best)}" + _where_it_hurts(best)
    if clearly_below_1(high):
        return f"hurts: the best is {what}, because {_because(best)}"
    return f"makes no clear difference: the best is {what}; {_because(best)}"


def estimate_text(estimate: Mapping[str, Any] | None) -> str:
    """A ratio for a reader, such as "1.31x (1.27-1.36)".

    Examples
    --------
    >>> estimate_text({"value": 1.3149, "low": 1.2749, "high": None}), estimate_text(None)
    ('1.31x', 'n/a')
    """
    if estimate is None:
        return "n/a"
    if estimate["low"] is None or estimate["high"] is None:
        return f"{estimate['value']:.2f}x"
    return f"{estimate['value']:.2f}x ({estimate['low']:.2f}-{estimate['high']:.2f})"


def clearly_above_1(bound: float) -> bool:
    """Whether a bound of a ratio is above 1 as `estimate_text` tells it: the words fit what stands beside them.

    Examples
    --------
    >>> clearly_above_1(1.004), clearly_above_1(1.006)
    (False, True)
    """
    return bound > 1 and f"{bound:.2f}" != "1.00"


def clearly_below_1(bound: float) -> bool:
    """Whether a bound of a ratio is below 1 as `estimate_text` tells it.

    Examples
    --------
    >>> clearly_below_1(0.996), clearly_below_1(0.994)
    (False, True)
    """
    return bound < 1 and f"{bound:.2f}" != "1.00"


def count_text(value: float) -> str:
    """A mean number of tokens or rows: whole if it is as good as whole.

    Examples
    --------
    >>> count_text(5.0), count_text(4.97), count_text(3.26)
    ('5', '5', '3.3')
    """
    return f"{value:.0f}" if abs(value - round(value)) < 0.05 else f"{value:.1f}"


def _because(row: Mapping[str, Any]) -> str:
    """What a step yields and costs, in plain tokens, and where the cost comes from."""
    if not row["drafted"]:
        return "nothing was drafted, so every step was a plain one"
    yields = row["tokens_per_step"]
    told = f"a step yields {yields:.2f} tokens and costs {yields / row['speed_up']['value']:.2f} plain tokens"
    n_rows, cost = row["rows_per_call"], row["verify_cost"]  # drafts may be shorter than they could be
    reasons = [] if cost is None else [f"a call for {count_text(n_rows)} rows costs {cost:.2f} of one"]
    parts = {"draft": row["draft_share"], "verify": row["verify_share"], "overhead": row["overhead_share"]}
    reasons += [f"{name} {share:.0%}" for name, share in parts.items() if share is not None]
    return f"{told} ({', '.join(reasons)})"


def _where_it_hurts(row: Mapping[str, Any]) -> str:
    slower = [name for name, estimate in row["by_category"].items() if estimate and clearly_below_1(estimate["value"])]
    return f"; slower than plain in: {', '.join(slower)}" if slower else ""
