"""The law of the first token that a step emits under a rule, on laws of any size, and its distance to the target's.

For a rule that keeps a first token or replaces it, whatever follows has no part in that law, so it is enough to
look at drafts of one token: with draft q, chance k(x) to keep x, and law r(x) of the token instead of it,

    first(y) = q(y) k(y) + sum over x of q(x) (1 - k(x)) r(x, y).

All of it comes from `AcceptanceRule.chances`. Block verification looks at the tokens behind as well; averaged over
them it keeps the first one as the exact rule does, and a test holds that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.acceptance.base import AcceptanceRule
from engine.laws import highest
from engine.sampling import Dense, Law, OneHot, Rows
from engine.values import Draft

__all__ = ["MOST_DRAFTS", "Bias", "OnePosition", "first_token_bias"]

MOST_DRAFTS = 1024
"""First tokens to look at; where the draft has more, the most probable ones."""

LARGE_VOCABULARY, ENOUGH = 4096, 1 - 1e-4
"""With a larger vocabulary, where a look takes long, no more are looked at than have so much of the probability."""

Score = Callable[[int], float | None]
"""The draft's raw logit of a token, or None where it is not known."""


@dataclass(frozen=True, slots=True)
class Bias:
    """Total-variation distance of the law of the first token from the target's.

    `unknown` is the probability of the first tokens that were not looked at: the distance is known to within it.
    """

    distance: float
    unknown: float


class OnePosition(Rows):
    """The rows of one position, for a draft of one token: the row behind it is the same, and of no account.

    Parameters
    ----------
    rows : Rows
    index : int, default 0
        The position.
    """

    def __init__(self, rows: Rows, index: int = 0) -> None:
        self._rows = rows
        self._index = index

    def law(self, index: int) -> Law:
        """The law at the position."""
        return self._rows.law(self._index)

    def scores(self, index: int) -> NDArray[np.floating]:
        """See `Rows.scores`."""
        return self._rows.scores(self._index)

    def logit(self, index: int, token: int) -> float:
        """The raw logit of `token` at the position."""
        return self._rows.logit(self._index, token)

    def log_probability(self, index: int, token: int) -> float | None:
        """See `Rows.log_probability`."""
        return self._rows.log_probability(self._index, token)

    def margin(self, index: int, token: int) -> float | None:
        """See `Rows.margin`."""
        return self._rows.margin(self._index, token)


def first_token_bias(rule: AcceptanceRule, draft: Law, rows: Rows, *, score: Score | None = None) -> Bias:
    """How far the first token is from the target's law, the draft being drawn from `draft`.

    Parameters
    ----------
    rule : AcceptanceRule
    draft : Law
        That the first drafted token is drawn from, and that the rule is told.
    rows : Rows
        Row 0 is the target's.
    score : callable, optional
        The draft's raw logits, for a rule that looks at them.

    Raises
    ------
    DraftError
        If the rule cannot judge such a draft.

    Examples
    --------
    >>> from engine.acceptance import ExactRejection, NaiveThreshold
    >>> from engine.sampling import Sampling
    >>> rows = Rows(np.log([[0.5, 0.3, 0.2]]), Sampling(temperature=1))
    >>> draft = Dense(np.array([0.6, 0.3, 0.1]))
    >>> round(first_token_bias(ExactRejection(), draft, rows).distance, 12)
    0.0
    >>> greedy = first_token_bias(NaiveThreshold(0.1), OneHot(0), rows, score=lambda token: np.log(0.6))
    >>> round(greedy.distance, 12)
    0.5
    """
    place = OnePosition(rows)
    target = rows.law(0)
    vocab_size = len(rows.scores(0))
    first = np.zeros(vocab_size)
    looked_at = 0.0
    for token, probability in _drafted(draft, vocab_size):
        logit = score(token) if score else None
        one = Draft((token,), (draft,), None if logit is None else (logit,))
        (refused, instead), (kept, _) = rule.chances(one, place)
        looked_at += probability
        first[token] += probability * kept
        if refused > 0:
            _add(first, instead, probability * refused)
    unknown = max(0.0, 1.0 - looked_at)
    row = target.dense(vocab_size)
    first += unknown * row
    return Bias(0.5 * float(np.abs(first - row).sum()), unknown if unknown > 1e-12 else 0.0)


def _drafted(draft: Law, vocab_size: int) -> list[tuple[int, float]]:
    """The tokens that may be drafted first, with their probabilities."""
    if isinstance(draft, OneHot):
        return [(draft.token, 1.0)]
    possible = np.flatnonzero(draft.probs)
    if len(possible) > MOST_DRAFTS or vocab_size > LARGE_VOCABULARY:
        possible = possible[highest(draft.probs[possible], MOST_DRAFTS)]
        if vocab_size > LARGE_VOCABULARY:
            possible = possible[: 1 + int(np.searchsorted(draft.probs[possible].cumsum(), ENOUGH))]
    tokens = possible if isinstance(draft, Dense) else draft.tokens[possible]
    return list(zip(tokens.tolist(), draft.probs[possible].tolist(), strict=True))


def _add(first: NDArray[np.float64], law: Law, weight: float) -> None:
    if isinstance(law, OneHot):
        first[law.token] += weight
    elif isinstance(law, Dense):
        first[: len(law.probs)] += weight * law.probs
    else:
        first[law.tokens] += weight * law.probs
