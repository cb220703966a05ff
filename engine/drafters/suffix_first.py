"""Suffix decoding where a match is long enough to trust, another drafter everywhere else.

The same idea as `combined.LookupFirst`, and the same lengths from which a match is trusted: a copied
text is best continued by copying, and anything else by a draft head.  SAM decoding (arXiv 2411.10666)
joins a suffix automaton with EAGLE in the same way, by the length of the match.
"""

from __future__ import annotations

from engine.drafters.base import Drafter
from engine.drafters.combined import sure_of
from engine.drafters.copy_first import CopyFirst
from engine.drafters.suffix import SuffixDecoding
from engine.lengths import GoOn
from engine.sampling import Sampling
from engine.values import Draft, Tokens

__all__ = ["SuffixFirst"]


class SuffixFirst(CopyFirst):
    """Ask suffix decoding, and where its match is short, or the policy wants none of it, another drafter.

    Parameters
    ----------
    other : Drafter
        A draft head, as a rule.
    suffix : SuffixDecoding, optional

    Examples
    --------
    >>> from engine.drafters.none import NoDraft
    >>> from engine.sampling import Noise, Sampling
    >>> ask = dict(noise=Noise(0), end_tokens=frozenset())
    >>> drafter = SuffixFirst(NoDraft())
    >>> drafter.propose([5, 6, 7, 8, 5, 6], 2, sampling=Sampling(temperature=0), **ask).tokens
    (7, 8)
    >>> drafter.propose([5, 6, 7, 8, 5, 6], 2, sampling=Sampling(temperature=1), **ask).tokens
    ()
    """

    def __init__(self, other: Drafter, suffix: SuffixDecoding | None = None) -> None:
        super().__init__(other, SuffixDecoding.name)
        self._suffix = suffix or SuffixDecoding()

    def _copied(self, context: Tokens, limit: int, sampling: Sampling, go_on: GoOn) -> Draft:
        guess = self._suffix.guess(context, limit)
        return self._suffix.draft(guess, limit, go_on) if guess.n_matched >= sure_of(sampling) else Draft()

    def prepare(self, context: Tokens) -> None:
        """Let both read the prompt."""
        self._suffix.prepare(context)
        super().prepare(context)

    def finished(self, output: Tokens) -> None:
        """Tell both what was emitted."""
        self._suffix.finished(output)
        super().finished(output)
