"""A row of a packed matrix as float32, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.models.jit.decorators import compiled
from engine.models.jit.dot_products import BLOCK, GROUP, block_bytes
from engine.models.jit.shared import stay_apart
from engine.models.jit.vectors import VECTOR_BYTES
from engine.models.jit.views import bytes_at, floats_at

__all__ = ["unpack_row"]

BYTES_OF_4, BYTES_OF_8 = block_bytes(4), block_bytes(8)
QUAD = 4  # inputs of an output that stand together


@compiled
def unpack_row(weights: int, bits: int, n_blocks: int, output: int, row: NDArray[np.float32]) -> None:
    """The weights of one output, as many as the row has room for; `weights` is the address of the packed matrix."""
    stay_apart()
    block_size = BYTES_OF_4 if bits == 4 else BYTES_OF_8
    place = output % GROUP
    first = weights + output // GROUP * n_blocks * block_size
    for block in range(-(-len(row) // BLOCK)):
        packed = bytes_at(first + block * block_size, block_size)
        factors = floats_at(first + block * block_size + bits * VECTOR_BYTES, 2 * GROUP)  # scales, and minima of 4 bits
        for number in range(min(BLOCK, len(row) - block * BLOCK)):
            own = number % (BLOCK // 2) if bits == 4 else number  # two numbers share a byte
            byte = packed[own // QUAD * VECTOR_BYTES + place * QUAD + own % QUAD]
            if bits == 4:
                nibble = (byte >> 4 if number >= BLOCK // 2 else byte) & 15
                row[block * BLOCK + number] = np.float32(nibble) * factors[place] + factors[GROUP + place]
            else:
                row[block * BLOCK + number] = np.float32(byte) * factors[place]
