"""Runs as JSONL, one object a line, without loss: what `engine.import_jsonl` reads again.

A run is a header line, the events as `engine.event_json` writes them, and an end line with its
counts, by which a reader sees that nothing is missing.  A file may hold any number of runs, one
behind the other.  A `Drafted` event stands in the file only if its step never came: a step holds
all that its draft said.  The text is ASCII.  `docs/jsonl.md` explains every line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from engine.event_json import event_to_json
from engine.metrics import Figures, Tally
from engine.values import Drafted, Event, Step

if TYPE_CHECKING:
    from engine.stored_run import StoredRun

__all__ = ["SCHEMA", "counts", "run_jsonl"]

SCHEMA = 1


def run_jsonl(run: StoredRun, events: Iterable[Event]) -> Iterator[str]:
    """The lines of one run, each with its line break.

    Parameters
    ----------
    run : StoredRun
    events : iterable of Event
        All of its events, in order.

    Raises
    ------
    StoreError
        If an event holds something that JSON cannot, such as NaN.

    Examples
    --------
    >>> from engine.build import build
    >>> from engine.spec import RunSpec
    >>> from engine.stored_run import StoredRun
    >>> spec = RunSpec(prompt="The draft", max_tokens=3, seed=6)
    >>> run = StoredRun("a1", "2026-01-01T00:00:00+00:00", "finished", spec, {}, {})
    >>> [json.loads(line)["type"] for line in run_jsonl(run, build(spec).events())]
    ['run', 'started', 'step', 'finished', 'end']
    """
    yield _line(
        {
            "type": "run",
            "schema": SCHEMA,
            "id": run.id,
            "created_at": run.created_at,
            "spec": json.loads(run.spec.to_json()),
            "versions": run.versions,
            "tags": run.tags,
            "note": run.note,
        }
    )
    tally = Tally()
    n_events = 0
    for event in _without_known_guesses(events):
        tally.add(event)
        n_events += 1
        yield event_to_json(event) + "\n"
    yield _line({"type": "end", **counts(n_events, tally.figures())})


def _without_known_guesses(events: Iterable[Event]) -> Iterator[Event]:
    guess: Drafted | None = None  # a draft whose step has not come
    for event in events:
        if guess is not None and not (isinstance(event, Step) and event.guess == guess):
            yield guess
        guess = event if isinstance(event, Drafted) else None
        if guess is None:
            yield event
    if guess is not None:
        yield guess


def counts(n_events: int, figures: Figures) -> dict[str, Any]:
    """What the end line says: event lines, steps, drafted, accepted and emitted tokens, accepted ones by position.

    Examples
    --------
    >>> counts(0, Tally().figures())
    {'events': 0, 'steps': 0, 'drafted': 0, 'accepted': 0, 'emitted': 0, 'per_position': []}
    """
    return {
        "events": n_events,
        "steps": figures.steps,
        "drafted": figures.drafted,
        "accepted": figures.accepted,
        "emitted": figures.tokens_generated,
        "per_position": [row.accepted for row in figures.per_position],
    }


def _line(data: dict[str, Any]) -> str:
    return json.dumps(data, separators=(",", ":"), allow_nan=False) + "\n"
