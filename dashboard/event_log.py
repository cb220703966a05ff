"""The log of a run as the page reads it: increments of JSON from a cursor.

One thread adds events; any number of readers ask for what is new since their cursor, so the size
of an answer depends on what is new and not on the length of the run. Every entry is turned into
JSON once, when it is added. The figures in an answer are the engine's (`engine.metrics`), and so
are the words that explain a step, which is told on demand (`engine.explain`).

For a replay the log also tells the figures after every step. They are counted from the steps when somebody
asks, so that a run that is only looked at costs nothing for them, and read on their own, so that the
increments of a run that goes on stay small.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from threading import Lock
from typing import Any, Literal

from engine.explain import explain
from engine.metrics import Figures, Point, PositionFigures, Tally
from engine.values import Decision, Drafted, Event, Finished, Started, Step

__all__ = ["EventLog", "State"]

State = Literal["starting", "prefill", "running", "paused", "finished"]
ENTRY = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
POINT = tuple(field.name for field in fields(Point))
MOST_ENTRIES = 2000
"""Entries in one answer: a reader that comes late catches up in several."""

POSITIONS = tuple(field.name for field in fields(PositionFigures))
FIGURES = tuple(field.name for field in fields(Figures) if field.name != "per_position")


class EventLog:
    """An append-only log with running figures.

    Parameters
    ----------
    replayed : bool, default True
        Keep what a replay and the inspector ask for: every step, and the figures after it.

    Attributes
    ----------
    state : State
        Where the run stands; set by its owner.
    """

    def __init__(self, *, replayed: bool = True) -> None:
        self.state: State = "starting"
        self._loading: dict[str, Any] | None = None
        self._replayed = replayed
        self._lock = Lock()
        self._entries: list[str] = []
        self._steps: dict[int, Step] = {}
        self._tally = Tally()
        self._course: list[str] = []  # the figures after so many steps, as far as somebody has asked
        self._course_tally = Tally()  # stands where the course ends
        self._started: Started | None = None
        self._reason: str | None = None
        self._error = ""

    def load(self, doing: str, done: int, total: int) -> None:
        """Note how far the loading of the models is (`engine.models.base.LoadProgress`)."""
        self._loading = {"doing": doing, "done": done, "total": total}

    def add(self, event: Event) -> None:
        """Append an event."""
        with self._lock:
            self._tally.add(event)
            match event:
                case Started():
                    self._started = event
                    self._append("prompt", event.prompt_text)
                case Drafted():
                    self._append("draft", event.index, event.tokens, event.texts, event.note, event.parents)
                case Step():
                    decisions = [_wire_decision(decision) for decision in event.decisions]
                    if self._replayed:
                        self._steps[event.index] = event
                    self._append("step", event.index, decisions, event.note, _wire_point(self._tally.point()))
                case Finished():
                    self._reason, self._error = event.reason, event.error
                    self.state = "finished"

    def fail(self, error: str) -> None:
        """End a run that could not even start."""
        with self._lock:
            self._reason, self._error = "error", error
            self.state = "finished"

    @property
    def error(self) -> str:
        """What went wrong, in words for a user; empty if nothing did."""
        return self._error

    def __len__(self) -> int:
        return len(self._entries)

    def since(self, cursor: int) -> str:
        """One JSON object: the entries from `cursor` on, the state, and the figures so far."""
        with self._lock:
            end = min(len(self._entries), cursor + MOST_ENTRIES)
            head = {
                "from": cursor,
                "next": max(cursor, end),
                "more": end < len(self._entries),
                "state": self.state,
                "loading": self._loading if self.state == "starting" else None,
                "reason": self._reason,
                "error": self._error,
                "simulated": bool(self._started and self._started.simulated),
                "lossless": self._started is None or self._started.lossless,
                "backend": self._started.backend if self._started else "",
                "exact_rows": bool(self._started and self._started.exact_rows),
                "figures": _wire_figures(self._tally),
            }
            entries = ",".join(self._entries[cursor:end])
        return f'{json.dumps(head, separators=(",", ":"))[:-1]},"entries":[{entries}]}}'

    def step(self, index: int) -> str | None:
        """All that is known of a step, as one JSON object (`engine.explain.explain`); None if there is no such step."""
        with self._lock:
            step, started = self._steps.get(index), self._started
        if step is None:
            return None
        told = explain(step, **({"rule": started.rule} if started else {}))
        return json.dumps(_shortened(told), separators=(",", ":"), ensure_ascii=False)

    def figures_since(self, cursor: int) -> str:
        """One JSON object: the figures after `cursor` steps, after one more, and so on.

        A row has the values of `names.figures`, and behind them the values of `names.positions` for every
        draft position. Row 0 stands before the first step.
        """
        with self._lock:
            states = self._states()
            end = min(len(states), cursor + MOST_ENTRIES)
            for event in states[len(self._course) : end]:
                self._course_tally.add(event)
                self._course.append(_wire_row(self._course_tally.figures()))
            names = {"figures": FIGURES, "positions": POSITIONS}
            head = {"from": cursor, "more": end < len(states), "names": names}
            rows = ",".join(self._course[cursor:end])
        return f'{json.dumps(head, separators=(",", ":"))[:-1]},"rows":[{rows}]}}'

    def _states(self) -> list[Started | Step]:
        """What led to the state after no step, after one, and so on."""
        return [self._started, *self._steps.values()] if self._replayed and self._started else []

    def _append(self, *entry: Any) -> None:
        self._entries.append(ENTRY.encode(entry))


def _wire_decision(decision: Decision) -> list[Any]:
    return [
        decision.outcome,
        decision.draft_token,
        decision.draft_text,
        decision.target_token,
        decision.target_text,
        decision.target_parts,
        int(decision.discarded),
        *map(_short, (decision.draft_prob, decision.target_prob)),
        *_apart(decision.accept_prob, decision.draw),
        _short(decision.emitted_prob),
        decision.parent,
    ]


def _wire_point(point: Point) -> dict[str, Any]:
    return {name: _short(getattr(point, name)) for name in POINT}


def _wire_figures(tally: Tally) -> dict[str, Any]:
    figures = asdict(tally.figures())
    figures["per_position"] = [{name: _short(value) for name, value in row.items()} for row in figures["per_position"]]
    return {name: _short(value) for name, value in figures.items()}


def _shortened(value: Any) -> Any:
    """`_short`, for whatever is in lists and dicts; a draw and what it is held against stay apart."""
    if isinstance(value, dict):
        shown = {name: _shortened(item) for name, item in value.items()}
        if "accept_prob" in value:
            shown["accept_prob"], shown["draw"] = _apart(value["accept_prob"], value["draw"])
        return shown
    return [_shortened(item) for item in value] if isinstance(value, list | tuple) else _short(value)


def _wire_row(figures: Figures) -> str:
    positions = [[_short(getattr(row, name)) for name in POSITIONS] for row in figures.per_position]
    return json.dumps([*(_short(getattr(figures, name)) for name in FIGURES), positions], separators=(",", ":"))


def _short(value: Any, digits: int = 6) -> Any:
    """Six digits are enough to look at; the store keeps every one."""
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def _apart(accept_prob: float | None, draw: float | None) -> tuple[float | None, float | None]:
    """Both with six digits, or with as many more as it takes to tell which is larger."""
    digits = 6
    while accept_prob != draw and _short(accept_prob, digits) == _short(draw, digits):
        digits += 1
    return _short(accept_prob, digits), _short(draw, digits)
