"""Prompt lookup: find where the last few tokens occurred before and propose what followed.

After Saxena's prompt-lookup-decoding and the candidate generators of transformers and vLLM, with
three choices made explicit: the longest n-gram wins; among its occurrences the most recent one
(or the first, if asked for); and no match means no draft, not a draft that is sure to fail.
"""

from __future__ import annotations

from numbers import Integral
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.errors import SettingError
from engine.lengths import ALWAYS, GoOn
from engine.sampling import Noise, OneHot, Sampling
from engine.values import Draft, Tokens

__all__ = ["Match", "PromptLookup"]

Match = Literal["recent", "first"]


class PromptLookup:
    """Propose the continuation of an earlier occurrence of the last n tokens.

    Parameters
    ----------
    max_n : int, default 3
        Longest n-gram that is looked for; shorter ones follow, down to `min_n`.
    match : {"recent", "first"}, default "recent"
        Which occurrence wins: the most recent, or the first of the context.
    min_n : int, default 1
        Shortest n-gram that is looked for. A longer match is a better guess.

    Raises
    ------
    SettingError
        If a value is outside its range.

    Examples
    --------
    >>> from engine.sampling import Noise, Sampling
    >>> ask = dict(sampling=Sampling(), noise=Noise(0), end_tokens=frozenset())
    >>> PromptLookup().propose([5, 6, 7, 8, 5, 6], 2, **ask).tokens
    (7, 8)
    """

    name = "ngram"
    context_length: int | None = None

    def __init__(self, max_n: int = 3, match: Match = "recent", *, min_n: int = 1) -> None:
        if not (isinstance(max_n, Integral) and 1 <= max_n <= 16):
            raise SettingError(f"the longest n-gram is {max_n}; it must be a whole number from 1 to 16")
        if match not in ("recent", "first"):
            raise SettingError(f"the n-gram match is {match!r}; it must be 'recent' or 'first'")
        if not (isinstance(min_n, Integral) and 1 <= min_n <= max_n):
            raise SettingError(
                f"the shortest n-gram is {min_n}; it must be a whole number from 1 to the longest, {max_n}"
            )
        self.min_n: int = min_n
        self.max_n: int = max_n
        self.match: Match = match

    def prepare(self, context: Tokens) -> None:
        """Nothing to read: the context is searched afresh at every step."""

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
        """See `Drafter.propose`. The laws are one-hot: a lookup is deterministic, and asks no policy to go on."""
        ids = np.asarray(context)
        found = self.find(ids)
        if found is None:
            return Draft(note=f"no earlier occurrence of the last {min(self.max_n, len(ids))} tokens or fewer")
        return self.draft(ids, found, limit)

    def draft(self, ids: NDArray[np.int64], start: int, limit: int) -> Draft:
        """The tokens of the context from `start` on, at most `limit`."""
        tokens = tuple(int(token) for token in ids[start : start + limit])
        note = "" if len(tokens) == limit else "what followed the same words ends with the context"
        return Draft(tokens, tuple(OneHot(token) for token in tokens), note=note)

    def find(self, ids: NDArray[np.int64]) -> int | None:
        """Where the last n-gram occurred before: the place behind it, or None.

        Parameters
        ----------
        ids : array, shape (n,)
        """
        places = self.occurrences(ids)
        return self.choose(places) if len(places) else None

    def choose(self, places: NDArray[np.int64]) -> int:
        """The occurrence that wins, of some in rising order."""
        return int(places[-1] if self.match == "recent" else places[0])

    def occurrences(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """All places behind earlier occurrences of the longest n-gram that has any, in rising order."""
        for n in range(min(self.max_n, len(ids) - 1), self.min_n - 1, -1):
            # starts of the n-grams that end before the last one does
            windows = np.lib.stride_tricks.sliding_window_view(ids[:-1], n)
            starts = np.flatnonzero((windows == ids[-n:]).all(axis=1))
            if len(starts):
                return starts + n
        return np.empty(0, np.int64)
