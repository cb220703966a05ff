"""A comparison as CSV: one row for every configuration, or one for every run. Text is made safe by `csv_line`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from engine.csv_text import Cell, csv_line

__all__ = ["comparison_csv", "comparison_runs_csv"]

OF_THE_WHOLE = ("target", "seed", "max_tokens", "simulated", "partial", "busy", "prompts", "repeats")
ESTIMATES = ("speed_up", "speed_up_with_prefill")
OF_A_ROW = (
    "verdict",
    "sentence",
    "lossless",
    "text",
    "text_sentence",
    "runs",
    "tokens",
    "steps",
    "drafted",
    "accepted",
    "acceptance_rate",
    "per_token_acceptance",
    "tokens_per_step",
    "tokens_per_second",
    "prefill_seconds",
    "draft_seconds_per_token",
    "verify_seconds_per_token",
    "overhead_seconds_per_token",
    "draft_share",
    "verify_share",
    "overhead_share",
    "draft_cost",
    "rows_per_call",
    "verify_cost",
    "predicted_speed_up",
    "prompts_compared",
    "prompts_that_differ",
    "near_tie_differences",
    "identities_ok",
)


def comparison_csv(result: Mapping[str, Any]) -> Iterator[str]:
    """A head and a line for every configuration; `by_category` is JSON in its cell.

    Parameters
    ----------
    result : mapping
        See `engine.compare.result.comparison_of`.
    """
    rows = result["configurations"]
    settings = list(rows[0]["settings"])
    bounds = [f"{name}{end}" for name in ESTIMATES for end in ("", "_low", "_high")]
    yield csv_line(["name", "drafter", "draft_length", *settings, *OF_THE_WHOLE, *bounds, *OF_A_ROW, "by_category"])
    whole = {**result["settings"], **result}
    for row in rows:
        estimates = [row[name] or {} for name in ESTIMATES]
        yield csv_line([
            row["name"],
            row["drafter"],
            row["draft_length"],
            *row["settings"].values(),
            *(whole[name] for name in OF_THE_WHOLE),
            *(estimate.get(end) for estimate in estimates for end in ("value", "low", "high")),
            *(row[name] for name in OF_A_ROW),
            json.dumps(row["by_category"], ensure_ascii=False),
        ])  # fmt: skip


def comparison_runs_csv(result: Mapping[str, Any]) -> Iterator[str]:
    """A head and a line for every run, in the order they were made."""
    runs: list[dict[str, Cell]] = result["runs"]
    names = list(runs[0]) if runs else []
    yield csv_line([*names, "simulated"])
    for run in runs:
        yield csv_line([*(run[name] for name in names), result["simulated"]])
