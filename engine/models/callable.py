"""Any Python function `prefix_ids -> logits` as a model: the way in for every framework."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from engine.errors import ForwardError, SettingError
from engine.models.base import Logits
from engine.tree import branch
from engine.values import Tokens

__all__ = ["CallableModel"]


class CallableModel:
    """A function of the context as a model; it is called once for every row asked for.

    Parameters
    ----------
    function : callable
        Takes the ids so far (a list of int) and returns the logits of the next token,
        shape (vocab_size,).
    vocab_size : int
        Number of ids, at least 1.
    name : str, default "callable"
    context_length : int, default 1_000_000
        The longest context that the function takes, in tokens.

    Raises
    ------
    SettingError
        If `vocab_size` or `context_length` is less than 1.
    ForwardError
        If the function returns something of another shape.

    Examples
    --------
    >>> model = CallableModel(lambda ids: np.eye(4)[ids[-1]], vocab_size=4)
    >>> model.logits([0, 3], last=2).argmax(axis=1).tolist()
    [0, 3]
    """

    def __init__(
        self,
        function: Callable[[list[int]], ArrayLike],
        vocab_size: int,
        *,
        name: str = "callable",
        context_length: int = 1_000_000,
    ) -> None:
        if vocab_size < 1 or context_length < 1:
            raise SettingError(f"vocab_size {vocab_size} and context_length {context_length} must be at least 1")
        self._function = function
        self.vocab_size = vocab_size
        self.name = name
        self.context_length = context_length

    def logits(self, context: Tokens, last: int = 1) -> Logits:
        """See `Model.logits`."""
        ids = list(context)
        return np.stack([self._row(ids[:end]) for end in range(len(ids) - last + 1, len(ids) + 1)])

    def tree_logits(self, context: Tokens, tokens: Tokens, parents: Sequence[int]) -> Logits:
        """See `TreeModel.tree_logits`; the function is called once for every token of the tree."""
        ids = list(context)
        branches = [branch(parents, node) for node in range(-1, len(tokens))]
        return np.stack([self._row([*ids, *(tokens[place] for place in places)]) for places in branches])

    def _row(self, ids: list[int]) -> Logits:
        row = np.asarray(self._function(ids))
        if row.shape != (self.vocab_size,):
            raise ForwardError(
                f"{self.name} returned logits of shape {row.shape}; expected ({self.vocab_size},), one per id"
            )
        return row

    def fork(self) -> CallableModel:
        """Itself: a function has no cache."""
        return self
