"""Gumbel-coupled sample-match: a seed gives one text, whatever the drafter and the draft length.

Daliri, Musco, Suresh, *Coupling without Communication and Drafter-Invariant Speculative Decoding*,
arXiv 2408.07978.  Draft and target draw with the same Gumbel numbers (`engine.gumbels`), so that they agree far more
often than two draws of their own would, and the target's token depends on seed, position and context alone.
"""

from __future__ import annotations

import math

from engine.acceptance.base import Needs
from engine.acceptance.chances import Chances
from engine.acceptance.coupling import keep_probability, law_beside
from engine.acceptance.sample_match import chances_of_matches, judged_by_match
from engine.evidence import Source, Term
from engine.gumbels import SharedGumbels
from engine.sampling import Law, Noise, OneHot, Rows
from engine.values import Draft, Verdict

__all__ = ["GumbelMatch"]


class GumbelMatch:
    """Draw the target's token at every position with the draft's Gumbel numbers, keep the guess while it is the same.

    The text is what plain decoding with this rule and seed gives. A drafter that draws from a law must do so with
    `noise.draw` at the token's absolute position; one that guesses for sure (a lookup) is none the worse for drawing
    nothing.

    Examples
    --------
    >>> from engine.build import build
    >>> from engine.spec import RunSpec
    >>> texts = set()
    >>> for drafter, draft_length in (("none", 0), ("model", 2), ("ngram", 5)):
    ...     spec = RunSpec(prompt="The draft", rule="gumbel", drafter=drafter, draft_length=draft_length, max_tokens=20)
    ...     *_, finished = build(spec).events()
    ...     texts.add(finished.text)
    >>> len(texts)
    1
    """

    name = "gumbel"
    lossless = True
    guarantee = (
        "The emitted text has exactly the target's law, and a seed gives the same text with every drafter "
        "and every draft length."
    )
    source = "Daliri, Musco, Suresh 2024, arXiv 2408.07978"
    needs: Needs = "nothing"
    greedy_draft = False
    formula = "ln {target_prob} + {gumbel} = {score}, and the largest of all tokens is {largest}"
    replacement: Source = "target"
    noise = SharedGumbels

    def judge(self, draft: Draft, rows: Rows, *, noise: Noise, start: int) -> Verdict:
        """See `AcceptanceRule.judge`. `noise` is the one that the draft was drawn with."""
        return judged_by_match(draft, rows, _about, noise=noise, start=start)

    def chances(self, draft: Draft, rows: Rows) -> Chances:
        """See `AcceptanceRule.chances`: for a draft whose tokens were drawn from its laws with the shared numbers."""
        laws: list[Law] = [
            law_beside(rows.law(index), draft_law, token)
            for index, (token, draft_law) in enumerate(zip(draft.tokens, draft.laws, strict=True))
        ]
        return chances_of_matches(draft, [*laws, rows.law(len(laws))])


def _about(
    token: int, own: int, target: Law, draft: Law, noise: Noise, position: int
) -> tuple[float, tuple[Term, ...]]:
    """The guess in the race, and the winner; at temperature 0 there is no race."""
    if not isinstance(noise, SharedGumbels):
        return target.prob(token), ()  # nothing is shared, so this is plain sample-match
    keep_prob = keep_probability(target, draft, token)
    if isinstance(target, OneHot):
        return keep_prob, ()
    score = noise.score(target, token, position)
    return keep_prob, (
        Term("gumbel", noise.gumbel(token, position)),
        Term("score", score if math.isfinite(score) else None),
        Term("largest", noise.score(target, own, position)),
    )
