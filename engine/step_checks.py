"""What a step from elsewhere must be like, beyond the types of its fields, before anybody indexes or computes with it.

The engine makes no other steps (`engine.decisions`, `engine.probe`); a file may hold any.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import fields

from engine.errors import RunFileError
from engine.evidence import Evidence
from engine.values import Decision, Drafted, Event, Outcome, Step

__all__ = ["check_guess", "check_step", "check_times"]

MOST_ENTROPY = math.log(2**32)
"""In nats, of an even choice among more tokens than any vocabulary has."""

ROUNDING = 1e-6
"""How far rounding may take a probability or an entropy out of its range."""

SHAPES: dict[Outcome, tuple[bool, bool, bool]] = {
    "accepted": (True, True, True),
    "rejected": (True, True, False),
    "unreached": (True, False, False),
    "bonus": (False, True, False),
    "plain": (False, True, False),
}
"""By outcome: whether a decision has a drafted token, whether it has the target's, and whether it is accepted."""

DECIDING: tuple[Outcome, ...] = ("rejected", "bonus", "plain")
"""The outcomes of the position that gives the target's own token."""

Named = Iterable[tuple[str, float | None]]


def check_guess(guess: Drafted) -> None:
    """Refuse a draft whose tokens and texts are not the same in number.

    Raises
    ------
    RunFileError

    Examples
    --------
    >>> check_guess(Drafted(0, 9, (4,), (" draft",), 0.5))
    """
    if len(guess.tokens) != len(guess.texts):
        raise RunFileError(
            f"the draft of the step {guess.index} has {len(guess.tokens)} tokens and {len(guess.texts)} texts"
        )


def check_step(step: Step) -> None:
    """Refuse a step whose positions, decisions or evidence could not have come from a run.

    Positions must be 0, 1, 2, ...; every decision must have the tokens that its outcome says; evidence must
    speak of positions of the step, its choice of the one that gives the target's own token; probabilities
    and total variation must lie from 0 to 1, entropies from 0 to ln 2**32; a log-probability must not be
    above 0, and belongs to a token.

    Raises
    ------
    RunFileError

    Examples
    --------
    >>> check_step(Step(0, 1, (Decision(0, "plain", target_token=3),), (3,), 0.0, 0.5, 0.0, 0.75))
    """
    if not step.decisions:
        raise RunFileError(f"the step {step.index} has no decisions")
    for position, decision in enumerate(step.decisions):
        if decision.position != position:
            raise RunFileError(
                f"in the step {step.index} the position {position} must follow; this is the position "
                f"{decision.position}"
            )
        _check_decision(step, decision)
    if step.evidence is not None:
        _check_evidence(step, step.evidence)


def check_times(event: Event) -> None:
    """Refuse an event with a time below 0.

    Raises
    ------
    RunFileError

    Examples
    --------
    >>> check_times(Drafted(0, 9, (4,), (" draft",), -0.5))
    Traceback (most recent call last):
    engine.errors.RunFileError: the draft_seconds of the step 0 are -0.5; expected 0 or more
    """
    for field in fields(event):
        value = getattr(event, field.name)
        if field.name.endswith("_seconds") and value < 0:
            where = f"the step {event.index}" if isinstance(event, Drafted | Step) else "the end"
            raise RunFileError(f"the {field.name} of {where} are {value}; expected 0 or more")


def _check_decision(step: Step, decision: Decision) -> None:
    where = f"in the step {step.index} the position {decision.position}"
    shape = (decision.draft_token is not None, decision.target_token is not None, decision.accepted)
    if shape != SHAPES[decision.outcome]:
        raise RunFileError(f"{where} has other tokens than the outcome {decision.outcome!r} has")
    if decision.target_parts < 1:
        raise RunFileError(f"{where} has the target_parts {decision.target_parts}; expected 1 or more")
    names = ("draft_prob", "target_prob", "accept_prob", "draw", "emitted_prob")
    _check_shares(where, ((name, getattr(decision, name)) for name in names))
    if decision.logprob is not None and not decision.logprob <= ROUNDING:
        raise RunFileError(f"{where} has the logprob {decision.logprob}; expected 0 or less")
    if decision.logprob is not None and decision.target_token is None:
        raise RunFileError(f"{where} has a logprob, and no token that it would belong to")


def _check_evidence(step: Step, evidence: Evidence) -> None:
    where = f"the evidence of the step {step.index}"
    places = [evidence.choice.position, *(found.position for found in evidence.positions)]
    for position in places:
        if not 0 <= position < len(step.decisions):
            raise RunFileError(
                f"{where} speaks of the position {position}; the step has the positions 0 to {len(step.decisions) - 1}"
            )
    if step.decisions[evidence.choice.position].outcome not in DECIDING:
        raise RunFileError(
            f"{where} has its choice at the position {evidence.choice.position}, which does not give the target's token"
        )
    _check_shares(where, _shares_of(evidence))
    for name in ("target_entropy", "draft_entropy"):
        entropy = getattr(evidence.choice, name)
        if entropy is not None and not -ROUNDING <= entropy <= MOST_ENTROPY + ROUNDING:
            raise RunFileError(f"{where} has the {name} {entropy}; expected a number from 0 to {MOST_ENTROPY:.2f}")


def _shares_of(evidence: Evidence) -> Iterator[tuple[str, float | None]]:
    """All that is a probability, or a distance that lies between 0 and 1 as well."""
    for name in OF_A_CHOICE:
        yield name, getattr(evidence.choice, name)
    for row in evidence.choice.alternatives:
        for name in ("target_prob", "draft_prob", "residual_prob"):
            yield name, getattr(row, name)
    for found in evidence.positions:
        if found.exact is not None:
            yield "accept_prob", found.exact.accept_prob
            yield "draw", found.exact.draw


OF_A_CHOICE = (
    "drawn_prob",
    "drawn_below",
    "draw",
    "total_variation",
    "target_others",
    "draft_others",
    "residual_others",
)


def _check_shares(where: str, values: Named) -> None:
    for name, value in values:
        if value is not None and not -ROUNDING <= value <= 1 + ROUNDING:
            raise RunFileError(f"{where} has the {name} {value}; expected a number from 0 to 1")
