"""Arrays that begin where a line of the processor's cache does; several of them in one block of memory.

numpy begins an array at any 16 bytes.  Then every second of the loads of 32 bytes that a matrix product
consists of touches two lines, and out of a cache that is a fifth slower.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["Block", "aligned"]

Array = NDArray[np.float32]

LINE = 64  # bytes
NUMBERS = LINE // np.dtype(np.float32).itemsize  # of a line


def aligned(*shape: int) -> Array:
    """An array of float32 that begins at a line; its content is not set.

    Examples
    --------
    >>> aligned(2, 3).ctypes.data % 64
    0
    """
    n_numbers = math.prod(shape)
    wide = np.empty(n_numbers + NUMBERS, np.float32)
    first = -wide.ctypes.data % LINE // wide.itemsize
    return wide[first : first + n_numbers].reshape(shape)


class Block:
    """Memory in which one matrix is kept behind the other, each from the beginning of a line.

    In one piece the system backs it with large pages, so that reading it all waits less for addresses.

    Parameters
    ----------
    n_numbers : int
        Of all matrices together.
    n_matrices : int

    Examples
    --------
    >>> block = Block(7, 2)
    >>> block.keep(np.ones((1, 3), np.float32)).tolist()
    [[1.0, 1.0, 1.0]]
    >>> block.keep(np.zeros((2, 2), np.float32)).ctypes.data % 64
    0
    """

    def __init__(self, n_numbers: int, n_matrices: int) -> None:
        self._free = aligned(n_numbers + n_matrices * NUMBERS)

    def keep(self, matrix: Array) -> Array:
        """A copy of `matrix` in the block."""
        kept = self._free[: matrix.size].reshape(matrix.shape)
        kept[:] = matrix
        self._free = self._free[-(-matrix.size // NUMBERS) * NUMBERS :]
        return kept
