"""The naive logit threshold: a rule found in the wild, kept here to show why it is wrong.

As stated: the draft token is the argmax of the draft's logits; it is accepted if
exp(draft_logit - target_logit) > 1 / (1 - acceptance_probability); otherwise a token is sampled
from the target's softmax.  It is **lossy**:

- the direction is the wrong way round: it keeps what the draft likes *more* than the target does,
  and two identical models never accept anything;
- a larger `acceptance_probability` accepts less;
- a constant added to all logits of one model changes the decision, though it changes no law;
- nothing is drawn and nothing is taken from a residual, so a kept token has probability 1.

The text that states it cites arXiv 2207.05731, which could not be connected with speculative
decoding; the papers are Leviathan et al., arXiv 2211.17192, and Chen et al., arXiv 2302.01318.
"""

from __future__ import annotations

import math

from engine.acceptance.base import Needs
from engine.acceptance.chances import Chances, one_by_one
from engine.errors import DraftError, SettingError
from engine.evidence import Source, Term
from engine.sampling import Noise, Purpose, Rows
from engine.values import Draft, Tested, Verdict

__all__ = ["NO_LOGITS", "NaiveThreshold"]

NO_LOGITS = (
    "the naive rule compares raw logits, and this drafter has none; choose a model as the drafter, or the exact rule"
)


LARGEST_EXPONENT = 709.0
"""What exp still gives a float of."""


class NaiveThreshold:
    """Keep the draft's argmax if exp(draft_logit - target_logit) > 1 / (1 - acceptance_probability).

    Parameters
    ----------
    acceptance_probability : float, default 0.1
        In [0, 1). Despite its name, not the probability of anything.

    Raises
    ------
    SettingError
        If the parameter is out of range.
    DraftError
        On judging a draft without raw logits (an n-gram lookup has none).

    Examples
    --------
    >>> NaiveThreshold(0.5).accepts(draft_logit=1.0, target_logit=0.0)
    True
    >>> NaiveThreshold(0.5).accepts(draft_logit=1.0, target_logit=1.0)
    False
    """

    name = "naive"
    lossless = False
    guarantee = (
        "It keeps what the draft likes more than the target does, "
        "so the text drifts away from the target's law. For teaching."
    )
    source = "A rule found in the wild; compare arXiv 2211.17192 and arXiv 2302.01318"
    needs: Needs = "draft logits"
    greedy_draft = True
    formula = (
        "exp({draft_logit} - {target_logit}) = {quotient}, "
        "and more than 1 / (1 - {acceptance_probability}) = {threshold} is asked for"
    )
    replacement: Source = "target"

    def __init__(self, acceptance_probability: float = 0.1) -> None:
        if not 0 <= acceptance_probability < 1:
            raise SettingError(
                f"acceptance_probability is {acceptance_probability}; it must be from 0 up to, but not, 1"
            )
        self.acceptance_probability = acceptance_probability

    def accepts(self, draft_logit: float, target_logit: float) -> bool:
        """The rule's test, taken in logarithms so that no exponential overflows."""
        return draft_logit - target_logit > -math.log1p(-self.acceptance_probability)

    def _terms(self, draft_logit: float, target_logit: float) -> tuple[Term, ...]:
        difference = draft_logit - target_logit
        return (
            Term("draft_logit", _finite(draft_logit)),
            Term("target_logit", _finite(target_logit)),
            Term("quotient", math.exp(difference) if difference < LARGEST_EXPONENT else None),
            Term("acceptance_probability", self.acceptance_probability),
            Term("threshold", 1 / (1 - self.acceptance_probability)),
        )

    def judge(self, draft: Draft, rows: Rows, *, noise: Noise, start: int) -> Verdict:
        """See `AcceptanceRule.judge`."""
        tested: list[Tested] = []
        for index, (token, draft_logit) in enumerate(zip(draft.tokens, _logits(draft), strict=True)):
            target_logit = rows.logit(index, token)
            accepted = self.accepts(draft_logit, target_logit)
            draft_prob, target_prob = draft.laws[index].prob(token), rows.law(index).prob(token)
            terms = self._terms(draft_logit, target_logit)
            tested.append(Tested(accepted, draft_prob, target_prob, float(accepted), None, terms))
            if not accepted:
                break
        n_accepted = sum(test.accepted for test in tested)
        token = noise.draw(rows.law(n_accepted), start + n_accepted, Purpose.TARGET)
        return Verdict(tuple(tested), token)

    def chances(self, draft: Draft, rows: Rows) -> Chances:
        """See `AcceptanceRule.chances`; every probability is 0 or 1."""
        kept = [
            float(self.accepts(draft_logit, rows.logit(index, token)))
            for index, (token, draft_logit) in enumerate(zip(draft.tokens, _logits(draft), strict=True))
        ]
        return one_by_one(kept, [rows.law(index) for index in range(len(kept) + 1)])


def _logits(draft: Draft) -> tuple[float, ...]:
    if draft.tokens and draft.logits is None:
        raise DraftError(NO_LOGITS)
    return draft.logits or ()


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
