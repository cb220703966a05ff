"""A run as one flat record: what the command line prints as JSON, the store keeps and a CSV row holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from engine.metrics import Figures, Tally, emitted_logprobs
from engine.values import Event, Finished, Started, Step

__all__ = ["Report"]


class Report:
    """Collects the events of one run and gives the record.

    Parameters
    ----------
    events : iterable of Event, optional
        Taken at once; more may follow with `add`.

    Examples
    --------
    >>> from engine.build import build
    >>> from engine.spec import RunSpec
    >>> record = Report(build(RunSpec(prompt="The draft", max_tokens=5)).events()).record()
    >>> record["tokens_generated"], record["finish_reason"], record["identities_ok"]
    (5, 'length', True)
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._tally = Tally()
        self._started: Started | None = None
        self._finished: Finished | None = None
        self._ids: list[int] = []
        self._logprobs: list[float | None] = []
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        """Take the next event."""
        self._tally.add(event)
        if isinstance(event, Started):
            self._started = event
        elif isinstance(event, Step):
            self._ids.extend(event.emitted)
            self._logprobs.extend(emitted_logprobs(event))
        elif isinstance(event, Finished):
            self._finished = event

    def figures(self) -> Figures:
        """The figures so far."""
        return self._tally.figures()

    def record(self) -> dict[str, Any]:
        """Who decoded what, the text and ids, and every figure; plain data, ready for JSON.

        `text` is None for a run that has not ended. `logprobs` has an entry for every id, or is None
        if they were not asked for.
        """
        started, finished = self._started, self._finished
        return {
            "target": started.target if started else None,
            "drafter": started.drafter if started else None,
            "rule": started.rule if started else None,
            "lossless": started.lossless if started else None,
            "backend": started.backend if started else None,
            "exact_rows": started.exact_rows if started else None,
            "seed": started.seed if started else None,
            "prompt_tokens": len(started.prompt) if started else None,
            "text": finished.text if finished else None,
            "ids": list(self._ids),
            "logprobs": list(self._logprobs) if any(value is not None for value in self._logprobs) else None,
            **asdict(self._tally.figures()),
        }
