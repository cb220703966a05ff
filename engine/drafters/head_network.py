"""The network of a draft head: from the target's hidden rows to its own guess of the next one.

After Li et al., *EAGLE* (arXiv 2401.15077) and *EAGLE-3* (arXiv 2503.01840): one decoder layer that
predicts the target's next final hidden row, fed with features of the target where they exist and
with its own output further on. With t the last token that the target has read,

    x_0 = feature @ z(features_t) + feature_token @ e_{t+1}         depth 0: the token behind t + 1
    x_k = state @ a_{k-1} + token @ e_{t+1+k}                       depth k: the one behind that
    a_k = layer(x_k)        guess of the hidden row = a_k * output_scale + output_bias

where z standardises and e is the target's embedding, scaled. Keys and values of depth 0 come from
true features, one for each accepted token; those of depths 1, 2, ... lie behind them in the same
cache and are overwritten by the next block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.drafters.head_file import HeadWeights
from engine.drafters.screen import Screen
from engine.models.attention import Cache, attend
from engine.models.rope import Rope, frequencies, rotate, turns

__all__ = ["Guess", "HeadNetwork", "NumpyHead"]

Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Guess:
    """What a head makes of one token.

    Attributes
    ----------
    state : array, shape (W,)
        Its output, from which it can go on.
    tokens : array of int, shape (n,)
        The candidates for what follows, in rising order.
    logits : array, shape (n,)
        Their logits.
    """

    state: Array
    tokens: NDArray[np.int64]
    logits: Array


class HeadNetwork(Protocol):
    """The network with a cache of its own, whatever runs it."""

    def read(self, start: int, features: Array, embeddings: Array) -> Guess:
        """Depth 0 for the tokens from `start` on: write their entries, guess what follows the last.

        Parameters
        ----------
        start : int
            Place of the first; entries before it stay.
        features : array, shape (n, 1 + taps, W)
            The target's hidden rows of these tokens.
        embeddings : array, shape (n, W)
            The target's embedding of the token behind each.
        """

    def go_on(self, place: int, state: Array, embedding: Array) -> Guess:
        """One depth further: `state` (W,) is the output before, `embedding` (W,) that of the token drawn from it."""


class NumpyHead:
    """The network in numpy; see `HeadNetwork`.

    Parameters
    ----------
    weights : HeadWeights
        Shared, never written to.
    screen : Screen
    limit : int
        Tokens that its cache may ever hold.
    """

    def __init__(self, weights: HeadWeights, screen: Screen, limit: int) -> None:
        self._weights = weights
        self._screen = screen
        self._cache = Cache(1, weights.n_kv_heads, weights.head_dim, limit)
        self._rope = frequencies(Rope(weights.rope_base, weights.head_dim, interleaved=False))
        self._epsilon = np.float32(weights.norm_epsilon)

    def read(self, start: int, features: Array, embeddings: Array) -> Guess:
        """See `HeadNetwork.read`."""
        weights = self._weights
        standard: Array = (features - weights.feature_mean) * weights.feature_scale  # (n, D, W)
        inputs: Array = standard.reshape(len(features), -1) @ weights.feature.T
        inputs += (embeddings * weights.token_scale) @ weights.feature_token.T
        return self._guess(self._layer(start, inputs))

    def go_on(self, place: int, state: Array, embedding: Array) -> Guess:
        """See `HeadNetwork.go_on`."""
        weights = self._weights
        inputs: Array = weights.state @ state + weights.token @ (embedding * weights.token_scale)
        return self._guess(self._layer(place, inputs[None]))

    def _guess(self, state: Array) -> Guess:
        return Guess(state, *self._screen.logits(state * self._weights.output_scale + self._weights.output_bias))

    def _layer(self, start: int, inputs: Array) -> Array:
        """Write keys and values of all `inputs` (n, W), and return what becomes of the last, (W,)."""
        weights = self._weights
        stop = start + len(inputs)
        self._cache.reserve(stop)
        qkv = self._norm(inputs, weights.attention_norm) @ weights.qkv.T
        heads = qkv.reshape(len(inputs), -1, weights.head_dim)  # (n, H + G + G, head_dim)
        first_value = weights.n_heads + weights.n_kv_heads
        rotate(heads[:, :first_value], *turns(self._rope, start, stop))
        keys, values = self._cache.keys[0], self._cache.values[0]  # (G, room, head_dim)
        keys[:, start:stop] = heads[:, weights.n_heads : first_value].transpose(1, 0, 2)
        values[:, start:stop] = heads[:, first_value:].transpose(1, 0, 2)
        mixed = attend(heads[-1:, : weights.n_heads], keys[:, :stop], values[:, :stop])[0]
        hidden: Array = inputs[-1] + weights.output @ mixed
        gate, up = np.split(weights.gate_up @ self._norm(hidden, weights.ffn_norm), 2)
        with np.errstate(over="ignore"):  # exp(-gate) may be inf, and 1 / (1 + inf) is the 0 it should be
            changed: Array = hidden + weights.down @ (gate / (1 + np.exp(-gate)) * up)
        return changed

    def _norm(self, rows: Array, weight: Array) -> Array:
        mean_square = np.vecdot(rows, rows)[..., None] / np.float32(rows.shape[-1])
        normed: Array = rows / np.sqrt(mean_square + self._epsilon) * weight
        return normed
