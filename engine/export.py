"""Runs as CSV, line by line: one row a run, a step, or a decision. `docs/csv.md` explains every column.

Nothing is built before it is asked for: each function yields lines, header first.  Ids and texts
stand in separate columns; text that a spreadsheet would run is made harmless (`engine.csv_text`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from engine.csv_text import Cell, csv_line, to_bytes, write_csv
from engine.metrics import Figures
from engine.spec import RunSpec
from engine.values import Decision, Event, Started, Step

if TYPE_CHECKING:
    from engine.stored_run import StoredRun

__all__ = [
    "RUN_COLUMNS",
    "STEP_COLUMNS",
    "TOKEN_COLUMNS",
    "runs_csv",
    "steps_csv",
    "to_bytes",
    "tokens_csv",
    "write_csv",
]

FIGURES = tuple(field.name for field in fields(Figures))

RUN_COLUMNS = (
    "run_id",
    "created_at",
    "state",
    *(field.name for field in fields(RunSpec)),
    "target_name",
    "drafter_name",
    "backend_name",
    "rows_are_exact",
    "lossless",
    "prompt_tokens",
    *FIGURES,
    "text",
    "versions",
    "tags",
    "note",
)
OUTCOMES = ("accepted", "rejected", "declined", "unreached", "recovered", "bonus", "plain", "discarded")
STEP_SECONDS = ("draft_seconds", "verify_seconds", "overhead_seconds", "probe_seconds", "at_seconds")
STEP_COLUMNS = (
    "run_id", "step", "context_length", "drafted", *OUTCOMES, "emitted", *STEP_SECONDS, "simulated", "lossless", "note",
    "seed",
)  # fmt: skip
DECISION_FIELDS = tuple(field.name for field in fields(Decision))
TOKEN_COLUMNS = ("run_id", "step", *DECISION_FIELDS, "seed")


def runs_csv(runs: Iterable[StoredRun]) -> Iterator[str]:
    """One row a run: its settings, its figures, its text.

    Lists (`stop`, `accepted_length_histogram`, `per_position`, `versions`, `tags`) are JSON in their cell.
    `target`, `drafter`, `backend` and `exact_rows` are what was asked for, `target_name`,
    `drafter_name`, `backend_name` and `rows_are_exact` what that was.

    Examples
    --------
    >>> next(runs_csv([])).split(",")[:5]
    ['run_id', 'created_at', 'state', 'target', 'drafter']
    """
    yield csv_line(RUN_COLUMNS)
    for run in runs:
        record = run.record
        yield csv_line(
            [
                run.id,
                run.created_at,
                run.state,
                *(_cell(getattr(run.spec, field.name)) for field in fields(RunSpec)),
                record.get("target"),
                record.get("drafter"),
                record.get("backend"),
                record.get("exact_rows"),
                record.get("lossless"),
                record.get("prompt_tokens"),
                *(_cell(record.get(name)) for name in FIGURES),
                record.get("text"),
                _cell(run.versions),
                _cell(run.tags),
                run.note,
            ]
        )


def steps_csv(run_id: str, events: Iterable[Event], *, header: bool = True) -> Iterator[str]:
    """One row a step.

    Parameters
    ----------
    run_id : str
        May be empty.
    events : iterable of Event
        Of one run, from its beginning.
    header : bool, default True
        False when the rows follow those of another run.
    """
    if header:
        yield csv_line(STEP_COLUMNS)
    simulated = lossless = seed = None
    for event in events:
        if isinstance(event, Started):
            simulated, lossless, seed = event.simulated, event.lossless, event.seed
        if isinstance(event, Step):
            counts = _counts(event)
            yield csv_line(
                [
                    run_id,
                    event.index,
                    event.context_length,
                    event.n_drafted,
                    *(counts[outcome] for outcome in OUTCOMES),
                    len(event.emitted),
                    *(getattr(event, name) for name in STEP_SECONDS),
                    simulated,
                    lossless,
                    event.note,
                    seed,
                ]
            )


def tokens_csv(run_id: str, events: Iterable[Event], *, header: bool = True) -> Iterator[str]:
    """One row a decision, with the fields of `engine.values.Decision` and the run's seed; see `steps_csv`.

    Examples
    --------
    >>> started = Started("markov", "none", "exact", True, seed=7, prompt=(3,))
    >>> step = Step(0, 1, (Decision(0, "plain", target_token=3, target_text="=x"),), (3,), 0.0, 0.5, 0.0, 0.75)
    >>> header, row = tokens_csv("a1", [started, step])
    >>> row
    "a1,0,0,plain,,3,false,false,,,,,,,,,'=x,1,,7\\r\\n"
    """
    if header:
        yield csv_line(TOKEN_COLUMNS)
    seed = None
    for event in events:
        if isinstance(event, Started):
            seed = event.seed
        if isinstance(event, Step):
            for decision in event.decisions:
                yield csv_line([run_id, event.index, *(getattr(decision, name) for name in DECISION_FIELDS), seed])


def _counts(step: Step) -> dict[str, int]:
    counts = dict.fromkeys(OUTCOMES, 0)
    for decision in step.decisions:
        counts[decision.outcome] += 1
        counts["discarded"] += decision.discarded
    counts["recovered"] = counts["rejected"]
    return counts


def _cell(value: Any) -> Cell:
    """A value as it stands in a cell: lists and dicts are JSON."""
    if isinstance(value, (list, tuple, dict)):
        return json.dumps(value, ensure_ascii=False)
    cell: Cell = value
    return cell
