"""Stored runs to pandas frames, for tables and charts. Pure: figures are taken over, not computed."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from engine.store import StoredRun

__all__ = ["runs_frame"]

FIGURES = (
    "tokens_generated",
    "steps",
    "acceptance_rate",
    "per_token_acceptance",
    "tokens_per_step",
    "tokens_per_second",
    "total_time",
    "finish_reason",
    "backend",
    "lossless",
    "simulated",
)


def runs_frame(runs: Sequence[StoredRun]) -> pd.DataFrame:
    """One row for every run: when, its settings, its figures. Empty cells where a figure is not defined."""
    rows = [
        {
            "id": run.id,
            "created_at": run.created_at,
            "state": run.state,
            "target": run.spec.target,
            "drafter": run.spec.drafter,
            "rule": run.spec.rule,
            "draft_length": run.spec.draft_length,
            "temperature": run.spec.temperature,
            "seed": run.spec.seed,
            **{name: run.record.get(name) for name in FIGURES},
            "prompt": run.spec.prompt,
        }
        for run in runs
    ]
    columns = ["id", "created_at", "state", "target", "drafter", "rule", "draft_length", "temperature", "seed"]
    frame = pd.DataFrame(rows, columns=[*columns, *FIGURES, "prompt"])
    frame["created_at"] = pd.to_datetime(frame["created_at"], utc=True)
    return frame
