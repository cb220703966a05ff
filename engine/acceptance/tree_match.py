"""One draw of the target at every place that is reached, looked up among the guesses there.

It suits guesses that are no draws at all, such as the draft's most probable tokens (Li et al.,
*EAGLE-2*, arXiv 2406.16858): accept each with what the target gives it, strike it out if it is refused.
That is the same law as to draw a token of the target once and to look for it among the guesses, which
is simpler, needs no law of the draft, and is how it is done here.  To draw anew for every guess would
be wrong: it favours the guesses (foundation-model-stack/fms-extras, pull request 12).
"""

from __future__ import annotations

from engine.acceptance.base import Needs
from engine.acceptance.chances import Chances
from engine.acceptance.sample_match import chances_of_matches
from engine.acceptance.tree import Children, Own, check_is_chain, walk
from engine.evidence import Source, Term
from engine.sampling import Law, Noise, Purpose, Rows
from engine.values import Draft, Tested, Verdict

__all__ = ["TreeMatch"]


class TreeMatch:
    """Draw the target's own token, and go to the guess that is the same, if there is one.

    The chance of going on is what the target gives to all guesses together, so the most probable tokens are
    the best ones. The acceptance probability of a guess is told for those that come to it:
    target_prob / left_prob, where left_prob is what the target gives to tokens that no guess before it is.

    Examples
    --------
    >>> import numpy as np
    >>> from engine.sampling import OneHot, Sampling
    >>> rows = Rows(np.log(np.full((3, 3), [0.5, 0.3, 0.2])), Sampling(temperature=1))
    >>> draft = Draft((0, 1), (OneHot(0), OneHot(1)), parents=(-1, -1))
    >>> verdict = TreeMatch().judge(draft, rows, noise=Noise(0), start=0)
    >>> [(test.accepted, round(test.accept_prob, 4)) for test in verdict.tested], verdict.token
    ([(False, 0.5), (False, 0.6)], 2)
    """

    name = "tree-match"
    lossless = True
    guarantee = "Every emitted token is a draw from the target's own law; guesses only save calls."
    source = "Li et al. 2024 (EAGLE-2), arXiv 2406.16858; one draw per place as in fms-extras, pull request 12"
    needs: Needs = "nothing"
    greedy_draft = True
    formula = "{target_prob} / {left_prob} = {accept_prob}"
    replacement: Source = "target"
    children: Children = "best"

    def judge(self, draft: Draft, rows: Rows, *, noise: Noise, start: int) -> Verdict:
        """See `AcceptanceRule.judge`; the draft may be a tree."""

        def look_up(target: Law, siblings: list[int], position: int) -> tuple[list[Tested], Own | None]:
            own = noise.draw(target, position, Purpose.TARGET)
            tests: list[Tested] = []
            refused: set[int] = set()
            left = 1.0
            for node in siblings:
                token = draft.tokens[node]
                target_prob = target.prob(token)
                chance = target_prob / left if token not in refused and left > target_prob else float(own == token)
                terms = (Term("left_prob", left),)
                tests.append(
                    Tested(own == token, draft.laws[node].prob(token), target_prob, min(1.0, chance), None, terms)
                )
                if own == token:
                    return tests, None
                if token not in refused:
                    refused.add(token)
                    left = max(0.0, left - target_prob)
            return tests, (own, None)

        return walk(draft, rows, look_up, noise=noise, start=start)

    def chances(self, draft: Draft, rows: Rows) -> Chances:
        """See `AcceptanceRule.chances`; of chains, which are judged as by `SampleMatch`."""
        check_is_chain(draft)
        return chances_of_matches(draft, [rows.law(index) for index in range(len(draft.tokens) + 1)])
