"""From events to numbers: the only place where a figure is computed.

`Tally` takes events as they come and gives the figures so far; counts are pooled before anything
is divided, and a ratio with an empty denominator is None ("n/a" for a reader), never 0.
Formulas, units and sources of every figure: `docs/metrics.md`.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from engine.values import Drafted, Event, Finished, FinishReason, Started, Step

__all__ = ["Figures", "Point", "PositionFigures", "Tally", "emitted_logprobs", "measure", "perplexity", "ratio"]

WINDOW_STEPS = 20
"""Recent steps that the figures of a `Point` are taken over."""

NEAR_TIE = 1e-3
"""Logits closer than this may change places by rounding between one forward pass and another."""


LARGEST_EXPONENT = 709.0
"""What exp still gives a float of."""


def ratio(numerator: float, denominator: float) -> float | None:
    """The quotient, or None if the denominator is empty.

    Examples
    --------
    >>> ratio(1, 4), ratio(1, 0)
    (0.25, None)
    """
    return numerator / denominator if denominator > 0 else None


def perplexity(logprob_sum: float | None, n_tokens: int) -> float | None:
    """exp of the mean negative log-probability; None where there is none, or beyond the largest float.

    Examples
    --------
    >>> round(perplexity(-6.931472, 10), 3), perplexity(None, 10)
    (2.0, None)
    """
    if logprob_sum is None or not n_tokens or -logprob_sum / n_tokens > LARGEST_EXPONENT:
        return None
    return math.exp(-logprob_sum / n_tokens)


def emitted_logprobs(step: Step) -> list[float | None]:
    """The log-probability of every token that a step emits, in order."""
    return [
        decision.logprob for decision in step.decisions if decision.target_token is not None and not decision.discarded
    ]


@dataclass(frozen=True, slots=True)
class PositionFigures:
    """One draft position, counted from 1, over all steps that proposed it; of trees, one depth.

    Attributes
    ----------
    drafted, tested, accepted : int
        Steps that proposed the position, judged it, kept it.
    survival : float or None
        accepted / drafted: the share that got this far.
    conditional : float or None
        accepted / tested: the share kept once everything before it was.
    """

    position: int
    drafted: int
    tested: int
    accepted: int
    survival: float | None
    conditional: float | None


@dataclass(frozen=True, slots=True)
class Point:
    """The course of a run, one point a step; rates over the last `WINDOW_STEPS` steps."""

    at: float
    tokens_per_second: float | None
    acceptance_rate: float | None
    acceptance_rate_total: float | None
    emitted: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything that is known of a run, as numbers. Counts are exact; times are seconds.

    `declined` counts tokens of trees that were refused before a sibling was tried; `per_token_acceptance` and
    `per_position` take siblings as one guess at their place. `recovered`, `bonus` and `plain` count the target's
    own tokens, discarded ones among them; `tokens_generated` is what was emitted; `near_ties` counts emitted
    tokens of a run at temperature 0 whose logit and the best other one were less than `NEAR_TIE` apart;
    `probe_seconds` is time for evidence, which is in no other time. `logprob_sum` and `perplexity` speak of all
    emitted tokens, and are None unless each of them has a log-probability.
    """

    tokens_generated: int
    steps: int
    drafting_steps: int
    drafted: int
    accepted: int
    rejected: int
    declined: int
    unreached: int
    recovered: int
    bonus: int
    plain: int
    discarded: int
    acceptance_rate: float | None
    per_token_acceptance: float | None
    tokens_per_step: float | None
    target_calls_saved: int
    accepted_length_histogram: tuple[int, ...]
    per_position: tuple[PositionFigures, ...]
    total_time: float
    prefill_seconds: float
    decode_seconds: float
    draft_seconds: float
    verify_seconds: float
    overhead_seconds: float
    probe_seconds: float
    draft_share: float | None
    verify_share: float | None
    overhead_share: float | None
    tokens_per_second: float | None
    speculation: str
    simulated: bool
    finish_reason: FinishReason | None
    error: str
    near_ties: int
    logprob_sum: float | None
    perplexity: float | None
    identities_ok: bool


