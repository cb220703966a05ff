"""The log of a run as the page reads it: increments of JSON from a cursor.

One thread adds events; any number of readers ask for what is new since their cursor, so the size
of an answer depends on what is new and not on the length of the run. Every entry is turned into
JSON once, when it is added. The figures in an answer are the engine's (`engine.metrics`).
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from threading import Lock
from typing import Any, Literal

from engine.metrics import Point, Tally
from engine.values import Decision, Drafted, Event, Finished, Started, Step

__all__ = ["EventLog", "State"]

State = Literal["starting", "prefill", "running", "paused", "finished"]
POINT = tuple(field.name for field in fields(Point))
MOST_ENTRIES = 2000
"""Entries in one answer: a reader that comes late catches up in several."""


class EventLog:
    """An append-only log with running figures.

    Attributes
    ----------
    state : State
        Where the run stands; set by its owner.
    """

    def __init__(self) -> None:
        self.state: State = "starting"
        self._lock = Lock()
        self._entries: list[str] = []
        self._tally = Tally()
        self._started: Started | None = None
        self._reason: str | None = None
        self._error = ""

    def add(self, event: Event) -> None:
        """Append an event."""
        with self._lock:
            self._tally.add(event)
            match event:
                case Started():
                    self._started = event
                    self._append("prompt", event.prompt_text)
                case Drafted():
                    self._append("draft", event.index, event.tokens, event.texts, event.note)
                case Step():
                    decisions = [_wire_decision(decision) for decision in event.decisions]
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

    def _append(self, *entry: Any) -> None:
        self._entries.append(json.dumps(entry, separators=(",", ":"), ensure_ascii=False))


def _wire_decision(decision: Decision) -> list[Any]:
    return [
        decision.outcome,
        decision.draft_token,
        decision.draft_text,
        decision.target_token,
        decision.target_text,
        decision.target_parts,
        int(decision.discarded),
        *map(_short, (decision.draft_prob, decision.target_prob, decision.accept_prob, decision.draw)),
        _short(decision.emitted_prob),
    ]


def _wire_point(point: Point) -> dict[str, Any]:
    return {name: _short(getattr(point, name)) for name in POINT}


def _wire_figures(tally: Tally) -> dict[str, Any]:
    figures = asdict(tally.figures())
    figures["per_position"] = [{name: _short(value) for name, value in row.items()} for row in figures["per_position"]]
    return {name: _short(value) for name, value in figures.items()}


def _short(value: Any) -> Any:
    """Six digits are enough to look at; the store keeps every one."""
    return float(f"{value:.6g}") if isinstance(value, float) else value
