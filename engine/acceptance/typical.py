"""Typical acceptance: keep every guess that the target finds plausible enough. Lossy at temperatures above 0.

Cai et al., *Medusa*, arXiv 2401.10774, section 2.3.1, with the defaults of its code (epsilon 0.09, delta 0.3).
A step here ends with a token of the target's own, which is the first token of the next block there: so
every step gets on, whatever is refused.  At temperature 0 the target's law is all on one token, and only
that one is plausible.
"""

from __future__ import annotations

import math

from engine.acceptance.base import Needs
from engine.acceptance.chances import Chances, one_by_one
from engine.errors import SettingError
from engine.evidence import Source, Term
from engine.laws import entropy
from engine.sampling import Law, Noise, Purpose, Rows
from engine.values import Draft, Tested, Verdict

__all__ = ["TypicalAcceptance"]


class TypicalAcceptance:
    """Keep a drafted token if target_prob > min(threshold, scale * exp(-entropy)), the entropy being the target's.

    A token that the target is sure of is kept whatever is asked for: a probability of 1 cannot be exceeded. A refused
    token is replaced by one drawn from the whole of the target's law.

    Parameters
    ----------
    threshold : float, default 0.09
        Medusa's epsilon: what is asked for at most. From 0 to 1.
    scale : float, default 0.3
        Medusa's delta: what is asked for is less where the target is open, its entropy (in nats) above
        ln(scale / threshold). From 0 to 1.

    Raises
    ------
    SettingError
        If a parameter is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from engine.sampling import Dense
    >>> asked_for = TypicalAcceptance().asked_for
    >>> asked_for(Dense(np.array([0.5, 0.3, 0.2]))), round(asked_for(Dense(np.full(1000, 0.001))), 6)
    (0.09, 0.0003)
    """

    name = "typical"
    lossless = False
    guarantee = (
        "None at temperatures above 0: what is plausible enough to the target is kept for sure, "
        "so the text drifts towards the draft's guesses."
    )
    source = "Cai et al. 2024 (Medusa), arXiv 2401.10774, section 2.3.1"
    needs: Needs = "nothing"
    greedy_draft = True
    formula = "{target_prob} is held against min({threshold}, {scale} * exp(-{entropy})) = {asked_for}"
    replacement: Source = "target"

    def __init__(self, threshold: float = 0.09, scale: float = 0.3) -> None:
        for name, value in (("typical_threshold", threshold), ("typical_scale", scale)):
            if not 0 <= value <= 1:
                raise SettingError(f"{name} is {value}; it must be from 0 to 1")
        self.threshold = threshold
        self.scale = scale

    def asked_for(self, target: Law) -> float:
        """The probability that a guess must exceed."""
        return min(self.threshold, self.scale * math.exp(-entropy(target)))

    def judge(self, draft: Draft, rows: Rows, *, noise: Noise, start: int) -> Verdict:
        """See `AcceptanceRule.judge`. No number is drawn but for the target's own token."""
        tests: list[Tested] = []
        for index, (token, draft_law) in enumerate(zip(draft.tokens, draft.laws, strict=True)):
            target = rows.law(index)
            asked_for, target_prob = self.asked_for(target), target.prob(token)
            accepted = _plausible(target_prob, asked_for)
            terms = (
                Term("threshold", self.threshold),
                Term("scale", self.scale),
                Term("entropy", entropy(target)),
                Term("asked_for", asked_for),
            )
            tests.append(Tested(accepted, draft_law.prob(token), target_prob, float(accepted), None, terms))
            if not accepted:
                break
        n_accepted = sum(test.accepted for test in tests)
        return Verdict(tuple(tests), noise.draw(rows.law(n_accepted), start + n_accepted, Purpose.TARGET))

    def chances(self, draft: Draft, rows: Rows) -> Chances:
        """See `AcceptanceRule.chances`; every probability is 0 or 1."""
        laws = [rows.law(index) for index in range(len(draft.tokens) + 1)]
        kept = [
            float(_plausible(law.prob(token), self.asked_for(law)))
            for token, law in zip(draft.tokens, laws[:-1], strict=True)
        ]
        return one_by_one(kept, laws)


def _plausible(target_prob: float, asked_for: float) -> bool:
    """Whether a guess is kept; more than 1 cannot be had, so 1 is always enough."""
    return target_prob > asked_for or target_prob == 1
