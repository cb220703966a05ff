"""Arrays of a compiled graph: matrices packed to 8 bits, kept in one file beside the graph.

A matrix is packed in blocks of 32 numbers of a row, each with a scale of its own: a number becomes
`round(number / scale) + 128`, and the largest of a block 1 or 255.  That is exact for files of
8 bits (Q8_0); elsewhere it is off by at most 1/254 of the largest number of the block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from onnx import TensorProto

__all__ = ["BLOCK", "DataFile", "pack"]

BLOCK = 32  # numbers that share a scale
ALIGNMENT = 4096  # of every array in the file, so that it can be mapped into memory
ROWS_AT_ONCE = 256  # of a matrix, while it is packed: what that needs beside it stays in the processor's cache
SMALL_BYTES = 1024  # an array up to here stands in the graph itself


def pack(matrix: NDArray[np.float32]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """The numbers, shape (outputs, blocks, 32), and their scales, shape (outputs, blocks).

    Parameters
    ----------
    matrix : array, shape (outputs, inputs)
        A last block that is not full is filled with zeros.

    Examples
    --------
    >>> numbers, scales = pack(np.array([[31.75, -16.0]], np.float32))
    >>> numbers[0, 0, :3].tolist(), float(scales[0, 0])
    ([255, 64, 128], 0.25)
    """
    n_outputs, n_inputs = matrix.shape
    n_blocks = -(-n_inputs // BLOCK)
    numbers = np.empty((n_outputs, n_blocks, BLOCK), np.uint8)
    scales = np.empty((n_outputs, n_blocks), np.float32)
    for low in range(0, n_outputs, ROWS_AT_ONCE):
        here = slice(low, low + ROWS_AT_ONCE)
        rows = matrix[here]
        if n_inputs % BLOCK:
            rows = np.pad(rows, ((0, 0), (0, -n_inputs % BLOCK)))
        numbers[here], scales[here] = _packed(rows)
    return numbers, scales


def _packed(rows: NDArray[np.float32]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    blocks = rows.reshape(len(rows), -1, BLOCK)
    scales = np.abs(blocks).max(axis=-1) / np.float32(127)
    divisors = np.where(scales > 0, scales, np.float32(1))
    numbers = blocks / divisors[..., None]
    np.rint(numbers, out=numbers)
    numbers += 128
    return numbers.astype(np.uint8), scales


class DataFile:
    """Writes arrays one behind the other and hands out what the graph says of them.

    Parameters
    ----------
    file : binary file, open for writing
    location : str
        Its name, as the graph beside it shall call it.
    """

    def __init__(self, file: BinaryIO, location: str) -> None:
        self._file = file
        self._location = location

    def add(self, name: str, array: NDArray[np.generic]) -> TensorProto:
        """The graph's entry for `array`, whose content is written to the file unless it is small."""
        from onnx import TensorProto, helper, numpy_helper

        array = np.ascontiguousarray(array)
        if array.nbytes <= SMALL_BYTES:
            return numpy_helper.from_array(array, name)
        offset = -(-self._file.tell() // ALIGNMENT) * ALIGNMENT
        self._file.seek(offset)
        self._file.write(array.data)
        tensor = TensorProto(name=name, dims=array.shape, data_location=TensorProto.EXTERNAL)
        tensor.data_type = helper.np_dtype_to_tensor_dtype(array.dtype)
        for key, value in (("location", self._location), ("offset", offset), ("length", array.nbytes)):
            tensor.external_data.add(key=key, value=str(value))
        return tensor
