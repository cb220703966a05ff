"""Exact rejection sampling: the emitted text has exactly the target's law.

Leviathan, Kalman, Matias, *Fast Inference from Transformers via Speculative Decoding*,
arXiv 2211.17192, Algorithm 1; Chen et al., *Accelerating Large Language Model Decoding with
Speculative Sampling*, arXiv 2302.01318, Algorithm 2.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.acceptance.base import Needs
from engine.acceptance.chances import Chances, one_by_one
from engine.evidence import Source
from engine.sampling import Dense, Law, Noise, OneHot, Purpose, Rows, Sparse, Weighted
from engine.values import Draft, Tested, Verdict

__all__ = ["ExactRejection", "chances_in_order", "excess", "judged_in_order", "residual", "tested"]

Array = NDArray[np.float64]

TINY_MASS = 1e-12
"""A residual of less mass than this is rounding error: its rejection had probability 0."""


class ExactRejection:
    """Keep a drafted token with probability min(1, target_prob / draft_prob), else redraw from the residual.

    The test is strict and free of division, `draw * draft_prob < target_prob`, so a token of
    target probability 0 is never kept, even for a draw of 0.

    Examples
    --------
    >>> ExactRejection().lossless
    True
    """

    name = "exact"
    lossless = True
    guarantee = "The emitted text has exactly the target's law, whatever the draft proposes."
    source = "Leviathan et al. 2023, arXiv 2211.17192, Algorithm 1; Chen et al. 2023, arXiv 2302.01318"
    needs: Needs = "draft law"
    greedy_draft = False
    formula = "min(1, {target_prob} / {draft_prob}) = {accept_prob}"
    replacement: Source = "residual"

    def judge(self, draft: Draft, rows: Rows, *, noise: Noise, start: int) -> Verdict:
        """See `AcceptanceRule.judge`."""
        return judged_in_order(tested, draft, rows, noise=noise, start=start)

    def chances(self, draft: Draft, rows: Rows) -> Chances:
        """See `AcceptanceRule.chances`."""
        return chances_in_order(tested, draft, rows)


class Test(Protocol):
    """The test of one drafted token with a given draw."""

    def __call__(self, token: int, *, draft: Law, target: Law, draw: float) -> Tested: ...


def judged_in_order(test: Test, draft: Draft, rows: Rows, *, noise: Noise, start: int) -> Verdict:
    """Test the tokens one by one; the first that is refused is replaced from the residual, and ends the step."""
    tests: list[Tested] = []
    for index, (token, draft_law) in enumerate(zip(draft.tokens, draft.laws, strict=True)):
        target_law = rows.law(index)
        draw = noise.uniform(start + index, Purpose.ACCEPT)
        tests.append(test(token, draft=draft_law, target=target_law, draw=draw))
        if not tests[-1].accepted:
            recovered = noise.draw(residual(target_law, draft_law), start + index, Purpose.TARGET)
            return Verdict(tuple(tests), recovered)
    n_drafted = len(draft.tokens)
    extra = noise.draw(rows.law(n_drafted), start + n_drafted, Purpose.TARGET)
    return Verdict(tuple(tests), extra)


def chances_in_order(test: Test, draft: Draft, rows: Rows) -> Chances:
    """What `judged_in_order` does, as probabilities."""
    places = list(enumerate(zip(draft.tokens, draft.laws, strict=True)))
    tests = [test(token, draft=law, target=rows.law(index), draw=0.0) for index, (token, law) in places]
    laws = [residual(rows.law(index), law) for index, (_, law) in places]
    return one_by_one([test.accept_prob for test in tests], [*laws, rows.law(len(places))])


def tested(token: int, *, draft: Law, target: Law, draw: float) -> Tested:
    """The exact rule's test of one drafted token.

    Examples
    --------
    >>> tested(0, draft=Dense(np.array([0.5, 0.5])), target=Dense(np.array([0.25, 0.75])), draw=0.4).accepted
    True
    """
    draft_prob, target_prob = draft.prob(token), target.prob(token)
    accepted = draw * draft_prob < target_prob  # Algorithm 1: r_i <= p_i(x) / q_i(x)
    return Tested(accepted, draft_prob, target_prob, min(1.0, target_prob / draft_prob), draw)


def residual(target: Law, draft: Law, weight: float = 1.0) -> Law:
    """The law that a replacement is drawn from: the positive part of weight * target - draft, normalised.

    Falls back to the target's law where nothing is left, which only rounding can bring about.

    Examples
    --------
    >>> residual(Dense(np.array([0.5, 0.3, 0.2])), Dense(np.array([0.6, 0.3, 0.1]))).dense(3).tolist()
    [0.0, 0.0, 1.0]
    """
    if isinstance(target, OneHot):
        return target
    left = Weighted(_beyond(target, draft, weight))
    return left if left.total > TINY_MASS else target


def excess(target: Law, draft: Law, weight: float = 1.0) -> float:
    """The mass of the positive part of weight * target - draft, which `residual` normalises.

    Examples
    --------
    >>> excess(OneHot(1), OneHot(2), 0.25), excess(OneHot(1), OneHot(1), 0.25)
    (0.25, 0.0)
    """
    if isinstance(target, OneHot):
        return max(0.0, weight - draft.prob(target.token))
    return float(_beyond(target, draft, weight).sum())


def _beyond(target: Dense | Sparse, draft: Law, weight: float) -> Array:
    """The positive part of weight * target - draft, a row of its own."""
    left = target.row() if isinstance(target, Dense) else target.dense(_room(target, draft))
    if weight != 1:
        left *= weight
    if isinstance(draft, OneHot):
        left[draft.token] = max(left[draft.token] - 1.0, 0.0)
    elif isinstance(draft, Sparse):
        left[draft.tokens] = np.maximum(left[draft.tokens] - draft.probs, 0.0)
    else:
        left = np.maximum(left - draft.probs, 0.0)
    return left


def _room(target: Sparse, draft: Law) -> int:
    """A length of row in which both laws have place."""
    if isinstance(draft, Dense):
        return len(draft.probs)
    highest = draft.token if isinstance(draft, OneHot) else int(draft.tokens[-1])
    return 1 + max(int(target.tokens[-1]), highest)
