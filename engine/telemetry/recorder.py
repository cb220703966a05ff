"""From the events of a run to what is counted, whatever holds the counters.

The counts are those that vLLM and the server of llama.cpp report (`spec_decode_num_drafts` and its
kin), taken from the same steps: a step without a draft is no draft, an accepted token counts though
it may be discarded later, and positions are counted from 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from engine.telemetry.labels import LabelLimit, Labels
from engine.values import Event, Finished, FinishReason, Started, Step

__all__ = ["Instruments", "Recorder", "StepCounts", "position_label"]

MOST_POSITIONS = 64


def position_label(position: int) -> str:
    """A draft position as a label, from "0"; those from 63 on share one.

    Examples
    --------
    >>> position_label(2), position_label(200)
    ('2', '63+')
    """
    return str(position) if position < MOST_POSITIONS - 1 else f"{MOST_POSITIONS - 1}+"


@dataclass(frozen=True, slots=True)
class StepCounts:
    """What one step adds.

    Attributes
    ----------
    drafted, accepted, emitted : int
        Tokens.
    depth : int
        Positions that were drafted: as many as tokens, but in a tree siblings share theirs.
    seconds : float
        Of the run's clock, simulated or not.
    """

    drafted: int
    accepted: int
    emitted: int
    depth: int
    seconds: float


class Instruments(Protocol):
    """The counters of one monitoring system; used by several threads at once."""

    def step(self, labels: Labels, counts: StepCounts) -> None:
        """Add a step."""

    def run(self, labels: Labels, reason: FinishReason) -> None:
        """Add a run that has ended."""


class Recorder:
    """Takes the events of one run, from its beginning.

    Parameters
    ----------
    instruments : Instruments
    limit : LabelLimit
        Shared by all runs that these instruments count.
    """

    def __init__(self, instruments: Instruments, limit: LabelLimit) -> None:
        self._instruments = instruments
        self._limit = limit
        self._labels: Labels | None = None

    def add(self, event: Event) -> None:
        """Take the next event; what comes before `Started` belongs to no run and is not counted."""
        if isinstance(event, Started):
            self._labels = self._limit.of(event)
        if self._labels is None:
            return
        if isinstance(event, Step):
            seconds = event.draft_seconds + event.verify_seconds + event.overhead_seconds
            counts = StepCounts(event.n_drafted, event.n_accepted, len(event.emitted), event.depth, seconds)
            self._instruments.step(self._labels, counts)
        elif isinstance(event, Finished):
            self._instruments.run(self._labels, event.reason)
