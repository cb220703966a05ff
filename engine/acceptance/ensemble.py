"""Ensemble: the exact rule, held against a mixture of the target's and the draft's law. Lossy, by a known distance.

The mixture is weight * target + (1 - weight) * draft, as in the ensemble verification that was proposed for
Hugging Face transformers (pull request 45979).  Where nothing was drafted the target speaks alone.

At temperature 0 there is nothing to mix: the target takes its most probable token, and so does the rule.
"""

from __future__ import annotations

from engine.acceptance.base import Needs
from engine.acceptance.chances import Chances
from engine.acceptance.exact import chances_in_order, judged_in_order
from engine.errors import SettingError
from engine.evidence import Source, Term
from engine.laws import total_variation
from engine.sampling import Law, Noise, OneHot, Rows
from engine.values import Draft, Tested, Verdict

__all__ = ["Ensemble"]


class Ensemble:
    """Keep a drafted token with probability min(1, mixture / draft_prob), so that it has the mixture's law.

    A refused token is replaced from the positive part of mixture - draft, which is the residual of the exact rule.

    Parameters
    ----------
    weight : float, default 0.8
        The target's share of the mixture, from 0 to 1: 1 is the exact rule, and lossless; 0 keeps all that is drafted.

    Raises
    ------
    SettingError
        If it is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from engine.sampling import Dense
    >>> target, draft = Dense(np.array([0.5, 0.3, 0.2])), Dense(np.array([0.2, 0.3, 0.5]))
    >>> round(Ensemble(0.8).distance(target, draft), 6)
    0.06
    """

    name = "ensemble"
    guarantee = (
        "Above temperature 0 a token at a drafted position has exactly the law weight * target + (1 - weight) * draft, "
        "one behind the draft the target's; at temperature 0 every token is the target's most probable one."
    )
    source = "Hugging Face transformers, pull request 45979; the test is that of arXiv 2211.17192, Algorithm 1"
    needs: Needs = "draft law"
    greedy_draft = False
    formula = "min(1, ({weight} * {target_prob} + {rest} * {draft_prob}) / {draft_prob}) = {accept_prob}"
    replacement: Source = "residual"

    def __init__(self, weight: float = 0.8) -> None:
        if not 0 <= weight <= 1:
            raise SettingError(f"ensemble_weight is {weight}; it must be from 0 (the draft) to 1 (the exact rule)")
        self.weight = weight
        self.lossless = weight == 1

    def judge(self, draft: Draft, rows: Rows, *, noise: Noise, start: int) -> Verdict:
        """See `AcceptanceRule.judge`."""
        return judged_in_order(self._tested, draft, rows, noise=noise, start=start)

    def chances(self, draft: Draft, rows: Rows) -> Chances:
        """See `AcceptanceRule.chances`."""
        return chances_in_order(self._tested, draft, rows)

    def distance(self, target: Law, draft: Law) -> float:
        """How far the law of a token that was drawn from `draft` and judged is from `target`, in total variation."""
        return (1 - self._weight(target)) * total_variation(target, draft)

    def _weight(self, target: Law) -> float:
        return 1.0 if isinstance(target, OneHot) else self.weight

    def _tested(self, token: int, *, draft: Law, target: Law, draw: float) -> Tested:
        draft_prob, target_prob, weight = draft.prob(token), target.prob(token), self._weight(target)
        mixed = weight * target_prob + (1 - weight) * draft_prob
        terms = (Term("weight", weight), Term("rest", 1 - weight))
        accepted = draw * draft_prob < mixed
        return Tested(accepted, draft_prob, target_prob, min(1.0, mixed / draft_prob), draw, terms)
