"""A draft head that numba runs; the counterpart of `NumpyHead` for a target that numba runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.drafters.head_file import HeadWeights
from engine.drafters.head_network import Guess
from engine.drafters.screen import N_CANDIDATES
from engine.models.attention import Cache
from engine.models.jit.attention import ATTENTION_UNIT
from engine.models.jit.head_program import Network, least_score, products_of, run_layer
from engine.models.jit.packed import pack_matrix
from engine.models.jit.product import Matrix
from engine.models.rope import Rope, frequencies, turns

__all__ = ["JitHead", "PackedHead", "pack_head"]

Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class PackedHead:
    """A head in memory; several runs may share it.

    Attributes
    ----------
    network : Network
    first, further : Matrix
        Make the layer's input, at depth 0 and at the depths behind it: of the features and the token's embedding, or
        of the head's own output and the embedding, side by side.
    """

    network: Network
    first: Matrix
    further: Matrix


def pack_head(weights: HeadWeights, head: Array) -> PackedHead:
    """Pack a head; `head` (V, W) are the target's head rows of `weights.tokens`."""
    packed = {
        name: pack_matrix(matrix)
        for name, matrix in (
            ("qkv", weights.qkv),
            ("output", weights.output),
            ("gate_up", weights.gate_up),
            ("down", weights.down),
            ("screen_down", weights.screen_down),
            ("rough", head @ weights.screen_up),
        )
    }
    network = Network(
        weights.n_heads,
        weights.n_kv_heads,
        weights.head_dim,
        weights.down.shape[1],
        np.float32(weights.norm_epsilon),
        **packed,
        attention_norm=weights.attention_norm,
        ffn_norm=weights.ffn_norm,
        output_scale=weights.output_scale,
        output_bias=weights.output_bias,
    )
    first = pack_matrix(np.concatenate([weights.feature, weights.feature_token], axis=1))
    return PackedHead(network, first, pack_matrix(np.concatenate([weights.state, weights.token], axis=1)))


class JitHead:
    """One context of a packed head; see `HeadNetwork` for what it promises.

    Parameters
    ----------
    packed : PackedHead
    weights : HeadWeights
    head : array, shape (V, W)
        The target's head rows of `weights.tokens`.
    limit : int
        Tokens that its cache may ever hold.
    """

    def __init__(self, packed: PackedHead, weights: HeadWeights, head: Array, limit: int) -> None:
        self._packed = packed
        self._weights = weights
        self._head = head
        self._rope = frequencies(Rope(weights.rope_base, weights.head_dim, interleaved=False))
        self._cache = Cache(1, weights.n_kv_heads, -(-weights.head_dim // ATTENTION_UNIT) * ATTENTION_UNIT, limit)
        self._cosines, self._sines = (table[:, 0] for table in turns(self._rope, 0, 0))

    def read(self, start: int, features: Array, embeddings: Array) -> Guess:
        """See `HeadNetwork.read`."""
        weights = self._weights
        standard: Array = (features - weights.feature_mean) * weights.feature_scale  # (n, D, W)
        inputs = np.concatenate([standard.reshape(len(features), -1), embeddings * weights.token_scale], axis=1)
        return self._run(self._packed.first, start, inputs)

    def go_on(self, place: int, state: Array, embedding: Array) -> Guess:
        """See `HeadNetwork.go_on`."""
        inputs = np.concatenate([state, embedding * self._weights.token_scale])[None]
        return self._run(self._packed.further, place, inputs)

    def _run(self, entry: Matrix, start: int, inputs: Array) -> Guess:
        stop = start + len(inputs)
        self._cache.reserve(stop)
        if stop > len(self._cosines):  # as many as the cache has room for
            self._cosines, self._sines = (table[:, 0] for table in turns(self._rope, 0, self._cache.keys.shape[2]))
        keys, values = self._cache.keys[0], self._cache.values[0]
        turned = self._cosines[start:stop], self._sines[start:stop]
        state, guess, scores = run_layer(self._packed.network, entry, inputs, keys, values, start, *turned)
        scores = scores[: len(self._head)]
        places = np.flatnonzero(~(scores < least_score(scores, N_CANDIDATES)))  # all, if a score is not a number
        return Guess(state, self._weights.tokens[places], products_of(places, self._head, guess))
