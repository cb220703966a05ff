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
from engine.models.jit.dot_products import BLOCK, CACHE_LINE, GROUP, TOGETHER, block_bytes
from engine.models.jit.four_bits import nearest_of_4_bits
from engine.models.jit.product import Matrix
from engine.models.packed import pack

__all__ = ["Numbers", "Packer", "bits_of", "pack_matrix", "read_numbers", "rounded_to_4_bits"]

Array = NDArray[np.float32]
Scales = NDArray[np.float16] | NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """A matrix, or some of its outputs, as whole numbers.

    Attributes
    ----------
    bits : int
        4 or 8.
    words : array, shape (outputs, blocks, bits)
        Four bytes each. For 8 bits a byte is a signed number, and they stand in the order of the inputs; for 4 bits
        it is two numbers from 0 to 15: in its low half one of the inputs 0 to 15 of the block, in its high half
        that of the input 16 further on.
    scales : array, shape (outputs, blocks)
    minima : array, shape (outputs, blocks)
        None for 8 bits.
    """

    bits: int
    words: NDArray[np.uint32]
    scales: Scales
    minima: Scales | None = None

    def in_order(self, order: NDArray[np.int64]) -> Numbers:
        """Its outputs in another order."""
        minima = None if self.minima is None else self.minima[order]
        return Numbers(self.bits, self.words[order], self.scales[order], minima)

    def of_8_bits(self) -> Numbers:
        """The same in 8 bits, rounded if it is not."""
        if self.minima is None:
            return self
        pairs = np.ascontiguousarray(self.words).view(np.uint8)  # (outputs, blocks, 16)
        numbers = np.concatenate([pairs & np.uint8(15), pairs >> np.uint8(4)], axis=2)
        scales, minima = (factors[..., None].astype(np.float32) for factors in (self.scales, self.minima))
        return _rounded((numbers * scales + minima).reshape(len(numbers), -1))


