"""Suffix decoding where a match is long enough to trust, another drafter everywhere else.

The same idea as `combined.LookupFirst`, and the same lengths from which a match is trusted: a copied
text is best continued by copying, and anything else by a draft head.  SAM decoding (arXiv 2411.10666)
joins a suffix automaton with EAGLE in the same way, by the length of the match.
"""

from __future__ import annotations

from engine.drafters.base import Drafter, LearnsFromOutputs, LearnsFromRows
from engine.drafters.combined import sure_of
from engine.drafters.suffix import SuffixDecoding
from engine.lengths import ALWAYS, GoOn
from engine.models.base import Logits
from engine.sampling import Noise, Sampling
from engine.values import Draft, Tokens

__all__ = ["SuffixFirst"]


class SuffixFirst:
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
        self._other = other
        self._suffix = suffix or SuffixDecoding()
        self.name = f"{other.name}+{self._suffix.name}"
        self.context_length: int | None = other.context_length

    def prepare(self, context: Tokens) -> None:
        """Let both read the prompt."""
        self._suffix.prepare(context)
        self._other.prepare(context)

    def propose(
        self,
        context: Tokens,
        limit: int,
        *,
        sampling: Sampling,
        noise: Noise,
        end_tokens: frozenset[int],
        go_on: GoOn = ALWAYS,
    ) -> Draft:
        """See `Drafter.propose`."""
        guess = self._suffix.guess(context, limit)
        if guess.n_matched >= sure_of(sampling) and (draft := self._suffix.draft(guess, limit, go_on)).tokens:
            return draft
        return self._other.propose(context, limit, sampling=sampling, noise=noise, end_tokens=end_tokens, go_on=go_on)

    def observe(self, tokens: Tokens, rows: Logits) -> None:
        """See `LearnsFromRows.observe`."""
        if isinstance(self._other, LearnsFromRows):
            self._other.observe(tokens, rows)

    def finished(self, output: Tokens) -> None:
        """See `LearnsFromOutputs.finished`."""
        self._suffix.finished(output)
        if isinstance(self._other, LearnsFromOutputs):
            self._other.finished(output)