@dataclass
class _Positions:
    drafted: list[int] = field(default_factory=list)
    tested: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)

    def add(self, depth: int, n_tested: int, n_accepted: int) -> None:
        for counts, reached in ((self.drafted, depth), (self.tested, n_tested), (self.accepted, n_accepted)):
            counts.extend([0] * (depth - len(counts)))
            for position in range(reached):
                counts[position] += 1

    def figures(self) -> tuple[PositionFigures, ...]:
        return tuple(
            PositionFigures(place + 1, drafted, tested, accepted, ratio(accepted, drafted), ratio(accepted, tested))
            for place, (drafted, tested, accepted) in enumerate(
                zip(self.drafted, self.tested, self.accepted, strict=True)
            )
        )


class Tally:
    """Running totals of one run.

    Examples
    --------
    >>> from engine.values import Decision
    >>> step = Step(0, 1, (Decision(0, "plain", target_token=3),), (3,), 0.0, 0.5, 0.0, 0.75)
    >>> tally = Tally()
    >>> tally.add(step)
    >>> tally.figures().tokens_per_second, tally.figures().prefill_seconds
    (2.0, 0.25)
    """

    def __init__(self) -> None:
        self._outcomes: Counter[str] = Counter()
        self._histogram: list[int] = []
        self._positions = _Positions()
        self._notes: Counter[str] = Counter()
        self._recent: deque[tuple[float, int, int, int]] = deque(maxlen=WINDOW_STEPS)
        self._emitted = self._discarded = self._steps = self._drafting_steps = self._drafted = self._near_ties = 0
        self._depths = 0  # drafted places: siblings of a tree stand at the same one
        self._draft_seconds = self._verify_seconds = self._overhead_seconds = self._probe_seconds = 0.0
        self._at = self._prefill_seconds = self._logprob_sum = 0.0
        self._n_logprobs = 0
        self._simulated = False
        self._reason: FinishReason | None = None
        self._error = ""

    def add(self, event: Event) -> None:
        """Take the next event of the run."""
        match event:
            case Started():
                self._simulated = event.simulated
            case Step():
                self._add_step(event)
            case Finished():
                self._reason, self._error = event.reason, event.error
                self._prefill_seconds, self._at = event.prefill_seconds, event.total_seconds
            case Drafted():
                pass

    def _add_step(self, step: Step) -> None:
        outcomes = Counter(decision.outcome for decision in step.decisions)
        n_drafted, n_accepted, depth = step.n_drafted, step.n_accepted, step.depth
        seconds = step.draft_seconds + step.verify_seconds + step.overhead_seconds
        if self._steps == 0:
            self._prefill_seconds = step.at_seconds - seconds
        self._steps += 1
        self._outcomes += outcomes
        self._discarded += sum(decision.discarded for decision in step.decisions)
        self._emitted += len(step.emitted)
        self._drafted += n_drafted
        self._depths += depth
        self._near_ties += sum(
            decision.margin is not None and abs(decision.margin) < NEAR_TIE and not decision.discarded
            for decision in step.decisions
        )
        for logprob in emitted_logprobs(step):
            if logprob is not None:
                self._n_logprobs += 1
                self._logprob_sum += logprob
        if n_drafted:
            self._drafting_steps += 1
            self._histogram.extend([0] * (depth + 1 - len(self._histogram)))
            self._histogram[n_accepted] += 1
            self._positions.add(depth, n_accepted + outcomes["rejected"], n_accepted)
        elif step.note:
            self._notes[step.note] += 1
        self._draft_seconds += step.draft_seconds
        self._verify_seconds += step.verify_seconds
        self._overhead_seconds += step.overhead_seconds
        self._probe_seconds += step.probe_seconds
        self._at = step.at_seconds
        self._recent.append((seconds, len(step.emitted), n_drafted, n_accepted))

    def point(self) -> Point:
        """Where the run stands after the last step."""
        columns = zip(*self._recent, strict=True) if self._recent else [()] * 4
        seconds, emitted, drafted, accepted = map(sum, columns)
        return Point(
            self._at,
            ratio(emitted, seconds),
            ratio(accepted, drafted),
            ratio(self._outcomes["accepted"], self._drafted),
            self._emitted,
        )

    def figures(self) -> Figures:
        """All figures so far."""
        outcomes = self._outcomes
        decode_seconds = self._draft_seconds + self._verify_seconds + self._overhead_seconds
        return Figures(
            tokens_generated=self._emitted,
            steps=self._steps,
            drafting_steps=self._drafting_steps,
            drafted=self._drafted,
            accepted=outcomes["accepted"],
            rejected=outcomes["rejected"],
            declined=outcomes["declined"],
            unreached=outcomes["unreached"],
            recovered=outcomes["rejected"],
            bonus=outcomes["bonus"],
            plain=outcomes["plain"],
            discarded=self._discarded,
            acceptance_rate=ratio(outcomes["accepted"], self._drafted),
            per_token_acceptance=ratio(outcomes["accepted"], outcomes["accepted"] + outcomes["rejected"]),
            tokens_per_step=ratio(self._emitted, self._steps),
            target_calls_saved=self._emitted - self._steps,
            accepted_length_histogram=tuple(self._histogram),
            per_position=self._positions.figures(),
            total_time=self._at,
            prefill_seconds=self._prefill_seconds,
            decode_seconds=decode_seconds,
            draft_seconds=self._draft_seconds,
            verify_seconds=self._verify_seconds,
            overhead_seconds=self._overhead_seconds,
            probe_seconds=self._probe_seconds,
            draft_share=ratio(self._draft_seconds, decode_seconds),
            verify_share=ratio(self._verify_seconds, decode_seconds),
            overhead_share=ratio(self._overhead_seconds, decode_seconds),
            tokens_per_second=ratio(self._emitted, decode_seconds),
            speculation=self._speculation(),
            simulated=self._simulated,
            finish_reason=self._reason,
            error=self._error,
            near_ties=self._near_ties,
            logprob_sum=self._whole_logprob(),
            perplexity=perplexity(self._whole_logprob(), self._emitted),
            identities_ok=self._identities_ok(),
        )

    def _whole_logprob(self) -> float | None:
        whole = self._n_logprobs == self._emitted > 0 and math.isfinite(self._logprob_sum)
        return self._logprob_sum if whole else None

    def _speculation(self) -> str:
        """Whether the drafter is of use, and why not if it is not, in words for a user."""
        if not self._steps:
            return "not started"
        if not self._drafting_steps:
            note = self._notes.most_common(1)
            return "inactive: " + (note[0][0] if note else "nothing was drafted")
        accepted = self._outcomes["accepted"]
        drafts = f"{self._drafting_steps} of {self._steps} steps drafted"
        if not accepted:
            return f"active, without effect: {drafts}, and not one of {self._drafted} drafted tokens was accepted"
        return f"active: {drafts}"

    def _identities_ok(self) -> bool:
        """The bookkeeping that every run satisfies (`docs/metrics.md`, Identities)."""
        outcomes = self._outcomes
        own = outcomes["rejected"] + outcomes["bonus"] + outcomes["plain"]
        positions = self._positions.figures()
        return (
            self._emitted + self._discarded == outcomes["accepted"] + own
            and self._steps == own
            and self._drafted
            == outcomes["accepted"] + outcomes["rejected"] + outcomes["declined"] + outcomes["unreached"]
            and sum(self._histogram) == self._drafting_steps
            and sum(place * steps for place, steps in enumerate(self._histogram)) == outcomes["accepted"]
            and sum(row.drafted for row in positions) == self._depths <= self._drafted
            and sum(row.tested for row in positions) == outcomes["accepted"] + outcomes["rejected"]
            and sum(row.accepted for row in positions) == outcomes["accepted"]
        )


def measure(events: Iterable[Event]) -> Figures:
    """The figures of a whole run."""
    tally = Tally()
    for event in events:
        tally.add(event)
    return tally.figures()
