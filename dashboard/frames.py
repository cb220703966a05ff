"""Stored runs to pandas frames, for tables and charts. Pure: figures are taken over, not computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from engine.failures import KindFigures, PositionRates, RejectedProposal
from engine.intervals import Rate
from engine.lab.lossless import Lossless
from engine.lab.trace import Trace
from engine.side_by_side import Pair
from engine.store import StoredRun

__all__ = [
    "kinds_frame",
    "lossless_data",
    "pairs_frame",
    "positions_frame",
    "proposals_frame",
    "race_frame",
    "runs_frame",
    "trace_frame",
]

SETTINGS = (
    "created_at",
    "id",
    "prompt",
    "tags",
    "target",
    "drafter",
    "rule",
    "draft_length",
    "temperature",
)
FIGURES = (
    "tokens_generated",
    "steps",
    "acceptance_rate",
    "per_token_acceptance",
    "tokens_per_step",
    "tokens_per_second",
    "total_time",
    "backend",
    "lossless",
    "simulated",
)
REST = ("seed", "state", "finish_reason", "note")
LONGEST_PROMPT = 120
"""Characters of a prompt in a table."""


def runs_frame(runs: Sequence[StoredRun]) -> pd.DataFrame:
    """One row for every run: when, its settings, its figures. Empty cells where a figure is not defined."""
    rows = [
        {
            "id": run.id,
            "created_at": run.created_at,
            "prompt": _shortened(_shown(run.spec.prompt)),
            "tags": list(run.tags),
            "state": _state(run),
            "finish_reason": run.record.get("finish_reason"),
            "target": run.spec.target,
            "drafter": run.spec.drafter,
            "rule": run.spec.rule,
            "draft_length": run.spec.draft_length,
            "temperature": run.spec.temperature,
            "seed": run.spec.seed,
            **{name: run.record.get(name) for name in FIGURES},
            "note": run.note,
        }
        for run in runs
    ]
    frame = pd.DataFrame(rows, columns=[*SETTINGS, *FIGURES, *REST])
    frame["created_at"] = pd.to_datetime(frame["created_at"], utc=True)
    return frame


def pairs_frame(pairs: Iterable[Pair], left: str, right: str) -> pd.DataFrame:
    """One row for every setting or figure of two runs, called `left` and `right`; those that differ have a mark.

    Values of any kind stand in a column, so all are text.
    """
    rows = [("≠" if pair.differs else "", pair.name, _value(pair.left), _value(pair.right)) for pair in pairs]
    return pd.DataFrame(rows, columns=["differs", "name", left, right])


def kinds_frame(kinds: Iterable[KindFigures]) -> pd.DataFrame:
    """One row for every kind of token: its share of accepted tokens with the interval."""
    rows = [(row.kind, row.drafted, *_rate(row.acceptance)) for row in kinds]
    return pd.DataFrame(rows, columns=["kind", "drafted", *RATE])


def positions_frame(positions: Iterable[PositionRates]) -> pd.DataFrame:
    """Two rows for every position: what is conditional on being reached, and what is not."""
    rows = [
        (row.position, what, *_rate(rate))
        for row in positions
        for what, rate in (("conditional", row.conditional), ("survival", row.survival))
    ]
    return pd.DataFrame(rows, columns=["position", "what", *RATE])


def proposals_frame(proposals: Iterable[RejectedProposal]) -> pd.DataFrame:
    """One row for every refused proposal. Texts stand in quotes, so that blanks and line breaks are seen."""
    rows = [
        (
            repr(row.text),
            row.kind,
            row.rejected,
            row.tested,
            row.draft_prob,
            row.target_prob,
            ", ".join(f"{other.text!r} × {other.times}" for other in row.instead),  # noqa: RUF001 - a multiplication sign
        )
        for row in proposals
    ]
    return pd.DataFrame(
        rows, columns=["proposal", "kind", "rejected", "tested", "draft_prob", "target_prob", "instead"]
    )


RATE = ("accepted", "tested", "share", "low", "high")


def _rate(rate: Rate) -> tuple[object, ...]:
    return rate.successes, rate.trials, rate.value, rate.low, rate.high


def _value(value: object) -> str:
    if value is None:
        return "n/a"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else _shown(str(value))


def _shown(text: str) -> str:
    """Text that any browser takes: half a surrogate pair becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


def _shortened(prompt: str) -> str:
    """On one line, and no longer than a table needs."""
    line = " ".join(prompt.split())
    return line if len(line) <= LONGEST_PROMPT else f"{line[: LONGEST_PROMPT - 1]}…"


def _state(run: StoredRun) -> str:
    """A run that came to its end by an error or a cancel is called by that."""
    reason = run.record.get("finish_reason")
    return str(reason) if run.state == "finished" and reason in ("error", "cancelled") else run.state


def lossless_data(found: Lossless) -> dict[str, Any]:
    """What the bars of the lab show of a step: the law of the first token, the sentence, figures and tables."""
    output, target = found.step.beginning(1)
    return {
        "same": found.same,
        "sentence": found.sentence,
        "first_output": output.tolist(),
        "first_target": target.tolist(),
        "first_off": list(found.first_off),
        "figures": [
            {"name": figure.name, "title": figure.title, "value": figure.text, "detail": figure.detail}
            for figure in found.figures
        ],
        "tables": [asdict(table) for table in found.tables if table.rows],
    }


def trace_frame(trace: Trace) -> pd.DataFrame:
    """One row for every rule that judged a run, the run's own first."""
    return pd.DataFrame(
        [
            {
                "rule": f"{rule.name} (the run's)" if rule.own else rule.name,
                "law": "lossless" if rule.lossless else "lossy",
                "accepted": rule.accepted,
                "of drafted": rule.drafted,
                "tokens per step": rule.tokens_per_step,
                "expected tokens per step": rule.expected_tokens_per_step,
                "mean bias": rule.mean_bias,
                "largest bias": rule.largest_bias,
                "steps judged": rule.steps,
            }
            for rule in trace.rules
        ]
    )


RACE = {
    "policy": "policy",
    "verdict": "verdict",
    "tokens_per_step": "tokens per step",
    "acceptance_rate": "acceptance rate",
    "drafted": "drafted",
    "accepted": "accepted",
    "steps": "steps",
    "sentence": "in words",
    "about": "how it decides",
}


def race_frame(policies: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One row for every length policy of a race, of all its runs."""
    return pd.DataFrame([{words: row[name] for name, words in RACE.items()} for row in policies]).round(3)