def read_numbers(file: GGUFFile, name: str, n_outputs: int, n_inputs: int, *, rows: slice = slice(None)) -> Numbers:
    """The matrix `name` of a file, or those of its outputs that `rows` says.

    Raises
    ------
    ModelFileError
        As `GGUFFile.tensor` does.
    """
    tensor = file.tensors.get(name)
    if tensor is None or tuple(int(size) for size in tensor.shape[::-1]) != (n_outputs, n_inputs) or n_inputs % BLOCK:
        return _rounded(file.tensor(name, n_outputs, n_inputs, rows=rows))
    kinds = {GGMLQuantizationType.Q4_0: _q4_0, GGMLQuantizationType.Q4_1: _q4_1, GGMLQuantizationType.Q8_0: _q8_0}
    if tensor.tensor_type not in kinds:
        return _rounded(file.tensor(name, n_outputs, n_inputs, rows=rows))
    raw = np.asarray(tensor.data)[rows]
    blocks = raw.reshape(len(raw), n_inputs // BLOCK, -1)  # (outputs, blocks, bytes of a block)
    numbers = kinds[tensor.tensor_type](blocks)
    if not np.isfinite(numbers.scales).all() or (numbers.minima is not None and not np.isfinite(numbers.minima).all()):
        file.tensor(name, n_outputs, n_inputs)  # which says what is wrong
    return numbers


def _q4_0(blocks: NDArray[np.uint8]) -> Numbers:
    scales = _halves(blocks[:, :, :2])[..., 0]
    return Numbers(4, _words(blocks[:, :, 2:]), scales, scales.astype(np.float32) * np.float32(-8))


def _q4_1(blocks: NDArray[np.uint8]) -> Numbers:
    words = _words(blocks)  # of each block, five: scale and minimum, then the numbers
    both = np.ascontiguousarray(words[:, :, :1]).view(np.float16)
    return Numbers(4, words[:, :, 1:], both[..., 0], both[..., 1])


def _q8_0(blocks: NDArray[np.uint8]) -> Numbers:
    return Numbers(8, _words(blocks[:, :, 2:]), _halves(blocks[:, :, :2])[..., 0])


def _halves(raw: NDArray[np.uint8]) -> NDArray[np.float16]:
    return np.ascontiguousarray(raw).view(np.float16)


def _words(raw: NDArray[np.uint8]) -> NDArray[np.uint32]:
    return np.ascontiguousarray(raw).view(np.uint32)


def _rounded(matrix: Array) -> Numbers:
    numbers, scales = pack(matrix)
    return Numbers(8, (numbers ^ np.uint8(128)).view(np.uint32), scales)


def rounded_to_4_bits(matrix: Array) -> Numbers:
    """A matrix of float32, shape (outputs, inputs), in 4 bits; a last block that is not full is filled with zeros."""
    blocks = np.pad(matrix, ((0, 0), (0, -matrix.shape[1] % BLOCK))).reshape(len(matrix), -1, BLOCK)
    numbers, scales, minima = nearest_of_4_bits(blocks)
    low, high = numbers[..., : BLOCK // 2], numbers[..., BLOCK // 2 :]
    return Numbers(4, _words(low | high << np.uint8(4)), scales, minima)


class Packer:
    """Fills one matrix for each layer, so that no more than some layers are unpacked at a time.

    Parameters
    ----------
    bits : int
        4 if all parts of all layers have 4, else 8.
    n_layers, n_outputs, n_inputs : int
    """

    def __init__(self, bits: int, n_layers: int, n_outputs: int, n_inputs: int) -> None:
        self._bits = bits
        self._n_blocks = -(-n_inputs // BLOCK)
        n_groups = -(-n_outputs // (GROUP * TOGETHER)) * TOGETHER
        self._blocks = _aligned(n_layers, n_groups, self._n_blocks * block_bytes(bits))
        self._blocks[:, -1] = 0  # what may not be filled

    def fill(self, layer: int, parts: Sequence[Numbers], *, first_group: int = 0) -> None:
        """Pack the parts of a layer, which stand on top of each other, from a group of outputs on."""
        bits = self._bits
        parts = [part if bits == 4 else part.of_8_bits() for part in parts]
        words = _grouped([part.words for part in parts])  # (groups, 8, blocks, bits)
        groups = self._blocks[layer, first_group : first_group + len(words)]
        whole = groups.view(np.uint32).reshape(len(words), self._n_blocks, -1, GROUP)  # vectors of a word for an output
        whole[:, :, :bits] = words.transpose(0, 2, 3, 1)
        factors = whole.view(np.float32)
        factors[:, :, bits] = _grouped([part.scales for part in parts]).swapaxes(1, 2)
        if bits == 4:
            minima = [part.minima for part in parts if part.minima is not None]
            factors[:, :, bits + 1] = _grouped(minima).swapaxes(1, 2)

    def matrix(self, bias: Array | None = None) -> Matrix:
        """What was packed, with a bias of shape (layers, outputs)."""
        no_bias = np.empty((len(self._blocks), 0), np.float32)
        return Matrix(self._bits, self._n_blocks, self._blocks, no_bias if bias is None else bias)


def pack_matrix(matrix: Array, bits: int = 8) -> Matrix:
    """A matrix of float32, shape (outputs, inputs), packed in 8 or 4 bits as the one of a single layer."""
    packer = Packer(bits, 1, *matrix.shape)
    packer.fill(0, [rounded_to_4_bits(matrix) if bits == 4 else _rounded(matrix)])
    return packer.matrix()


def bits_of(file: GGUFFile, names: Iterable[str]) -> int:
    """In how many bits some matrices of a file are packed: 4 if all are of 4, else 8."""
    kinds = {file.tensors[name].tensor_type for name in names if name in file.tensors}
    return 4 if kinds <= {GGMLQuantizationType.Q4_0, GGMLQuantizationType.Q4_1} else 8


def _grouped(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Parts on top of each other, in groups of eight outputs: shape (groups, 8, ...); zeros where there are no more."""
    whole = parts[0] if len(parts) == 1 else np.concatenate(parts)
    room = -len(whole) % GROUP
    if room:
        whole = np.concatenate([whole, np.zeros((room, *whole.shape[1:]), whole.dtype)])
    return whole.reshape(-1, GROUP, *whole.shape[1:])


def _aligned(*shape: int) -> NDArray[np.uint8]:
    """Bytes of which the first lies at the start of a cache line."""
    n_bytes = int(np.prod(shape))
    raw = np.empty(n_bytes + CACHE_LINE, np.uint8)
    first = -raw.ctypes.data % CACHE_LINE
    return raw[first : first + n_bytes].reshape(shape)
