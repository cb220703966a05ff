"""A model's own first layers as its draft: early exit, sharing weights, keys and values.

After LayerSkip (Elhoushi et al., arXiv 2404.16710) and Draft & Verify (arXiv 2309.08168): the
residual stream behind the first E layers goes through the output norm and the head as if the model
ended there.  A token costs c = (weights of E layers and of the head) / (all weights) of a plain
call, and the head does not shrink, so that c is far above E / L for a model with a large vocabulary.
LayerSkip trains models to speak early; one that was not trained so is understood by its own head
only near its end, where an exit saves little.

Not here: skipping layers in the middle, the adapter of Kangaroo, and handing the first layers'
results to the verifier: it computes them again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.errors import SettingError
from engine.models.base import LayeredModel, Logits
from engine.models.context import n_common
from engine.values import Tokens

__all__ = ["EarlyCache", "EarlyExit", "exit_layers"]

Ids = NDArray[np.int64]


def exit_layers(model: LayeredModel, n_layers: int = 0) -> int:
    """How many layers an exit is behind: `n_layers`, or two thirds of all for 0.

    Raises
    ------
    SettingError
        If the model does not have so many, or ends there anyway, as one of a single layer always does.
    """
    if model.n_layers < 2:
        raise SettingError(
            f"{model.name} has one layer, and early exit needs a model of two or more; choose another drafter"
        )
    chosen = n_layers or 2 * model.n_layers // 3
    if not 1 <= chosen < model.n_layers:
        raise SettingError(
            f"the exit layer is {n_layers}; {model.name} has {model.n_layers} layers, so it must be from 1 to "
            f"{model.n_layers - 1}, or 0 for two thirds of them"
        )
    return chosen


class EarlyExit:
    """The first layers of a model with its norm and head; see `Model` for what it promises.

    Parameters
    ----------
    model : LayeredModel
        The very model that decodes, whose keys and values it shares. Both may be asked in any order.
    n_layers : int, default 0
        Layers to go through, fewer than there are; 0 takes two thirds.

    Raises
    ------
    SettingError
        If the model does not have so many layers, or only one.

    Examples
    --------
    >>> from engine.models.callable import CallableModel
    >>> class Layered(CallableModel):
    ...     n_layers = 3
    ...
    ...     def early_logits(self, context, last, n_layers):
    ...         return self.logits(context, last) * n_layers / self.n_layers
    >>> early = EarlyExit(Layered(lambda ids: np.eye(3)[ids[-1]], vocab_size=3, name="small"))
    >>> early.name, early.logits([1]).round(2).tolist()
    ('small-first-2', [[0.0, 0.67, 0.0]])
    """

    def __init__(self, model: LayeredModel, n_layers: int = 0) -> None:
        self._model = model
        self.n_layers = exit_layers(model, n_layers)
        self.name = f"{model.name}-first-{self.n_layers}"
        self.vocab_size = model.vocab_size
        self.context_length = model.context_length

    def logits(self, context: Tokens, last: int = 1) -> Logits:
        """See `Model.logits`."""
        return self._model.early_logits(context, last, self.n_layers)

    def fork(self) -> EarlyExit:
        """The same over a fork of the model."""
        return EarlyExit(self._model.fork(), self.n_layers)


class EarlyCache:
    """Which ids the first layers of a cache hold beyond those that all of its layers hold."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """All layers have been written to: the first ones hold nothing of their own."""
        self._n_layers = 0
        self._ids: Ids = np.empty(0, np.int64)

    def begin(self, ids: Ids, n_layers: int) -> None:
        """The first `n_layers` layers hold `ids`, and behind these nothing."""
        self._n_layers, self._ids = n_layers, ids

    def n_kept(self, ids: Ids, n_layers: int, cached: Ids) -> int:
        """How many of `ids` the first `n_layers` layers hold, where all layers hold `cached`."""
        kept = n_common(ids, cached)
        return max(kept, n_common(ids, self._ids)) if n_layers <= self._n_layers else kept
