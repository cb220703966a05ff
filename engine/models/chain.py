"""The two laws of the embedded pair, counted from a text: a trigram and the bigram inside it.

Each order is mixed with the one below it by a fixed weight (Jelinek and Mercer, *Interpolated
estimation of Markov source parameters from sparse data*, 1980); a context that the text never
shows leaves everything to the order below. The last order is mixed with the uniform law, so
every id has a probability above 0. Nothing is tuned on held-out text: the pair is for looking at.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engine.values import Tokens

__all__ = ["Chain"]

Row = NDArray[np.float64]
Followers = tuple[NDArray[np.intp], Row]  # ids that follow a context, and how often, summing to 1

TRIGRAM_WEIGHT = 0.75
BIGRAM_WEIGHT = 0.95
UNIFORM_WEIGHT = 0.001


class Chain:
    """Counts of a text, and the laws made from them. Never changes once built.

    Parameters
    ----------
    tokens : sequence of int
        The text, its end token included.
    classes : sequence of int, length vocab_size
        Contexts are counted by class, so that `The` and `the` are one context; what follows is
        counted by id.

    Examples
    --------
    >>> chain = Chain([1, 2, 1, 2, 0], classes=[0, 1, 2])
    >>> chain.bigram([2]).round(2).tolist(), chain.trigram([1, 2]).round(2).tolist()
    ([0.49, 0.49, 0.02], [0.5, 0.5, 0.0])
    """

    def __init__(self, tokens: Tokens, classes: Sequence[int]) -> None:
        self.vocab_size = len(classes)
        self._classes = list(classes)
        kinds = [classes[token] for token in tokens]
        self._after_one = _followers(zip(kinds, tokens[1:], strict=False))
        self._after_two = _followers(zip(pairwise(kinds), tokens[2:], strict=False))
        counts = np.bincount(np.asarray(tokens), minlength=self.vocab_size)  # (vocab,)
        self._common = np.flatnonzero(counts > 1)
        self._unigram: Row = (1 - UNIFORM_WEIGHT) * counts / counts.sum() + UNIFORM_WEIGHT / self.vocab_size

    def trigram(self, context: Tokens) -> Row:
        """The law after the last two ids of `context`, shape (vocab,); the target's."""
        pair = tuple(self._classes[token] for token in context[-2:])
        return _mix(self.bigram(context), self._after_two.get(pair), TRIGRAM_WEIGHT)

    def bigram(self, context: Tokens) -> Row:
        """The law after the last id of `context`, shape (vocab,); the draft's."""
        return _mix(self._unigram, self._after_one.get(self._classes[context[-1]]), BIGRAM_WEIGHT)

    def contrary(self, context: Tokens) -> Row:
        """The law on the ids that never follow the last id of `context`, shape (vocab,).

        There it is proportional to the unigram, and the trigram has next to nothing. Where the
        last id has no followers, the ids that the text uses only once are taken. A thin uniform
        layer keeps every id above 0.
        """
        seen = self._after_one.get(self._classes[context[-1]])
        row = self._unigram.copy()
        row[self._common if seen is None else seen[0]] = 0.0
        row *= (1 - UNIFORM_WEIGHT) / row.sum()
        row += UNIFORM_WEIGHT / self.vocab_size
        return row


def _followers(pairs: Iterable[tuple[Hashable, int]]) -> Mapping[Hashable, Followers]:
    """For every context, the ids that follow it (ascending) and their relative frequencies."""
    counts: dict[Hashable, Counter[int]] = defaultdict(Counter)
    for context, token in pairs:
        counts[context][token] += 1
    table: dict[Hashable, Followers] = {}
    for context, followers in counts.items():
        ids = np.array(sorted(followers), dtype=np.intp)
        shares = np.array([followers[token] for token in ids.tolist()], dtype=np.float64)
        table[context] = (ids, shares / shares.sum())
    return table


def _mix(below: Row, followers: Followers | None, weight: float) -> Row:
    """`weight` of the followers' frequencies, the rest of the law below; all of it without followers."""
    if followers is None:
        return below.copy()
    row = (1 - weight) * below
    ids, shares = followers
    row[ids] += weight * shares
    return row
