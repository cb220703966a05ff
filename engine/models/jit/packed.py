"""Matrices packed for the products of `dot_products`: 4 or 8 bits a weight, eight outputs side by side.

A weight is `scale * number + minimum`, with a scale, and for 4 bits a minimum, for every 32 inputs of
an output. Files of the kinds Q4_0, Q4_1 and Q8_0 are of that form already, and are packed as they
are; of other kinds the numbers are rounded to 8 bits, which is off by at most 1/254 of the largest
of the 32.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType
from numpy.typing import NDArray

from engine.models.gguf import GGUFFile
from engine.models.jit.dot_products import BLOCK, CACHE_LINE, GROUP, block_bytes
from engine.models.jit.product import Matrix
from engine.models.packed import pack

__all__ = ["Numbers", "Packer", "bits_of", "matrix_rows", "pack_matrix", "read_numbers"]

Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """A matrix as whole numbers.

    Attributes
    ----------
    bits : int
        4 or 8.
    numbers : array, shape (outputs, blocks, 32)
        From 0 to 15, or signed numbers of 8 bits in the bytes of this array.
    scales : array, shape (outputs, blocks)
    minima : array, shape (outputs, blocks)
        None for 8 bits.
    """

    bits: int
    numbers: NDArray[np.uint8]
    scales: Array
    minima: Array | None = None

    def in_order(self, order: NDArray[np.int64]) -> Numbers:
        """Its outputs in another order."""
        minima = None if self.minima is None else self.minima[order]
        return Numbers(self.bits, self.numbers[order], self.scales[order], minima)

    def of_8_bits(self) -> Numbers:
        """The same in 8 bits, rounded if it is not."""
        if self.minima is None:
            return self
        return _rounded((self.numbers * self.scales[..., None] + self.minima[..., None]).reshape(len(self.numbers), -1))


def read_numbers(file: GGUFFile, name: str, n_outputs: int, n_inputs: int) -> Numbers:
    """The matrix `name` of a file.

    Raises
    ------
    ModelFileError
        As `GGUFFile.tensor` does.
    """
    tensor = file.tensors.get(name)
    if tensor is None or tuple(int(size) for size in tensor.shape[::-1]) != (n_outputs, n_inputs) or n_inputs % BLOCK:
        return _rounded(file.tensor(name, n_outputs, n_inputs))
    kinds = {GGMLQuantizationType.Q4_0: _q4_0, GGMLQuantizationType.Q4_1: _q4_1, GGMLQuantizationType.Q8_0: _q8_0}
    if tensor.tensor_type not in kinds:
        return _rounded(file.tensor(name, n_outputs, n_inputs))
    blocks = np.asarray(tensor.data).reshape(n_outputs, n_inputs // BLOCK, -1)  # (outputs, blocks, bytes of a block)
    numbers = kinds[tensor.tensor_type](blocks)
    if not np.isfinite(numbers.scales).all() or (numbers.minima is not None and not np.isfinite(numbers.minima).all()):
        file.tensor(name, n_outputs, n_inputs)  # which says what is wrong
    return numbers


def _q4_0(blocks: NDArray[np.uint8]) -> Numbers:
    scales = _halves(blocks[:, :, :2])[..., 0]
    return Numbers(4, _nibbles(blocks[:, :, 2:]), scales, scales * np.float32(-8))


def _q4_1(blocks: NDArray[np.uint8]) -> Numbers:
    both = _halves(blocks[:, :, :4])
    return Numbers(4, _nibbles(blocks[:, :, 4:]), both[..., 0].copy(), both[..., 1].copy())


def _q8_0(blocks: NDArray[np.uint8]) -> Numbers:
    return Numbers(8, blocks[:, :, 2:], _halves(blocks[:, :, :2])[..., 0])


def _halves(raw: NDArray[np.uint8]) -> Array:
    return np.ascontiguousarray(raw).view(np.float16).astype(np.float32)


def _nibbles(raw: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.concatenate([raw & np.uint8(15), raw >> np.uint8(4)], axis=2)


def _rounded(matrix: Array) -> Numbers:
    numbers, scales = pack(matrix)
    return Numbers(8, numbers ^ np.uint8(128), scales)


class Packer:
    """Fills one matrix for each layer, so that no more than a layer is unpacked at a time.

    Parameters
    ----------
    bits : int
        4 if all parts of all layers have 4, else 8.
    n_layers, n_outputs, n_inputs : int
    """

    def __init__(self, bits: int, n_layers: int, n_outputs: int, n_inputs: int) -> None:
        self._bits = bits
        self._n_blocks = -(-n_inputs // BLOCK)
        self._blocks = _aligned(n_layers, -(-n_outputs // GROUP), self._n_blocks * block_bytes(bits))

    def fill(self, layer: int, parts: Sequence[Numbers]) -> None:
        """Pack the parts of a layer, which stand on top of each other."""
        bits = self._bits
        parts = [part if bits == 4 else part.of_8_bits() for part in parts]
        whole = self._blocks[layer].reshape(-1, self._n_blocks, block_bytes(bits))
        whole[:, :, : bits * 32] = _side_by_side(_grouped(part.numbers for part in parts), bits)
        scales = whole[:, :, bits * 32 :].view(np.float32)
        scales[:, :, :GROUP] = _grouped(part.scales for part in parts).swapaxes(1, 2)
        if bits == 4:
            minima = _grouped(part.minima for part in parts if part.minima is not None)
            scales[:, :, GROUP:] = minima.swapaxes(1, 2)

    def matrix(self, bias: Array | None = None) -> Matrix:
        """What was packed, with a bias of shape (layers, outputs)."""
        no_bias = np.empty((len(self._blocks), 0), np.float32)
        return Matrix(self._bits, self._n_blocks, self._blocks, no_bias if bias is None else bias)


def pack_matrix(matrix: Array) -> Matrix:
    """A matrix of float32, shape (outputs, inputs), packed in 8 bits as the one of a single layer."""
    packer = Packer(8, 1, *matrix.shape)
    packer.fill(0, [_rounded(matrix)])
    return packer.matrix()


def bits_of(file: GGUFFile, names: Iterable[str]) -> int:
    """In how many bits some matrices of a file are packed: 4 if all are of 4, else 8."""
    kinds = {file.tensors[name].tensor_type for name in names if name in file.tensors}
    return 4 if kinds <= {GGMLQuantizationType.Q4_0, GGMLQuantizationType.Q4_1} else 8


def matrix_rows(matrix: Matrix, outputs: NDArray[np.int64]) -> Array:
    """Some outputs of a matrix of one layer as float32, shape (n, blocks * 32)."""
    groups, places = np.divmod(outputs, GROUP)
    whole = matrix.blocks[0, groups].reshape(len(outputs), matrix.n_blocks, -1)  # (n, blocks, bytes)
    n_bytes, each = matrix.bits * 32, np.arange(len(outputs))
    own = whole[:, :, :n_bytes].reshape(len(outputs), matrix.n_blocks, matrix.bits, GROUP, 4)[each, :, :, places]
    factors = whole[:, :, n_bytes:].copy().view(np.float32).reshape(len(outputs), matrix.n_blocks, -1, GROUP)
    factors = factors[each, :, :, places]  # (n, blocks, scale and minimum)
    if matrix.bits == 8:
        numbers = own.view(np.int8).astype(np.float32).reshape(len(outputs), matrix.n_blocks, BLOCK)
        rows: Array = numbers * factors[:, :, :1]
        return rows.reshape(len(outputs), -1)
    own = np.concatenate([own & np.uint8(15), own >> np.uint8(4)], axis=2)
    numbers = own.astype(np.float32).reshape(len(outputs), matrix.n_blocks, BLOCK)
    rows = numbers * factors[:, :, :1] + factors[:, :, 1:]
    return rows.reshape(len(outputs), -1)


def _grouped(parts: Iterable[NDArray[Any]]) -> NDArray[Any]:
    """Parts on top of each other, in groups of eight outputs: shape (groups, 8, ...); zeros where there are no more."""
    whole = np.concatenate(list(parts))
    room = -len(whole) % GROUP
    return np.pad(whole, ((0, room), *((0, 0) for _ in whole.shape[1:]))).reshape(-1, GROUP, *whole.shape[1:])


def _side_by_side(numbers: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Vectors of four inputs of eight outputs, shape (groups, blocks, bits * 32); two to a byte for 4 bits.

    `numbers` has shape (groups, 8, blocks, 32).
    """
    n_groups, _, n_blocks, _ = numbers.shape
    vectors = numbers.reshape(n_groups, GROUP, n_blocks, 8, 4).transpose(0, 2, 3, 1, 4).reshape(n_groups, n_blocks, -1)
    half = vectors.shape[2] // 2
    return vectors if bits == 8 else vectors[:, :, :half] | (vectors[:, :, half:] << np.uint8(4))


def _aligned(*shape: int) -> NDArray[np.uint8]:
    """Bytes of which the first lies at the start of a cache line."""
    n_bytes = int(np.prod(shape))
    raw = np.empty(n_bytes + CACHE_LINE, np.uint8)
    first = -raw.ctypes.data % CACHE_LINE
    return raw[first : first + n_bytes].reshape(shape)
