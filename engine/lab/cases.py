"""Worked cases: small pairs on which a rule shows what it does, with what is known of the outcome.

The numbers are exact, and a test holds the enumeration to each of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from engine.lab.enumerate import Proposal
from engine.lab.small_pair import SmallPair
from engine.spec import RunSpec

__all__ = ["CASES", "Case"]


@dataclass(frozen=True, slots=True)
class Case:
    """A worked case.

    Attributes
    ----------
    title : str
    words : str
        What is to be seen, for a reader.
    pair : SmallPair
    rule : str
    settings : tuple of (str, value)
        The rule's parameters, by their names in a `RunSpec`.
    draft_length : int
    proposal : str
        See `engine.lab.enumerate.Proposal`.
    """

    title: str
    words: str
    pair: SmallPair
    rule: str = "exact"
    settings: tuple[tuple[str, Any], ...] = ()
    draft_length: int = 1
    proposal: Proposal = "sampled"

    @property
    def spec(self) -> RunSpec:
        """The rule and its parameters."""
        return replace(RunSpec(rule=self.rule), **dict(self.settings))


PLAIN_PAIR = SmallPair((0.5, 0.3, 0.2), (0.6, 0.3, 0.1))
THIRDS = SmallPair((1 / 3, 2 / 3), (2 / 3, 1 / 3))
LOSSLESS_NAIVE = "No acceptance, so the target's law and nothing gained."

CASES: tuple[Case, ...] = (
    Case(
        "Exact rule",
        "Each token is kept with min(1, target / draft), or replaced from what the target has more. Exactly the "
        "target's law; 0.9 tokens are accepted, which is 1 - the distance of the two laws.",
        PLAIN_PAIR,
    ),
    Case(
        "Bug: softmax of an argmax draft",
        "The draft always proposes its most probable token, but hands its softmax to the rule as if it had drawn "
        "from it. A real and common bug: what comes out is (0.833, 0, 0.167), a distance of 0.333.",
        PLAIN_PAIR,
        proposal="argmax, softmax handed over",
    ),
    Case(
        "Argmax draft, told as it is",
        "The same draft, and the rule is told that there was no other choice: kept with the target's probability of "
        "it, 0.5. The target's law again.",
        PLAIN_PAIR,
        proposal="argmax",
    ),
    Case(
        "Drawn, but told as certain",
        "The other way round nothing breaks: a token that was drawn, and told as if it were the only choice. "
        "Lossless, but fewer are accepted: 0.41 where 0.9 could be.",
        PLAIN_PAIR,
        proposal="sampled, one-hot handed over",
    ),
    Case(
        "Two thirds, two tokens",
        "Laws of two tokens the other way round, two drafted: the exact rule accepts 10/9 of them.",
        THIRDS,
        draft_length=2,
    ),
    Case(
        "Naive rule, case A",
        "exp(draft logit - target logit) is 1.2, above 1.111: accepted without a draw, always. Token a alone comes "
        "out, a distance of 0.5.",
        PLAIN_PAIR,
        rule="naive",
        settings=(("acceptance_probability", 0.1),),
        proposal="argmax",
    ),
    Case(
        "Naive rule, case B: the target likes it",
        f"The target likes the proposal more than the draft does, so the naive rule refuses it. {LOSSLESS_NAIVE}",
        SmallPair((0.9, 0.06, 0.04), (0.5, 0.3, 0.2)),
        rule="naive",
        settings=(("acceptance_probability", 0.1),),
        proposal="argmax",
    ),
    Case(
        "Naive rule, case C: the target refuses it",
        "The target gives the proposal 0.01 and the draft 0.9: a quotient of 90, so it is accepted, always. A distance "
        "of 0.99.",
        SmallPair((0.01, 0.6, 0.39), (0.9, 0.06, 0.04)),
        rule="naive",
        settings=(("acceptance_probability", 0.1),),
        proposal="argmax",
    ),
    Case(
        "Naive rule, identical models",
        f"Two identical models: the quotient is 1, and more is asked for, whatever the parameter. {LOSSLESS_NAIVE}",
        SmallPair((0.5, 0.3, 0.2), (0.5, 0.3, 0.2)),
        rule="naive",
        settings=(("acceptance_probability", 0.1),),
        proposal="argmax",
    ),
    Case(
        "Naive rule, logits shifted",
        "Case A with 1 added to all of the target's logits, which changes no law: the quotient is 0.441 now, and what "
        "was always accepted is always refused.",
        replace(PLAIN_PAIR, target_shift=1.0),
        rule="naive",
        settings=(("acceptance_probability", 0.1),),
        proposal="argmax",
    ),
)
"""The worked cases, in the order in which they are offered."""
