"""A model as drafter: it proposes its own continuation, token by token."""

from __future__ import annotations

from functools import partial

import numpy as np

from engine.errors import ForwardError
from engine.lengths import ALWAYS, GoOn, Prospect, spread
from engine.models.base import Logits, Model
from engine.sampling import Law, Noise, Purpose, Sampling, law_of_scores, penalised
from engine.values import Draft, Tokens

__all__ = ["ModelDrafter", "fitted"]


class ModelDrafter:
    """Draft with a model: draw each token from its processed law.

    Parameters
    ----------
    model : Model
        Shares the target's tokens (checked where both tokenizers are known:
        `engine.models.vocabulary.check_vocabulary`).
    vocab_size : int
        The target's. Rows that are longer by padding are cut to it, shorter ones padded with
        tokens of probability 0.

    Examples
    --------
    >>> from engine.models.callable import CallableModel
    >>> from engine.sampling import Noise, Sampling
    >>> counting = CallableModel(lambda ids: np.eye(5)[(ids[-1] + 1) % 5], vocab_size=5)
    >>> ask = dict(sampling=Sampling(temperature=0), noise=Noise(0), end_tokens=frozenset())
    >>> ModelDrafter(counting, vocab_size=5).propose([2], 2, **ask).tokens
    (3, 4)
    """

    def __init__(self, model: Model, vocab_size: int) -> None:
        self._model = model
        self._vocab_size = vocab_size
        self.name = f"model:{model.name}"
        self.context_length: int | None = model.context_length

    def prepare(self, context: Tokens) -> None:
        """Fill the model's cache with the prompt."""
        self._model.logits(context)

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
        """See `Drafter.propose`. Stops behind an end token, and where it is told to."""
        ids = list(context)
        tokens: list[int] = []
        laws: list[Law] = []
        logits: list[float] = []
        while len(tokens) < limit and not (tokens and tokens[-1] in end_tokens):
            row = fitted(self._model.logits(ids)[0], self._vocab_size, self._model.name)
            scores = penalised(row, sampling, ids)
            drawn_from = law_of_scores(scores, sampling)
            prospect = Prospect(len(tokens), law=partial(spread, scores, drawn_from))
            if not go_on.before(prospect):
                return Draft(tuple(tokens), tuple(laws), tuple(logits), go_on.reason)
            token = noise.draw(drawn_from, len(ids), Purpose.DRAFT)
            tokens.append(token)
            laws.append(drawn_from)
            logits.append(float(row[token]))
            ids.append(token)
            if len(tokens) < limit and token not in end_tokens and not go_on.behind(prospect, token):
                return Draft(tuple(tokens), tuple(laws), tuple(logits), go_on.reason)
        return Draft(tuple(tokens), tuple(laws), tuple(logits))


def fitted(row: Logits, vocab_size: int, name: str) -> Logits:
    """A row of a draft model in the target's size: padding is cut off, missing tokens have probability 0.

    Examples
    --------
    >>> fitted(np.array([0.0, 1.0, 5.0]), 2, "draft"), fitted(np.array([0.0]), 2, "draft")
    (array([0., 1.]), array([  0., -inf]))
    """
    row = row[:vocab_size]
    if not np.isfinite(row.max()):
        raise ForwardError(f"{name} gave a row of logits without a finite maximum")
    missing = vocab_size - len(row)
    return np.pad(row, (0, missing), constant_values=-np.inf) if missing else row
