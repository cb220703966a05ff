"""A trained draft head as drafter: it reads what the target thinks, and guesses the tokens behind it."""

from __future__ import annotations

from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.drafters.confidence import chance_of_keeping
from engine.drafters.head_file import HeadWeights
from engine.drafters.head_network import Guess, HeadNetwork
from engine.errors import ForwardError, SettingError
from engine.lengths import ALWAYS, GoOn, Prospect, spread
from engine.models.base import HiddenModel, Model
from engine.sampling import Law, Noise, Purpose, Sampling, Sparse, law_of_scores, penalised
from engine.values import Draft, Tokens

__all__ = ["EagleDrafter", "RowsByToken"]

Array = NDArray[np.float32]

CHUNK = 256  # tokens of a long prompt that are read at once


class RowsByToken(Protocol):
    """What the head needs of its target's matrices; see `engine.models.token_rows`."""

    @property
    def head(self) -> Array:
        """Head rows of the tokens that may be proposed, shape (V, W)."""

    @property
    def vocab_size(self) -> int:
        """The target's."""

    def embedding(self, tokens: NDArray[np.int64]) -> Array:
        """The embedding of any tokens, shape (n, W)."""


class EagleDrafter:
    """Draft with a head on the target: draw each token from its law over the candidates it scores.

    The law that a token is drawn from gives nothing to tokens outside the candidates; it is handed
    over as it is, so the exact rule stays exact.

    Parameters
    ----------
    target : Model
        Must show its hidden rows (`HiddenModel`); the drafter asks the very model that decodes.
    weights : HeadWeights
    rows : RowsByToken
    network : HeadNetwork
        With an empty cache of its own.

    Raises
    ------
    SettingError
        If the target does not show hidden rows, or is of another shape than the head was made for.
    """

    name = "eagle"

    def __init__(
        self,
        target: Model,
        weights: HeadWeights,
        rows: RowsByToken,
        network: HeadNetwork,
    ) -> None:
        if not isinstance(target, HiddenModel):
            raise SettingError(
                f"{target.name} does not show its hidden rows, which a draft head reads; choose ngram or none"
            )
        if rows.vocab_size != target.vocab_size:
            raise SettingError(
                f"the draft head belongs to a model of {rows.vocab_size} tokens, and {target.name} has "
                f"{target.vocab_size}; choose ngram or none"
            )
        width = target.hidden([0], 1, weights.taps).shape[-1]  # from now on the target keeps these rows
        if width != weights.width:
            raise SettingError(
                f"the draft head is made for hidden rows of {weights.width} numbers, and {target.name} has {width}; "
                "choose ngram or none"
            )
        self.context_length: int | None = target.context_length
        self._target = target
        self._taps = weights.taps
        self._network = network
        self._rows = rows
        self._read: NDArray[np.int64] = np.empty(0, np.int64)  # the ids that the entries of depth 0 were made from
        self._guess: Guess | None = None  # what follows the last of them

    def prepare(self, context: Tokens) -> None:
        """Read the prompt."""
        if len(context) > 1:
            self._catch_up(np.asarray(context, np.int64))

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
        """See `Drafter.propose`. Stops behind an end token, and where it is told to; it knows its chances."""
        if len(context) < 2:
            return Draft(note="the draft head needs a token that the target has read")
        guess = self._catch_up(np.asarray(context, np.int64))
        place = len(context) - 2  # of the last entry; its output says what follows the context
        tokens: list[int] = []
        laws: list[Law] = []
        logits: list[float] = []
        survival = 1.0
        while True:
            candidates, scores = guess.tokens, guess.logits
            if not np.isfinite(scores.max()):
                raise ForwardError("the draft head gave logits that are not numbers (NaN or infinite)")
            behind = penalised(scores, sampling, [*context, *tokens], tokens=candidates)
            survival *= chance_of_keeping(behind, sampling.temperature)
            prospect = Prospect(len(tokens), survival=survival, law=partial(_spread, candidates, behind, sampling))
            if not go_on.before(prospect):
                return Draft(tuple(tokens), tuple(laws), tuple(logits), go_on.reason)
            drawn_from = Sparse.over(candidates, law_of_scores(behind, sampling))
            token = noise.draw(drawn_from, len(context) + len(tokens), Purpose.DRAFT)
            tokens.append(token)
            laws.append(drawn_from)
            logits.append(float(scores[np.searchsorted(candidates, token)]))
            if len(tokens) == limit or token in end_tokens:
                return Draft(tuple(tokens), tuple(laws), tuple(logits))
            if not go_on.behind(prospect, token):
                return Draft(tuple(tokens), tuple(laws), tuple(logits), go_on.reason)
            place += 1
            guess = self._network.go_on(place, guess.state, self._rows.embedding(np.array([token]))[0])

    def _catch_up(self, ids: NDArray[np.int64]) -> Guess:
        """Write the missing entries of depth 0 from the target's true features; the guess behind the last one."""
        n_entries = len(ids) - 1  # entry t is made of the hidden row of token t and the embedding of token t + 1
        n_both = min(len(ids), len(self._read))
        different = np.flatnonzero(ids[:n_both] != self._read[:n_both])
        n_common = int(different[0]) if len(different) else n_both
        guess = self._guess
        if guess is not None and n_common == len(ids) == len(self._read):
            return guess
        start = min(max(n_common - 1, 0), n_entries - 1)  # the output of the last entry is needed in any case
        self._read = ids[: start + 1]
        features = self._target.hidden(ids[:-1].tolist(), n_entries - start, self._taps)  # (n, 1 + taps, W)
        for low in range(start, n_entries, CHUNK):
            high = min(low + CHUNK, n_entries)
            embeddings = self._rows.embedding(ids[low + 1 : high + 1])
            guess = self._network.read(low, features[low - start : high - start], embeddings)
        assert guess is not None  # there is at least one entry
        self._read, self._guess = ids, guess
        return guess


def _spread(candidates: NDArray[np.int64], scores: NDArray[np.floating], sampling: Sampling) -> Law:
    return Sparse.over(candidates, spread(scores, law_of_scores(scores, sampling)))
