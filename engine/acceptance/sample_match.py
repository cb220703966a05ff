"""Sample-match: the target draws its own token first, and a guess is kept if it is the same one.

The rule of llama.cpp and mlx-lm; at temperature 0 it is the exact match of Stern, Shazeer, Uszkoreit,
*Blockwise Parallel Decoding*, arXiv 1811.03115, section 3.  Every token is a fresh draw from the target's law, so it
is lossless for any drafter, and asks nothing about how the drafter guessed.  It keeps less than the exact
rule: a guess only with the probability that the target gives it, and so the draft's most probable token is the best.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.acceptance.base import Needs
from engine.acceptance.chances import Chances, one_by_one
from engine.acceptance.exact import residual
from engine.evidence import Source, Term
from engine.laws import below
from engine.sampling import Law, Noise, OneHot, Purpose, Rows
from engine.values import Draft, Tested, Verdict

__all__ = ["SampleMatch", "chances_of_matches", "judged_by_match"]

About = Callable[[int, int, Law, Law, Noise, int], tuple[float, tuple[Term, ...]]]
"""How probable a match is, and the numbers of the formula: from a drafted token and the target's own, the target's and
the draft's law, the noise and the absolute position."""


class SampleMatch:
    """Draw the target's token at every position, keep the guess while it is the same.

    Examples
    --------
    >>> import numpy as np
    >>> from engine.sampling import Sampling
    >>> rows = Rows(np.log([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]]), Sampling(temperature=1))
    >>> [round(chance, 6) for chance, law in SampleMatch().chances(Draft((1,), (OneHot(1),)), rows)]
    [0.7, 0.3]
    """

    name = "sample-match"
    lossless = True
    guarantee = (
        "The emitted text has exactly the target's law: every token is the target's own draw, from whatever drafter."
    )
    source = "llama.cpp and mlx-lm; at temperature 0 Stern et al. 2018, arXiv 1811.03115, section 3"
    needs: Needs = "nothing"
    greedy_draft = True
    formula = "{number} was drawn, and {low} to {high} is this token's"
    replacement: Source = "target"

    def judge(self, draft: Draft, rows: Rows, *, noise: Noise, start: int) -> Verdict:
        """See `AcceptanceRule.judge`. The target's draw at a position is the only number there."""
        return judged_by_match(draft, rows, _about, noise=noise, start=start)

    def chances(self, draft: Draft, rows: Rows) -> Chances:
        """See `AcceptanceRule.chances`."""
        return chances_of_matches(draft, [rows.law(index) for index in range(len(draft.tokens) + 1)])


def judged_by_match(draft: Draft, rows: Rows, about: About, *, noise: Noise, start: int) -> Verdict:
    """Draw the target's token at every position, up to the first that is not the drafted one."""
    tests: list[Tested] = []
    for index, (token, draft_law) in enumerate(zip(draft.tokens, draft.laws, strict=True)):
        target = rows.law(index)
        own = noise.draw(target, start + index, Purpose.TARGET)
        keep_prob, terms = about(token, own, target, draft_law, noise, start + index)
        tests.append(Tested(own == token, draft_law.prob(token), target.prob(token), keep_prob, None, terms))
        if own != token:
            return Verdict(tuple(tests), own)
    n_drafted = len(tests)
    return Verdict(tuple(tests), noise.draw(rows.law(n_drafted), start + n_drafted, Purpose.TARGET))


def chances_of_matches(draft: Draft, laws: list[Law]) -> Chances:
    """The chances if the target's token at each position has one of `laws`, the last of them behind the draft."""
    kept = [law.prob(token) for token, law in zip(draft.tokens, laws[:-1], strict=True)]
    others = [residual(law, OneHot(token)) for token, law in zip(draft.tokens, laws[:-1], strict=True)]
    return one_by_one(kept, [*others, laws[-1]])


def _about(
    token: int, own: int, target: Law, draft: Law, noise: Noise, position: int
) -> tuple[float, tuple[Term, ...]]:
    """Where the token's stretch of the line from 0 to 1 lies, and where the draw; at temperature 0 there is no line."""
    prob = target.prob(token)
    if isinstance(target, OneHot):
        return prob, ()
    low, number = below(target, token), noise.uniform(position, Purpose.TARGET)
    return prob, (Term("number", number), Term("low", low), Term("high", low + prob))
