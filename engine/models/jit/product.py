"""Products of packed matrices with rows of 8 bits, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.models.jit.decorators import compiled
from engine.models.jit.dot_products import BLOCK, GROUP, dot_products
from engine.models.jit.numbers import round_row
from engine.models.jit.shared import stay_apart

__all__ = ["Matrix", "multiply", "round_into"]

Array = NDArray[np.float32]


class Matrix(NamedTuple):
    """A matrix of every layer, packed; see `packed.Packer`."""

    bits: int
    n_blocks: int
    blocks: NDArray[np.uint8]  # (layers, groups, n_blocks * block_bytes(bits))
    bias: Array  # (layers, outputs), or no columns


_one_of_4, _two_of_4, _three_of_4 = (dot_products(4, n_rows) for n_rows in (1, 2, 3))
_one_of_8, _two_of_8, _three_of_8 = (dot_products(8, n_rows) for n_rows in (1, 2, 3))


@compiled
def multiply(
    matrix: Matrix,
    layer: int,
    numbers: NDArray[np.int8],
    factors: Array,
    first_row: int,
    results: Array,
    first_group: int,
    n_groups: int,
) -> None:
    """Some groups of outputs of a product, for the rows from `first_row` on, three at a time.

    `numbers` and `factors` are the rows as `numbers.round_row` gives them; `results` have shape (rows, outputs).
    """
    stay_apart()
    group_bytes = matrix.blocks.shape[2]
    n_rows, most = len(numbers) - first_row, 3
    n_turns = -(-n_rows // most)
    ahead_bytes = group_bytes // (matrix.n_blocks * n_turns)  # each turn fetches its share of the next group
    blocks = matrix.blocks[layer].ctypes.data
    rows, row_bytes = numbers.ctypes.data + first_row * numbers.shape[1], numbers.shape[1]
    scaled, row_factors = factors.ctypes.data + 4 * first_row * factors.shape[1], factors.shape[1]
    place, row_results = results.ctypes.data, results.shape[1]
    for group in range(first_group, min(first_group + n_groups, matrix.blocks.shape[1])):
        here = blocks + group * group_bytes
        for turn in range(n_turns):
            row = most * turn
            _group(
                matrix.bits,
                min(n_rows - row, most),
                here,
                here + group_bytes + turn * ahead_bytes * matrix.n_blocks,
                ahead_bytes,
                rows + row * row_bytes,
                row_bytes,
                scaled + 4 * row * row_factors,
                row_factors,
                matrix.n_blocks,
                place + 4 * (row * row_results + GROUP * group),
                row_results,
            )


@compiled
def _group(
    bits: int, n_rows: int, blocks: int, ahead: int, ahead_bytes: int, rows: int, row_bytes: int, factors: int,
    row_factors: int, n_blocks: int, place: int, row_results: int,
) -> None:  # fmt: skip
    """One group of outputs for at most three rows: what fits into the registers."""
    if bits == 4:
        if n_rows == 3:
            _three_of_4(blocks, ahead, ahead_bytes, rows, row_bytes, factors, row_factors, n_blocks, place, row_results)
        elif n_rows == 2:
            _two_of_4(blocks, ahead, ahead_bytes, rows, row_bytes, factors, row_factors, n_blocks, place, row_results)
        else:
            _one_of_4(blocks, ahead, ahead_bytes, rows, row_bytes, factors, row_factors, n_blocks, place, row_results)
    elif n_rows == 3:
        _three_of_8(blocks, ahead, ahead_bytes, rows, row_bytes, factors, row_factors, n_blocks, place, row_results)
    elif n_rows == 2:
        _two_of_8(blocks, ahead, ahead_bytes, rows, row_bytes, factors, row_factors, n_blocks, place, row_results)
    else:
        _one_of_8(blocks, ahead, ahead_bytes, rows, row_bytes, factors, row_factors, n_blocks, place, row_results)


@compiled
def round_into(values: Array, row: int, numbers: NDArray[np.int8], factors: Array) -> None:
    """Round the values to 8 bits, as row `row` of `numbers` and `factors`."""
    n_blocks = -(-len(values) // BLOCK)
    round_row(values, numbers[row, : n_blocks * BLOCK], factors[row, : 2 * n_blocks])
