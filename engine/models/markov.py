"""The embedded pair: a trigram and a bigram of words, from a text about speculative decoding.

Nothing is downloaded and a call takes microseconds, so the pair is the teaching and test default.
It is exact in the sense that counts: both laws are known to the last digit. Its speed means
nothing; a price per call can be set instead, and `LoadedModel.clock` then says that it was made up.

The dial `agreement` sets how often the draft is right. With p the target's law at some context,
q the plain bigram's, r a law on the words that never follow the last word, and a the dial:

    draft = (1 - a) q + a p        for 0 <= a <= 1
    draft = (1 + a) q - a r        for -1 <= a <= 0

At temperature 1 the chance that a drafted token is kept, sum(min(p, draft)), never falls as the
dial rises, at any context: above 0 it is exactly beta + a (1 - beta), beta being the plain
bigram's; below 0 the draft loses mass where p has some and gains it only where it had more
than p before. At 1 the two laws are equal bit for bit; at -1 next to nothing is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from engine.errors import SettingError
from engine.models.base import LoadedModel, Logits
from engine.models.chain import Chain
from engine.models.simulated import SimulatedClock, check_cost
from engine.models.words import WordTokenizer
from engine.tree import branch
from engine.values import Tokens

__all__ = ["MarkovModel", "load_markov"]

Row = NDArray[np.float64]
_N_WORDS = 2  # a trigram looks back two words
_ROWS_KEPT = 512


class MarkovModel:
    """A law of the last two words as a model; its logits are log-probabilities.

    Parameters
    ----------
    law : callable
        Takes the last one or two ids of the context and returns probabilities above 0,
        shape (vocab_size,).
    vocab_size : int
    name : str
    call_seconds : float, default 0.0
        What one call costs on `clock`, whatever the number of rows.
    clock : SimulatedClock, optional
        Moved on by every call; forks share it.
    """

    context_length = 1_000_000

    def __init__(
        self,
        law: Callable[[tuple[int, ...]], Row],
        vocab_size: int,
        *,
        name: str,
        call_seconds: float = 0.0,
        clock: SimulatedClock | None = None,
    ) -> None:
        self.name = name
        self.vocab_size = vocab_size
        self._call_seconds = call_seconds
        self._clock = clock

        @lru_cache(maxsize=_ROWS_KEPT)
        def row(words: tuple[int, ...]) -> Row:
            scores = np.log(law(words))  # (vocab,)
            scores.flags.writeable = False
            return scores

        self._row = row

    def logits(self, context: Tokens, last: int = 1) -> Logits:
        """See `Model.logits`; float64."""
        if self._clock is not None:
            self._clock.advance(self._call_seconds)
        ends = range(len(context) - last + 1, len(context) + 1)
        return np.stack([self._row(tuple(context[max(0, end - _N_WORDS) : end])) for end in ends])

    def tree_logits(self, context: Tokens, tokens: Tokens, parents: Sequence[int]) -> Logits:
        """See `TreeModel.tree_logits`; float64, at the price of one call."""
        if self._clock is not None:
            self._clock.advance(self._call_seconds)
        before = tuple(context[-_N_WORDS:])
        branches = [branch(parents, node) for node in range(-1, len(tokens))]
        return np.stack([self._row((*before, *(tokens[place] for place in places))[-_N_WORDS:]) for places in branches])

    def fork(self) -> MarkovModel:
        """Itself: a row depends on two words only, so there is no cache to keep apart."""
        return self


def load_markov(
    *, agreement: float = 0.0, target_call_seconds: float = 0.0, draft_call_seconds: float = 0.0
) -> LoadedModel:
    """The trigram as target with a bigram as its partner.

    Parameters
    ----------
    agreement : float, default 0.0
        From -1 (the draft is nearly always wrong) over 0 (the plain bigram) to 1 (the draft has
        the target's law); see the module for the exact meaning.
    target_call_seconds, draft_call_seconds : float, default 0.0
        Simulated price of one call, in seconds, for any number of rows. If either is above 0,
        the result carries a `SimulatedClock`, new with every load; nothing sleeps.

    Raises
    ------
    SettingError
        If `agreement` is outside [-1, 1], or a price is negative or not finite.

    Examples
    --------
    >>> pair = load_markov(target_call_seconds=0.02)
    >>> prompt = pair.tokenizer.encode("The draft model")
    >>> best = int(pair.model.logits(prompt).argmax())
    >>> pair.tokenizer.token_bytes(best), pair.clock()
    (b' is', 0.02)
    """
    if not -1 <= agreement <= 1:
        raise SettingError(
            f"agreement is {agreement}; it must be from -1 (the draft is nearly always wrong) "
            "to 1 (the draft has the target's law)"
        )
    check_cost("target_call_seconds", target_call_seconds)
    check_cost("draft_call_seconds", draft_call_seconds)
    words, chain = _embedded()
    clock = SimulatedClock() if target_call_seconds > 0 or draft_call_seconds > 0 else None

    def target_law(context: tuple[int, ...]) -> Row:
        return chain.trigram(context)

    def draft_law(context: tuple[int, ...]) -> Row:
        if agreement == 1:
            return chain.trigram(context)
        towards = chain.trigram(context) if agreement > 0 else chain.contrary(context)
        weight = abs(agreement)
        return (1 - weight) * chain.bigram(context) + weight * towards

    size = words.vocab_size
    target = MarkovModel(target_law, size, name="markov", call_seconds=target_call_seconds, clock=clock)
    draft = MarkovModel(draft_law, size, name="markov-draft", call_seconds=draft_call_seconds, clock=clock)
    return LoadedModel(target, words, partner=draft, clock=clock)


@cache
def _embedded() -> tuple[WordTokenizer, Chain]:
    """The embedded text's words and counts, built once."""
    text = files("engine.models").joinpath("markov.txt").read_text(encoding="utf-8").strip()
    words = WordTokenizer(text)
    (end,) = words.end_tokens
    return words, Chain([*words.encode(text), end], words.context_classes())
