"""How often two laws that share their Gumbel numbers draw the same token, and what else the target draws.

With exponential numbers E, the draft takes the least E / draft, the target the least E / target.  Given the two least
values, the others need only be larger, which leaves one integral over t, the quotient of the two values:

    Pr(draft takes v, target takes w) = draft(v) * target(w) * max(0, F(t_v) - F(t_w)),

where F(t) is the integral of 1 / M(s)^2 from 0 to t, M(s) the sum of max(draft, s * target) over all tokens, and
t_v = draft(v) / target(v).  Both take v with probability draft(v) / M(t_v), which Daliri, Musco, Suresh,
arXiv 2408.07978, have in other letters: 1 / sum over y of max(target(y) / target(v), draft(y) / draft(v)).
M is made of straight pieces, so that F has a closed form.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from engine.sampling import Dense, Law, OneHot, Sparse
from engine.sampling.law_kinds import Array

__all__ = ["keep_probability", "law_beside"]

IMPOSSIBLE = 1e-150
"""Below this a target's probability counts as 0, so that no quotient is beyond all bounds."""


def keep_probability(target: Law, draft: Law, token: int) -> float:
    """The probability that the target draws `token` where the draft drew it with the same Gumbel numbers.

    Examples
    --------
    >>> keep_probability(Dense(np.array([0.5, 0.5])), Dense(np.array([0.25, 0.75])), 0)
    1.0
    """
    if isinstance(target, OneHot) or isinstance(draft, OneHot):
        return target.prob(token)
    target_probs, draft_probs = _rows(target, draft)
    if target_probs[token] <= IMPOSSIBLE:
        return 0.0
    quotient = draft_probs[token] / target_probs[token]
    return min(1.0, 1 / float(np.maximum(draft_probs, quotient * target_probs).sum()))


def law_beside(target: Law, draft: Law, token: int) -> Law:
    """The law of the target's token at a position where the draft drew `token` with the same Gumbel numbers.

    A draft that proposes for sure used none of them, so that the target's law is left as it is.

    Examples
    --------
    >>> target, draft = Dense(np.array([0.5, 0.5])), Dense(np.array([0.25, 0.75]))
    >>> law_beside(target, draft, 0).dense(2).tolist(), law_beside(target, draft, 1).dense(2).round(6).tolist()
    ([1.0, 0.0], [0.333333, 0.666667])
    """
    if isinstance(target, OneHot) or isinstance(draft, OneHot):
        return target
    target_probs, _ = _rows(target, draft)
    quotients = _quotients(target, draft)
    probs = target_probs * np.maximum(quotients.integral[token] - quotients.integral, 0.0)
    probs[token] = 1 / quotients.larger[token] if target_probs[token] > IMPOSSIBLE else 0.0
    return Dense(probs / probs.sum())


class _Quotients:
    """M and F of the module's text at the quotient draft / target of every token, arrays of the rows' shape."""

    def __init__(self, target: Array, draft: Array) -> None:
        possible = target > IMPOSSIBLE
        never = float(draft[~possible].sum())  # what the draft gives to tokens that the target never draws
        quotients = draft[possible] / target[possible]
        order = np.argsort(quotients, kind="stable")
        at, draft_sorted, target_sorted = quotients[order], draft[possible][order], target[possible][order]
        from_draft = never + draft_sorted[::-1].cumsum()[::-1]  # of the tokens from this one on
        from_target = target_sorted.cumsum() - target_sorted  # of the tokens before it
        larger = from_draft + at * from_target
        before = np.concatenate([[1.0], larger[:-1]])  # M(0) = 1
        integral = (np.diff(at, prepend=0.0) / (before * larger)).cumsum()
        self.larger = np.full(len(target), np.inf)
        self.integral = np.full(len(target), integral[-1] + 1 / larger[-1])  # the last piece: M grows as t does
        places = np.flatnonzero(possible)[order]
        self.larger[places] = larger
        self.integral[places] = integral


@lru_cache(maxsize=2)
def _quotients(target: Dense | Sparse, draft: Dense | Sparse) -> _Quotients:
    """Those of two laws, which are asked for again and again where all drafts of one position are looked at."""
    return _Quotients(*_rows(target, draft))


def _rows(target: Dense | Sparse, draft: Dense | Sparse) -> tuple[Array, Array]:
    """Both laws as rows of one length."""
    size = max(int(law.tokens[-1]) + 1 if isinstance(law, Sparse) else len(law.probs) for law in (target, draft))
    return target.dense(size), draft.dense(size)
