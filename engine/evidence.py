"""What the probe keeps of a step: why every token of it is there. Small numbers, no row of a vocabulary.

A `Decision` has what a rule's test came to; evidence has what it was made of, and what else the
target, the draft and the residual would have said at the deciding position, which is the one that
gives the target's own token (rejected, bonus or plain).  `engine.probe` makes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["MOST_ALTERNATIVES", "Alternative", "Choice", "Evidence", "ExactTest", "PositionEvidence", "Source", "Term"]

MOST_ALTERNATIVES = 32
"""Most rows of alternatives that a probe keeps of a step."""

Source = Literal["target", "residual", "weighted residual", ""]
"""The law that the target's own token was drawn from; "" where the rule does not say."""


@dataclass(frozen=True, slots=True)
class Term:
    """A number that a rule's test is made of, by the name it has in the rule's formula; None if it is not finite."""

    name: str
    value: float | None


@dataclass(frozen=True, slots=True)
class ExactTest:
    """What the exact rule would have done at a position that another rule tested, with the same draws.

    Of chains only: the exact rule knows no siblings, so nothing in a tree is held against it.

    Attributes
    ----------
    accept_prob, draw : float
        Its acceptance probability, and the uniform number that the seed gives it here.
    accepted : bool
    token : int
        The token that it would have given: the drafted one, or its replacement from the residual.
    text : str
    """

    accept_prob: float
    draw: float
    accepted: bool
    token: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class PositionEvidence:
    """A tested position, if more is known of it than its `Decision` says.

    Attributes
    ----------
    position : int
        Place in the step, from 0.
    terms : tuple of Term
        The numbers of the rule's formula that are no field of the decision.
    exact : ExactTest or None
        None where the rule is the exact one, and in a tree.
    """

    position: int
    terms: tuple[Term, ...] = ()
    exact: ExactTest | None = None


@dataclass(frozen=True, slots=True)
class Alternative:
    """A token that could have stood at the deciding position, under each of the laws.

    Attributes
    ----------
    token : int
    text : str
    target_prob : float
    draft_prob, residual_prob : float or None
        None where nothing was drafted (bonus, plain).
    target_logit : float or None
        The logit behind penalties, at temperature 0 only, where the laws do not tell the alternatives apart;
        None for a token that the target bans.
    """

    token: int
    text: str
    target_prob: float
    draft_prob: float | None = None
    residual_prob: float | None = None
    target_logit: float | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The deciding position of a step.

    Attributes
    ----------
    position : int
    drawn_from : Source
    drawn_prob : float or None
        Probability of the token that was taken, in the law that it was drawn from.
    drawn_below : float or None
        Mass of the ids below it in that law: the token owns the stretch from here to
        `drawn_below + drawn_prob` of the line from 0 to 1.
    draw : float or None
        The uniform number that fell into the stretch; None, like `drawn_below`, where the token was drawn with Gumbel
        numbers instead.
    target_entropy, draft_entropy : float or None
        In nats; None where nothing was drafted. In a tree, where several guesses were refused here, the
        draft's law is that of the first, and the residual is what all of them leave.
    total_variation : float or None
        Half the sum of the absolute differences of target and draft, 0 to 1. The exact rule refuses a
        guess that is drawn from the draft's law with just this probability.
    alternatives : tuple of Alternative
        The tokens that are most probable under any of the laws, the guess (of a tree, all siblings) and the token
        that was taken always among them; in falling order of target probability (temperature 0: of logit).
    target_others, draft_others, residual_others : float or None
        Mass of all tokens that are not listed.
    """

    position: int
    drawn_from: Source
    drawn_prob: float | None
    drawn_below: float | None
    draw: float | None
    target_entropy: float
    draft_entropy: float | None
    total_variation: float | None
    alternatives: tuple[Alternative, ...]
    target_others: float
    draft_others: float | None = None
    residual_others: float | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why the tokens of a step are there.

    Attributes
    ----------
    choice : Choice
    formula : str
        The rule's test, with the names of its numbers in braces; "" if the rule has none to show.
    positions : tuple of PositionEvidence
        Only positions with more to say than their decisions do.
    """

    choice: Choice
    formula: str = ""
    positions: tuple[PositionEvidence, ...] = ()
