"""What a step from elsewhere must be like, beyond the types of its fields, before anybody indexes or computes with it.

The engine makes no other steps (`engine.decisions`, `engine.probe`); a file may hold any.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields

from engine.errors import RunFileError
from engine.evidence import Evidence
from engine.tree import MOST_NODES, children
from engine.values import Decision, Drafted, Event, Outcome, Step

__all__ = ["check_guess", "check_step", "check_times"]

MOST_ENTROPY = math.log(2**32)
"""In nats, of an even choice among more tokens than any vocabulary has."""

ROUNDING = 1e-6
"""How far rounding may take a probability or an entropy out of its range."""

SHAPES: dict[Outcome, tuple[bool, bool, bool]] = {
    "accepted": (True, True, True),
    "rejected": (True, True, False),
    "declined": (True, False, False),
    "unreached": (True, False, False),
    "bonus": (False, True, False),
    "plain": (False, True, False),
}
"""By outcome: whether a decision has a drafted token, whether it has the target's, and whether it is accepted."""

CHAIN = re.compile(r"(accepted )+bonus |(accepted )*rejected (unreached )*|plain ")
"""The outcomes of a step that drafted a chain, in their order, with a space behind each."""

DECIDING: tuple[Outcome, ...] = ("rejected", "bonus", "plain")
"""The outcomes of the position that gives the target's own token."""

Named = Iterable[tuple[str, float | None]]


def check_guess(guess: Drafted) -> None:
    """Refuse a draft whose tokens and texts are not the same in number, or whose parents make no tree.

    Raises
    ------
    RunFileError

    Examples
    --------
    >>> check_guess(Drafted(0, 9, (4,), (" draft",), 0.5))
    >>> check_guess(Drafted(0, 9, (4, 5), (" draft", " target"), 0.5, parents=(-1, -1)))
    """
    if len(guess.tokens) != len(guess.texts):
        raise RunFileError(
            f"the draft of the step {guess.index} has {len(guess.tokens)} tokens and {len(guess.texts)} texts"
        )
    if guess.parents is not None:
        _check_parents(f"the draft of the step {guess.index}", guess.parents, len(guess.tokens))


def check_step(step: Step) -> None:
    """Refuse a step whose positions, decisions or evidence could not have come from a run.

    Positions must be 0, 1, 2, ...; every decision must have the tokens that its outcome says; outcomes must stand in
    the order in which a draft is judged; evidence must speak of positions of the step, its choice of the one that
    gives the target's own token; probabilities and total variation must lie from 0 to 1, entropies from 0 to
    ln 2**32; a log-probability must not be above 0, and belongs to a token.

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
    _check_way(step)
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


def _check_parents(where: str, parents: Sequence[int], n_tokens: int) -> None:
    if (
        len(parents) != n_tokens
        or not 1 <= n_tokens <= MOST_NODES
        or not all(-1 <= parent < place for place, parent in enumerate(parents))
    ):
        raise RunFileError(
            f"{where} is no tree: expected 1 to {MOST_NODES} tokens, and for each as its parent the place of one "
            "before it, or -1"
        )


def _check_way(step: Step) -> None:
    """The way that was taken through a draft, to the place where the target gave its own token.

    In a chain accepted tokens come first and unreached ones last; through a tree it goes from the root down, siblings
    in their order.
    """
    where = f"the step {step.index}"
    parents = step.parents
    if parents is None:
        if any(decision.parent is not None or decision.outcome == "declined" for decision in step.decisions):
            raise RunFileError(f"{where} has a parent or a declined token, and its draft is no tree")
        outcomes = [decision.outcome for decision in step.decisions]
        if not CHAIN.fullmatch("".join(f"{outcome} " for outcome in outcomes)):
            raise RunFileError(
                f"{where} has the outcomes {', '.join(outcomes)}; expected accepted ones and then a bonus, or a "
                "rejected one and unreached ones behind it; or plain alone"
            )
        return
    drafted, rest = step.decisions[: len(parents)], step.decisions[len(parents) :]
    if any(decision.draft_token is None or decision.parent is None for decision in drafted):
        raise RunFileError(f"{where} drafted a tree, and a token of it has no parent")
    _check_parents(where, parents, len(parents))
    below = children(parents)
    waiting, at = below[0], -1
    tried: set[int] = set()
    while waiting:
        place, *waiting = waiting
        outcome = drafted[place].outcome
        tried.add(place)
        if outcome == "accepted":
            waiting, at = below[place + 1], place
        elif outcome != ("declined" if waiting else "rejected"):
            raise RunFileError(f"{where} went another way through its tree than its outcomes say, at position {place}")
    if any(decision.outcome != "unreached" for place, decision in enumerate(drafted) if place not in tried):
        raise RunFileError(f"{where} judged a token that was not on its way through the tree")
    if [decision.parent for decision in rest] != ([] if below[at + 1] else [at]):  # a bonus, at the end of a branch
        raise RunFileError(f"{where} does not end its way through the tree with the target's own token")


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
