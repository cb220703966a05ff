"""Several drafters as one: the first that has something to propose does."""

from __future__ import annotations

from engine.drafters.base import Drafter
from engine.sampling import Noise, Sampling
from engine.values import Draft, Tokens

__all__ = ["FirstOf"]


class FirstOf:
    """Ask drafters in turn, until one proposes.

    Made for a lookup that speaks only when it is rather sure (`PromptLookup(min_n=...)`), with a
    draft head behind it.

    Parameters
    ----------
    *drafters : Drafter
        At least one, the one to be asked first in front.
    name : str

    Examples
    --------
    >>> from engine.drafters.ngram import PromptLookup
    >>> from engine.sampling import Noise, Sampling
    >>> ask = dict(sampling=Sampling(), noise=Noise(0), end_tokens=frozenset())
    >>> both = FirstOf(PromptLookup(min_n=2), PromptLookup(min_n=1), name="two, then one")
    >>> both.propose([5, 6, 7, 8, 9, 7], 2, **ask).tokens
    (8, 9)
    """

    def __init__(self, *drafters: Drafter, name: str) -> None:
        limits = [drafter.context_length for drafter in drafters if drafter.context_length is not None]
        self.name = name
        self.context_length: int | None = min(limits, default=None)
        self._drafters = drafters

    def prepare(self, context: Tokens) -> None:
        """Let each read the prompt."""
        for drafter in self._drafters:
            drafter.prepare(context)

    def propose(
        self, context: Tokens, limit: int, *, sampling: Sampling, noise: Noise, end_tokens: frozenset[int]
    ) -> Draft:
        """See `Drafter.propose`."""
        draft = Draft()
        for drafter in self._drafters:
            draft = drafter.propose(context, limit, sampling=sampling, noise=noise, end_tokens=end_tokens)
            if draft.tokens:
                break
        return draft
