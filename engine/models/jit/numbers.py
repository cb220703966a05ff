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
from engine.models.jit.decorators import compiled, compiled_for_finite, compiled_in_any_order
from engine.models.jit.dot_products import BLOCK
from engine.models.jit.shared import bits_as_float

__all__ = ["attend", "attend_head", "dot", "gate", "norm", "rotate", "round_row"]

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
def _nothing(values: Array) -> np.float32:
    """Zero; but not a number, if one of the values is none or without bounds."""
    total = np.float32(0)
    for place in range(len(values)):
        total += values[place] * np.float32(0)
    return total


@compiled_for_finite
def _largest(values: Array) -> np.float32:
    largest = np.float32(0)
    for value in values:
        largest = max(largest, abs(value))
    return largest


@compiled
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
    nothing = _nothing(row)  # whole numbers cannot say that something is none, and must not hide it
    for block in range(len(numbers) // BLOCK):
        first = block * BLOCK
        part = row[first : first + BLOCK]
        largest = _largest(part)
        factor = largest / np.float32(127) + nothing
        inverse = np.float32(127) / largest if largest > 0 else np.float32(0)
        total = np.int32(0)
        numbers[first + len(part) : first + BLOCK] = 0
        for place in range(len(part)):
            number = np.int32(np.rint(part[place] * inverse))
            numbers[first + place] = np.int8(number)
            total += number
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
def attend(query: Array, keys: Array, values: Array, slots: NDArray[np.int32], weights: Array, gathered: Array) -> None:
    """What a query gathers from the values at some slots, in that order; `weights` is room for as many numbers."""
    n_slots, length = len(slots), len(query)
    dot_with_slots(query.ctypes.data, keys.ctypes.data, slots.ctypes.data, n_slots, length, weights.ctypes.data)
    largest = np.float32(-np.inf)
    for place in range(n_slots):
        largest = max(largest, weights[place])
    for place in range(n_slots):
        weights[place] = _exp(weights[place] - largest)
    total = np.float32(0)
    for place in range(n_slots):
        total += weights[place]
    share = np.float32(1) / total
    for place in range(n_slots):
        weights[place] *= share
    sum_of_slots(weights.ctypes.data, values.ctypes.data, slots.ctypes.data, n_slots, length, gathered.ctypes.data)


@compiled
def attend_head(
    outputs: Array, first: int, size: int, keys: Array, values: Array, slots: NDArray[np.int32], gathered: Array
) -> None:
    """What one head gathers: of `outputs` and `gathered`, its numbers are the `size` from `first` on."""
    padded = keys.shape[1]
    query, whole, weights = np.zeros(padded, np.float32), np.empty(padded, np.float32), np.empty(len(slots), np.float32)
    factor = np.float32(1) / np.sqrt(np.float32(size))
    for place in range(size):
        query[place] = outputs[first + place] * factor
    attend(query, keys, values, slots, weights, whole)
    gathered[first : first + size] = whole[:size]


@compiled
def gate(both: Array, gated: Array) -> None:
    """SiLU of the first half of a row times its second half."""
    half = len(gated)
    for place in range(half):
        value = both[place]
        gated[place] = value / (np.float32(1) + _exp(-value)) * both[half + place]
