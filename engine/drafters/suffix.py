"""Suffix decoding: propose what most often followed the end of the context, as far as that is likely.

After Oliaro et al., *SuffixDecoding* (arXiv 2411.04975), with the defaults of vLLM's method "suffix".
One tree holds prompt and output of the run; a second one, if given, the outputs of earlier runs.
Every length of a match makes a proposal from either, and the best score is taken: see `suffix_tree`.
Unlike prompt lookup it weighs all earlier occurrences, and the longer the match, the more it proposes.

Not here: trees of several branches, and keeping the outputs on disk.
"""

from __future__ import annotations

from engine.drafters.earlier_outputs import EarlierOutputs
from engine.drafters.suffix_settings import Choice, Speculation
from engine.drafters.suffix_tree import Guess, SuffixTree
from engine.errors import SettingError
from engine.lengths import ALWAYS, GoOn, Prospect
from engine.sampling import Noise, OneHot, Sampling
from engine.values import Draft, Tokens

__all__ = ["SuffixDecoding"]


class SuffixDecoding:
    """Propose the best of what followed the ends of the context, of any length, where they occurred before.

    Parameters
    ----------
    speculation : Speculation, optional
        How far a proposal goes; by default a match of m tokens allows m, down to a probability of 0.1.
    choice : {"frequent", "recent"}, default "frequent"
        Which continuation is taken: the most frequent, or the one seen last.
    outputs : EarlierOutputs, optional
        Outputs of earlier runs, made with the same `choice`; it is told the output of every run that ends.

    Raises
    ------
    SettingError
        If `choice` is another.

    Examples
    --------
    >>> from engine.sampling import Noise, Sampling
    >>> ask = dict(sampling=Sampling(), noise=Noise(0), end_tokens=frozenset())
    >>> SuffixDecoding().propose([5, 6, 7, 8, 5, 6, 9, 5, 6, 7, 8, 5, 6], 4, **ask).tokens
    (9, 5, 6, 7)
    """

    name = "suffix"
    context_length: int | None = None

    def __init__(
        self,
        speculation: Speculation | None = None,
        choice: Choice = "frequent",
        outputs: EarlierOutputs | None = None,
    ) -> None:
        if choice not in ("frequent", "recent"):
            raise SettingError(f"the suffix choice is {choice!r}; it must be 'frequent' or 'recent'")
        self._speculation = speculation or Speculation()
        self._choice: Choice = choice
        self._outputs = outputs
        self._read: list[int] = []
        self._tree = SuffixTree(choice)
        self._tree.begin()

    def prepare(self, context: Tokens) -> None:
        """Read the prompt."""
        self._catch_up(list(context))

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
        """See `Drafter.propose`. The laws are one-hot: nothing is drawn."""
        return self.draft(self.guess(context, limit), limit, go_on)

    def guess(self, context: Tokens, limit: int) -> Guess:
        """The proposal with the best score, from this run or from earlier ones."""
        self._catch_up(list(context))
        guess = self._tree.guess_next(limit, self._speculation)
        if self._outputs is not None:
            other = self._outputs.guess(context, limit, self._speculation)
            return other if other.score > guess.score else guess
        return guess

    def draft(self, guess: Guess, limit: int, go_on: GoOn = ALWAYS) -> Draft:
        """A proposal as a draft, as far as the length policy wants it to go."""
        for place, survival in enumerate(guess.survivals):
            if not go_on.before(Prospect(place, survival=survival)):
                return Draft(guess.tokens[:place], _laws(guess.tokens[:place]), note=go_on.reason)
        if not guess.tokens:
            return Draft(note="nothing that is likely enough followed the end of the context before")
        longest = "token" if guess.n_matched == 1 else f"{guess.n_matched} tokens"
        short = "" if len(guess.tokens) == limit else f"the last {longest} occurred before: that suggests no more"
        return Draft(guess.tokens, _laws(guess.tokens), note=short)

    def finished(self, output: Tokens) -> None:
        """Remember what the run emitted, for later ones."""
        if self._outputs is not None:
            self._outputs.add(output)

    def _catch_up(self, context: list[int]) -> None:
        """Read what is new; everything, if the context does not go on from the last one."""
        n_read = len(self._read)
        if context[:n_read] != self._read:
            self._tree, n_read = SuffixTree(self._choice), 0
            self._tree.begin()
        self._tree.extend(context[n_read:])
        self._read = context


def _laws(tokens: tuple[int, ...]) -> tuple[OneHot, ...]:
    return tuple(OneHot(token) for token in tokens)
