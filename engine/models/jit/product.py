"""Products of packed matrices with rows of 8 bits, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.models.jit.decorators import compiled
from engine.models.jit.dot_products import GROUP, TOGETHER, block_bytes, dot_products
from engine.models.jit.shared import stay_apart

__all__ = ["Matrix", "multiply"]

MOST_ROWS = 3  # at once: what fits into the registers
BYTES_OF_4, BYTES_OF_8 = block_bytes(4), block_bytes(8)


class Matrix(NamedTuple):
    """A matrix of every layer, packed; see `packed.Packer`."""

    bits: int
    n_blocks: int
    blocks: NDArray[np.uint8]  # (layers, groups, n_blocks * block_bytes(bits))
    bias: NDArray[np.float32]  # (layers, outputs), or no columns


_one_of_4, _two_of_4, _three_of_4 = (dot_products(4, n_rows) for n_rows in (1, 2, 3))
_one_of_8, _two_of_8, _three_of_8 = (dot_products(8, n_rows) for n_rows in (1, 2, 3))


@compiled
def multiply(
    weights: int, bits: int, n_blocks: int, first_pair: int, stop_pair: int, n_rows: int, rows: int, row_bytes: int,
    factors: int, row_factors: int, results: int, row_results: int,
) -> None:  # fmt: skip
    """Some pairs of groups of outputs of a product with some rows.

    Given are the addresses of a layer's packed weights, of the first row and its factors as `numbers.round_row` gives
    them, and of its results; two rows are `row_bytes` bytes, `row_factors` and `row_results` numbers apart.
    """
    stay_apart()
    block_size = TOGETHER * (BYTES_OF_4 if bits == 4 else BYTES_OF_8)
    pair_bytes = n_blocks * block_size
    n_turns = -(-n_rows // MOST_ROWS)
    ahead_bytes = block_size // n_turns  # each turn fetches from another place of the next pair on
    for pair in range(first_pair, stop_pair):
        here = weights + pair * pair_bytes
        for turn in range(n_turns):
            row = MOST_ROWS * turn
            _pair(
                bits,
                min(n_rows - row, MOST_ROWS),
                here,
                here + pair_bytes + turn * ahead_bytes * n_blocks,
                ahead_bytes,
                rows + row * row_bytes,
                row_bytes,
                factors + 4 * row * row_factors,
                row_factors,
                n_blocks,
                results + 4 * (row * row_results + TOGETHER * GROUP * pair),
                row_results,
            )


@compiled
def _pair(
    bits: int, n_rows: int, blocks: int, ahead: int, ahead_bytes: int, rows: int, row_bytes: int, factors: int,
    row_factors: int, n_blocks: int, place: int, row_results: int,
) -> None:  # fmt: skip
    """One pair of groups for at most three rows."""
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
