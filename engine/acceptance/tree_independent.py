"""Recursive rejection over siblings that were drawn each by itself: the exact rule, once for every sibling.

Miao et al., *SpecInfer: Accelerating Large Language Model Serving with Tree-based Speculative
Inference and Verification*, arXiv 2305.09781, Algorithm 2 (multi-step speculative sampling).
"""

from __future__ import annotations

from engine.acceptance.base import Needs
from engine.acceptance.chances import Chances
from engine.acceptance.exact import chances_in_order, residual, tested
from engine.acceptance.tree import Children, Own, check_is_chain, walk
from engine.evidence import Source, Term
from engine.sampling import Law, Noise, Purpose, Rows
from engine.values import Draft, Tested, Verdict

__all__ = ["TreeIndependent"]


class TreeIndependent:
    """Try siblings in turn, each against what the refused ones have left of the target's law.

    With `left` the target's law at first, a sibling is kept with probability
    min(1, left_prob / draft_prob); if it is not, `left` becomes the residual of `left` and the sibling's
    law. If all are refused, the target's own token is drawn from what is left. With one child
    everywhere it is the exact rule, draw for draw.

    Examples
    --------
    Target (.5, .3, .2), and two guesses of token 0, both from (.9, .1, 0): the first is kept with
    probability .5 / .9; the second never, for the residual gives nothing to token 0.

    >>> import numpy as np
    >>> from engine.sampling import Dense, Sampling
    >>> guess = Dense(np.array([0.9, 0.1, 0.0]))
    >>> rows = Rows(np.log(np.full((3, 3), [0.5, 0.3, 0.2])), Sampling(temperature=1))
    >>> draft = Draft((0, 0), (guess, guess), parents=(-1, -1))
    >>> verdict = TreeIndependent().judge(draft, rows, noise=Noise(0), start=0)
    >>> [round(test.accept_prob, 4) for test in verdict.tested], verdict.token
    ([0.5556, 0.0], 2)
    """

    name = "tree-independent"
    lossless = True
    guarantee = "The emitted text has exactly the target's law, however many guesses stand side by side."
    source = "Miao et al. 2024 (SpecInfer), arXiv 2305.09781, Algorithm 2"
    needs: Needs = "draft law"
    greedy_draft = False
    formula = "min(1, {left_prob} / {draft_prob}) = {accept_prob}"
    replacement: Source = "residual"
    children: Children = "independent"

    def judge(self, draft: Draft, rows: Rows, *, noise: Noise, start: int) -> Verdict:
        """See `AcceptanceRule.judge`; the draft may be a tree."""

        def try_in_turn(target: Law, siblings: list[int], position: int) -> tuple[list[Tested], Own | None]:
            tests: list[Tested] = []
            left = target
            for place, node in enumerate(siblings):
                token, draft_law = draft.tokens[node], draft.laws[node]
                draw = noise.uniform(position, Purpose.ACCEPT, place)
                test = tested(token, draft=draft_law, target=left, draw=draw)
                terms = (Term("left_prob", test.target_prob),)
                tests.append(Tested(test.accepted, test.draft_prob, target.prob(token), test.accept_prob, draw, terms))
                if test.accepted:
                    return tests, None
                left = residual(left, draft_law)  # SpecInfer, Algorithm 2: norm(max(0, left - draft))
            return tests, (noise.draw(left, position, Purpose.TARGET), left)

        return walk(draft, rows, try_in_turn, noise=noise, start=start)

    def chances(self, draft: Draft, rows: Rows) -> Chances:
        """See `AcceptanceRule.chances`; of chains, which are judged as by the exact rule."""
        check_is_chain(draft)
        return chances_in_order(tested, draft, rows)
