"""Lenience: the exact rule with a draft that is taken for less sure than it is. Lossy, by a known distance.

Leviathan, Kalman, Matias, arXiv 2211.17192, appendix A.5.  The paper changes the test and leaves the
residual open; of the two that come to mind, the positive part of target - draft distorts less.
"""

from __future__ import annotations

from engine.acceptance.base import Needs
from engine.acceptance.chances import Chances
from engine.acceptance.exact import chances_in_order, excess, judged_in_order
from engine.errors import SettingError
from engine.evidence import Source, Term
from engine.sampling import Law, Noise, Rows
from engine.values import Draft, Tested, Verdict

__all__ = ["Lenience"]

LEAST = 1e-6
"""With less, what is kept is computed as a difference of numbers beyond all measure, and no longer right."""


class Lenience:
    """Keep a drafted token with probability min(1, target_prob / (lenience * draft_prob)).

    A refused token is replaced from the residual of the exact rule. No token becomes more than 1 / lenience times
    as probable as under the target.

    Parameters
    ----------
    lenience : float, default 0.5
        From 0.000001, which keeps nearly all that is drafted, to 1, which is the exact rule, and lossless.

    Raises
    ------
    SettingError
        If it is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from engine.sampling import Dense
    >>> target, draft = Dense(np.array([0.5, 0.3, 0.2])), Dense(np.array([0.6, 0.3, 0.1]))
    >>> round(Lenience(0.9).distance(target, draft), 5)
    0.05556
    """

    name = "lenience"
    guarantee = (
        "No token becomes more than 1 / lenience times as probable as the target has it; "
        "the text drifts towards the draft's law, less so the nearer the lenience is to 1."
    )
    source = "Leviathan et al. 2023, arXiv 2211.17192, appendix A.5"
    needs: Needs = "draft law"
    greedy_draft = False
    formula = "min(1, {target_prob} / ({lenience} * {draft_prob})) = {accept_prob}"
    replacement: Source = "residual"

    def __init__(self, lenience: float = 0.5) -> None:
        if not LEAST <= lenience <= 1:
            raise SettingError(f"lenience is {lenience}; it must be from {LEAST:f} to 1 (1 is the exact rule)")
        self.lenience = lenience
        self.lossless = lenience == 1

    def judge(self, draft: Draft, rows: Rows, *, noise: Noise, start: int) -> Verdict:
        """See `AcceptanceRule.judge`."""
        return judged_in_order(self._tested, draft, rows, noise=noise, start=start)

    def chances(self, draft: Draft, rows: Rows) -> Chances:
        """See `AcceptanceRule.chances`."""
        return chances_in_order(self._tested, draft, rows)

    def distance(self, target: Law, draft: Law) -> float:
        """How far the law of a token that was drawn from `draft` and judged is from `target`, in total variation.

        It is what is kept beyond the exact rule: alpha(lenience) - alpha(1), where alpha(l) is the sum of
        min(target / l, draft), or 1 / l less the mass of max(0, target / l - draft).
        """
        kept, kept_by_exact = (1 / lenience - excess(target, draft, 1 / lenience) for lenience in (self.lenience, 1.0))
        return max(0.0, kept - kept_by_exact)

    def _tested(self, token: int, *, draft: Law, target: Law, draw: float) -> Tested:
        draft_prob, target_prob = draft.prob(token), target.prob(token)
        keep_prob = min(1.0, target_prob / draft_prob / self.lenience)
        accepted = draw * self.lenience * draft_prob < target_prob
        return Tested(accepted, draft_prob, target_prob, keep_prob, draw, (Term("lenience", self.lenience),))
