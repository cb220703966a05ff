"""The layer of a draft head, compiled; see `engine.drafters.head_network` for what it computes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.models.jit.decorators import compiled
from engine.models.jit.numbers import attend_head, dot, gate, norm, rotate
from engine.models.jit.product import Matrix, multiply, round_into

__all__ = ["Network", "least_score", "products_of", "run_layer"]

Array = NDArray[np.float32]

N_BINS = 2048  # that rough scores are sorted into


class Network(NamedTuple):
    """A draft head, packed; H query heads on G key-value heads."""

    n_heads: int
    n_kv_heads: int
    head_dim: int
    ffn_width: int
    epsilon: np.float32
    qkv: Matrix
    output: Matrix
    gate_up: Matrix
    down: Matrix
    screen_down: Matrix
    rough: Matrix
    attention_norm: Array  # (W,)
    ffn_norm: Array  # (W,)
    output_scale: Array  # (W,)
    output_bias: Array  # (W,)


@compiled
def _product(matrix: Matrix, rows: Array) -> Array:
    n_rows = len(rows)
    numbers = np.empty((n_rows, matrix.n_blocks * 32), np.int8)
    factors = np.empty((n_rows, matrix.n_blocks * 2), np.float32)
    results = np.empty((n_rows, matrix.blocks.shape[1] * 8), np.float32)
    for row in range(n_rows):
        round_into(rows[row], row, numbers, factors)
    multiply(matrix, 0, numbers, factors, 0, results, 0, matrix.blocks.shape[1])
    return results


@compiled
def run_layer(
    network: Network,
    entry: Matrix,
    inputs: Array,
    keys: Array,
    values: Array,
    start: int,
    cosines: Array,
    sines: Array,
) -> tuple[Array, Array, Array]:
    """What becomes of the last of the inputs, (W,), its guess of the target's hidden row, (W,), and rough scores.

    `entry` makes the layer's input of `inputs`, shape (n, inputs of it). Keys and values of all n are written from
    `start` on, shape (G, room, head_dim, filled up with zeros).
    """
    n_rows, width, dim = len(inputs), len(network.output_bias), network.head_dim
    heads, kv_heads = network.n_heads, network.n_kv_heads
    rows = _product(entry, inputs)[:, :width].copy()
    normed = np.empty((n_rows, width), np.float32)
    for row in range(n_rows):
        norm(rows[row], network.attention_norm, network.epsilon, normed[row])
    outputs = _product(network.qkv, normed)
    for row in range(n_rows):
        for head in range(heads + kv_heads):
            rotate(outputs[row, head * dim : (head + 1) * dim], cosines[row], sines[row])
        for head in range(kv_heads):
            first = (heads + head) * dim
            keys[head, start + row, :dim] = outputs[row, first : first + dim]
            first += kv_heads * dim
            values[head, start + row, :dim] = outputs[row, first : first + dim]
    gathered = _attention(network, outputs[n_rows - 1], keys, values, start + n_rows)
    state = rows[n_rows - 1] + _product(network.output, gathered)[0, :width]
    norm(state, network.ffn_norm, network.epsilon, normed[0])
    both = _product(network.gate_up, normed[:1])
    gated = np.empty((1, network.ffn_width), np.float32)
    gate(both[0], gated[0])
    state = state + _product(network.down, gated)[0, :width]
    guess = state * network.output_scale + network.output_bias
    squeezed = _product(network.screen_down, guess.reshape(1, width))
    scores = _product(network.rough, squeezed)[0]
    return state, guess, scores


@compiled
def _attention(network: Network, outputs: Array, keys: Array, values: Array, stop: int) -> Array:
    dim = network.head_dim
    gathered, slots = np.empty((1, network.n_heads * dim), np.float32), np.arange(stop, dtype=np.int32)
    for head in range(network.n_heads):
        source = head // (network.n_heads // network.n_kv_heads)
        attend_head(outputs, head * dim, dim, keys[source], values[source], slots, gathered[0])
    return gathered


@compiled
def least_score(scores: Array, n_wanted: int) -> np.float32:
    """A score that at least `n_wanted` of them reach, and not many more: the foot of a bin of a histogram.

    If a score is not finite, that score.
    """
    lowest: np.float32 = scores[0]
    highest: np.float32 = scores[0]
    score: np.float32
    for score in scores:
        if not abs(score) < np.inf:
            return score
        lowest, highest = min(lowest, score), max(highest, score)
    bins = np.float32(N_BINS) / (highest - lowest)
    if n_wanted >= len(scores) or not 0 < bins < np.inf:  # too near to each other, or too far apart
        return lowest
    counts = np.zeros(N_BINS + 1, np.int32)
    for score in scores:
        counts[int((score - lowest) * bins)] += 1
    n_found, foot = 0, N_BINS + 1
    while n_found < n_wanted:
        foot -= 1
        n_found += counts[foot]
    least = highest
    for score in scores:
        if score < least and int((score - lowest) * bins) >= foot:
            least = score
    return least


@compiled
def products_of(places: NDArray[np.int64], rows: Array, vector: Array) -> Array:
    """The products of some rows with a vector."""
    results = np.empty(len(places), np.float32)
    for place in range(len(places)):
        results[place] = dot(rows[places[place]], vector)
    return results
