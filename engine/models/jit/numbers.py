"""What happens to the numbers between two products: norm, rotation, attention, gate, and rounding to 8 bits.

Every function handles one row, in the same order of operations whatever other rows there are: that
makes a row the same, bit for bit, alone and in a block.  Loops that LLVM may turn into vector
instructions leave that order alone, but for sums and maxima over a fixed length, which come out the
same each time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.models.jit.attention import dot_with_slots, sum_of_slots
from engine.models.jit.decorators import compiled, compiled_for_finite, compiled_fused, compiled_in_any_order
from engine.models.jit.dot_products import BLOCK
from engine.models.jit.rounding import largest_of_block, round_block
from engine.models.jit.shared import bits_as_float
from engine.models.jit.views import floats_at

__all__ = ["attend", "dot", "gate", "highest", "norm", "nothing", "rotate", "round_row"]

Array = NDArray[np.float32]

LOG2_E = np.float32(1.44269504)
LN_2_HIGH, LN_2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
LOWEST, HIGHEST = np.float32(-87.0), np.float32(88.0)  # exp is within float32 between them


@compiled_in_any_order
def dot(left: Array, right: Array) -> np.float32:
    total = np.float32(0)
    for place in range(len(left)):
        total += left[place] * right[place]
    return total


@compiled_in_any_order
def nothing(values: Array) -> np.float32:
    """Zero; but not a number, if one of the values is none or without bounds."""
    total = np.float32(0)
    for place in range(len(values)):
        total += values[place] * np.float32(0)
    return total


@compiled_for_finite
def highest(values: Array) -> np.float32:
    found = np.float32(-np.inf)
    for place in range(len(values)):
        found = max(found, values[place])
    return found


@compiled_in_any_order
def _sum(values: Array) -> np.float32:
    total = np.float32(0)
    for place in range(len(values)):
        total += values[place]
    return total


@compiled_fused
def _exp(value: np.float32) -> np.float32:
    """e to the power of a float32, within 2e-7 of it; polynomial as in Moshier, *Cephes* (expf)."""
    value = min(max(value, LOWEST), HIGHEST)
    power = np.floor(value * LOG2_E + np.float32(0.5))
    rest = value - power * LN_2_HIGH - power * LN_2_LOW
    series = np.float32(1.9875691500e-4)
    series = series * rest + np.float32(1.3981999507e-3)
    series = series * rest + np.float32(8.3334519073e-3)
    series = series * rest + np.float32(4.1665795894e-2)
    series = series * rest + np.float32(1.6666665459e-1)
    series = series * rest + np.float32(5.0000001201e-1)
    series = series * rest * rest + rest + np.float32(1)
    two_to_the_power: np.float32 = bits_as_float((np.int32(power) + np.int32(127)) << np.int32(23))
    result: np.float32 = series * two_to_the_power
    return result


@compiled
def norm(row: Array, weight: Array, epsilon: np.float32, normed: Array) -> None:
    """RMS norm of a row, into `normed`."""
    scale = np.float32(1) / np.sqrt(dot(row, row) / np.float32(len(row)) + epsilon)
    for place in range(len(row)):
        normed[place] = row[place] * scale * weight[place]


@compiled
def round_row(row: Array, numbers: NDArray[np.int8], factors: Array) -> None:
    """Round a row to 8 bits in blocks of 32: `numbers`, and per block the factor and the factor times their sum."""
    none = nothing(row)  # whole numbers cannot say that something is none, and must not hide it
    n_blocks = len(row) // BLOCK
    for block in range(n_blocks):
        _round_block(row.ctypes.data + 4 * BLOCK * block, block, none, numbers, factors)
    if n_blocks < len(numbers) // BLOCK:
        _round_rest(row, n_blocks, none, numbers, factors)


@compiled
def _round_block(values: int, block: int, none: np.float32, numbers: NDArray[np.int8], factors: Array) -> None:
    largest = largest_of_block(values)
    inverse = np.float32(127) / largest if largest > 0 else np.float32(0)
    total = round_block(values, inverse, numbers.ctypes.data + BLOCK * block)
    _note_factors(largest, total, block, none, factors)


@compiled
def _round_rest(row: Array, block: int, none: np.float32, numbers: NDArray[np.int8], factors: Array) -> None:
    """The last block, which the row does not fill."""
    largest, total = np.float32(0), np.int32(0)
    for place in range(BLOCK * block, len(row)):
        largest = max(largest, abs(row[place]))
    inverse = np.float32(127) / largest if largest > 0 else np.float32(0)
    for place in range(BLOCK * block, BLOCK * (block + 1)):
        number = np.int32(np.rint(row[place] * inverse)) if place < len(row) else np.int32(0)
        numbers[place] = number
        total += number
    _note_factors(largest, total, block, none, factors)


@compiled
def _note_factors(largest: np.float32, total: np.int32, block: int, none: np.float32, factors: Array) -> None:
    factor = largest / np.float32(127) + none
    factors[2 * block] = factor
    factors[2 * block + 1] = factor * np.float32(total)


@compiled
def rotate(head: Array, cosines: Array, sines: Array) -> None:
    """Turn a query or key in place; see `engine.models.rope`."""
    half = len(cosines)
    for place in range(half):
        left, right = head[place], head[half + place]
        head[place] = left * cosines[place] - right * sines[place]
        head[half + place] = left * sines[place] + right * cosines[place]


@compiled
def attend(
    queries: int, n_queries: int, length: int, keys: int, values: int, slots: int, n_slots: int, weights: int,
    row_weights: int, gathered: int,
) -> None:  # fmt: skip
    """What some queries gather from the values at some slots, in that order.

    All but numbers are addresses: of queries, keys, values and what is gathered, `length` long each, of slots, and of
    room for weights, `row_weights` for each query; see `dot_with_slots`.
    """
    dot_with_slots(queries, n_queries, keys, slots, n_slots, length, weights, row_weights)
    for query in range(n_queries):
        _softmax(floats_at(weights + 4 * query * row_weights, n_slots))
    whole = floats_at(gathered, n_queries * length)
    for place in range(len(whole)):
        whole[place] = np.float32(0)
    sum_of_slots(weights, row_weights, n_queries, values, slots, n_slots, length, gathered)


@compiled
def _softmax(scores: Array) -> None:
    best = highest(scores)
    for place in range(len(scores)):
        scores[place] = _exp(scores[place] - best)
    share = np.float32(1) / _sum(scores)
    for place in range(len(scores)):
        scores[place] *= share


@compiled
def gate(both: Array, gated: Array) -> None:
    """SiLU of the first half of a row times its second half."""
    half = len(gated)
    for place in range(half):
        value = both[place]
        gated[place] = value / (np.float32(1) + _exp(-value)) * both[half + place]
