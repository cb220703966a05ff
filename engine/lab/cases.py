"""Worked cases: small pairs on which a rule shows what it does, with what is known of the outcome.

The numbers are exact, and a test holds the enumeration to each of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from engine.acceptance.tree import children_of
from engine.lab.enumerate import Proposal
from engine.lab.small_pair import SmallPair
from engine.rules import RULES
from engine.spec import RunSpec

__all__ = ["CASES", "CHAIN_RULES", "Case"]


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
OPPOSITE_PAIR = SmallPair((0.5, 0.3, 0.2), (0.2, 0.3, 0.5))
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
        "Two thirds, by block verification",
        "The same two laws, judged as a block: 11/9 are accepted, and the law is still the target's.",
        THIRDS,
        rule="block",
        draft_length=2,
    ),
    Case(
        "Three drafted, by block verification",
        "With these laws the exact rule accepts 1.952 of 3 and block verification 2.074.",
        SmallPair((0.5, 0.3, 0.2), (0.3, 0.3, 0.4)),
        rule="block",
        draft_length=3,
    ),
    Case(
        "Sample-match",
        "The target draws its own token, and the guess is kept if it is the same: lossless for any draft, but a drawn "
        "one is kept with 0.41 where the exact rule keeps 0.9. An argmax draft does better, 0.5.",
        PLAIN_PAIR,
        rule="sample-match",
    ),
    Case(
        "Gumbel-coupled sample-match",
        "Draft and target draw with the same numbers, so they agree far more often: 0.873, near the 0.9 of the "
        "exact rule.",
        PLAIN_PAIR,
        rule="gumbel",
    ),
    Case(
        "Lenience 0.5",
        "The draft's probability counts half: 0.9 are accepted where the exact rule has 0.7, and the distance is "
        "exactly the difference, 0.2.",
        OPPOSITE_PAIR,
        rule="lenience",
        settings=(("lenience", 0.5),),
    ),
    Case(
        "Ensemble, weight 0.8",
        "What comes out is 0.8 target + 0.2 draft: a distance of 0.2 times that of the laws, 0.06; 0.76 are accepted.",
        OPPOSITE_PAIR,
        rule="ensemble",
        settings=(("ensemble_weight", 0.8),),
    ),
    Case(
        "Typical acceptance of a drawn draft",
        "Every token is plausible enough, above 0.09, so all are kept and the draft's law comes out: a distance "
        "of 0.3.",
        OPPOSITE_PAIR,
        rule="typical",
        settings=(("typical_threshold", 0.09), ("typical_scale", 0.3)),
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

CHAIN_RULES: tuple[str, ...] = tuple(name for name, make in RULES.items() if children_of(make(RunSpec())) is None)
"""The rules that show what they do on a chain; on one, those that judge trees are the exact rule or sample-match."""
