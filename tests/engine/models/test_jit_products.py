"""Packed matrices and their products: exact whole numbers, whatever the values, and rows that do not see each other."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFWriter, quantize

import tests.engine.models.jit_backend  # noqa: F401
from engine.errors import ModelFileError
from engine.models.gguf import GGUFFile, read_gguf
from engine.models.jit.four_bits import nearest_of_4_bits
from engine.models.jit.numbers import round_row
from engine.models.jit.packed import Numbers, Packer, bits_of, pack_matrix, read_numbers
from engine.models.jit.product import Matrix, multiply
from engine.models.jit.stages import address
from engine.models.jit.unpacked import unpack_row

EXTREMES = {"largest": (15, 127), "smallest": (0, -128), "least but one": (1, -127), "mixed": (None, None)}
INPUTS = {"highest": 127, "lowest": -127, "any": None}


def whole_numbers(bits: int, n_outputs: int, n_blocks: int, value: int | None) -> np.ndarray:
    shape, (low, high) = (n_outputs, n_blocks, 32), ((0, 16) if bits == 4 else (-128, 128))
    return np.random.default_rng(1).integers(low, high, shape) if value is None else np.full(shape, value)


def packed(bits: int, numbers: np.ndarray, scales: np.ndarray, minima: np.ndarray) -> Matrix:
    packer = Packer(bits, 1, len(numbers), numbers.shape[1] * 32)
    stored = numbers.astype(np.int8).view(np.uint8)
    if bits == 4:
        stored = stored[:, :, :16] | stored[:, :, 16:] << 4
    packer.fill(0, [Numbers(bits, stored.view(np.uint32), scales, minima if bits == 4 else None)])
    return packer.matrix()


def product(matrix: Matrix, numbers: np.ndarray, factors: np.ndarray, first_row: int = 0) -> np.ndarray:
    n_groups = matrix.blocks.shape[1]
    rows, scaled = numbers[first_row:], factors[first_row:]
    results = np.full((len(rows), n_groups * 8), np.nan, np.float32)
    given = address(matrix.blocks), matrix.bits, matrix.n_blocks, 0, n_groups // 2, len(rows)
    places = address(rows), rows.shape[1], address(scaled), scaled.shape[1]
    multiply(*given, *places, address(results), results.shape[1])
    return results


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("n_rows", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize("weight", EXTREMES)
@pytest.mark.parametrize("given", INPUTS)
def test_products_of_whole_numbers_are_exact(bits: int, n_rows: int, weight: str, given: str) -> None:
    """With scales of powers of two every sum is a whole number that float32 holds: not the last bit may differ."""
    n_outputs, n_blocks = 11, 3
    rng = np.random.default_rng(2)
    numbers = whole_numbers(bits, n_outputs, n_blocks, EXTREMES[weight][bits == 8])
    scales = 2.0 ** rng.integers(0, 3, (n_outputs, n_blocks)).astype(np.float32)
    minima = rng.integers(-4, 5, (n_outputs, n_blocks)).astype(np.float32) * (bits == 4)
    value = INPUTS[given]
    inputs = (
        rng.integers(-127, 128, (n_rows, n_blocks, 32)) if value is None else np.full((n_rows, n_blocks, 32), value)
    )
    factors = np.stack([np.ones((n_rows, n_blocks)), inputs.sum(axis=2)], axis=2).reshape(n_rows, -1)
    rows = inputs.astype(np.int8).reshape(n_rows, -1)
    found = product(packed(bits, numbers, scales, minima), rows, factors.astype(np.float32))
    weights = numbers * scales.astype(np.int64)[..., None] + minima.astype(np.int64)[..., None]
    expected = np.einsum("obi,rbi->ro", weights, inputs)
    assert np.abs(expected).max() < 1 << 24
    np.testing.assert_array_equal(found[:, :n_outputs], expected)
    assert (found[:, n_outputs:] == 0).all()


@pytest.mark.parametrize("bits", [4, 8])
def test_a_row_is_the_same_alone_and_beside_any_others(bits: int) -> None:
    rng = np.random.default_rng(3)
    matrix = packed(
        bits,
        whole_numbers(bits, 24, 5, None),
        rng.normal(size=(24, 5)).astype(np.float32),
        rng.normal(size=(24, 5)).astype(np.float32),
    )
    numbers, factors = np.empty((9, 160), np.int8), np.empty((9, 10), np.float32)
    for row in range(9):
        round_row(rng.normal(size=160).astype(np.float32), numbers[row], factors[row])
    alone = np.concatenate([product(matrix, numbers[row : row + 1], factors[row : row + 1]) for row in range(9)])
    for n_rows in range(1, 10):
        np.testing.assert_array_equal(product(matrix, numbers[:n_rows], factors[:n_rows]), alone[:n_rows])
        np.testing.assert_array_equal(product(matrix, numbers, factors, 9 - n_rows), alone[9 - n_rows :])


# ---- files ----


def file_of(path: Path, **tensors: tuple[np.ndarray, GGMLQuantizationType]) -> GGUFFile:
    writer = GGUFWriter(path, "llama")
    for name, (array, kind) in tensors.items():
        writer.add_tensor(name, array, raw_dtype=kind)
    for write in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        write()
    writer.close()
    return read_gguf(path)


def matrix(n_outputs: int, n_inputs: int) -> np.ndarray:
    return np.random.default_rng(n_outputs).normal(size=(n_outputs, n_inputs)).astype(np.float32)


def stored(array: np.ndarray, kind: str) -> tuple[np.ndarray, GGMLQuantizationType]:
    return quantize(array, GGMLQuantizationType[kind]), GGMLQuantizationType[kind]


def unpacked(matrix: Matrix, outputs: list[int]) -> np.ndarray:
    rows = np.full((len(outputs), matrix.n_blocks * 32), np.nan, np.float32)
    for row, output in zip(rows, outputs, strict=True):
        unpack_row(address(matrix.blocks), matrix.bits, matrix.n_blocks, output, row)
    return rows


def rows_of(file: GGUFFile, names: list[str], n_outputs: int, n_inputs: int) -> tuple[Matrix, np.ndarray]:
    packer = Packer(bits_of(file, names), 1, n_outputs * len(names), n_inputs)
    packer.fill(0, [read_numbers(file, name, n_outputs, n_inputs) for name in names])
    made = packer.matrix()
    return made, unpacked(made, list(range(n_outputs * len(names))))


@pytest.mark.parametrize(("kind", "bits"), [("Q4_0", 4), ("Q4_1", 4), ("Q8_0", 8)])
@pytest.mark.parametrize("n_outputs", [8, 13])
def test_what_is_in_blocks_of_32_already_is_packed_as_it_is(
    tmp_path: Path, kind: str, bits: int, n_outputs: int
) -> None:
    file = file_of(tmp_path / "one.gguf", one=stored(matrix(n_outputs, 96), kind))
    made, rows = rows_of(file, ["one"], n_outputs, 96)
    assert made.bits == bits
    np.testing.assert_array_equal(rows, file.tensor("one", n_outputs, 96))


@pytest.mark.parametrize("kind", ["F32", "F16", "Q4_0", "Q4_1", "Q5_1", "Q8_0"])
def test_a_matrix_in_pieces_is_packed_as_the_whole_is(tmp_path: Path, kind: str) -> None:
    file = file_of(tmp_path / "one.gguf", one=stored(matrix(29, 96), kind))
    whole, _ = rows_of(file, ["one"], 29, 96)
    packer = Packer(bits_of(file, ["one"]), 1, 29, 96)
    for first in (16, 0):
        numbers = read_numbers(file, "one", 29, 96, rows=slice(first, first + 16))
        packer.fill(0, [numbers], first_group=first // 8)
    np.testing.assert_array_equal(packer.matrix().blocks, whole.blocks)


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "Q5_0", "Q5_1"])
def test_other_kinds_are_off_by_half_a_step_of_the_largest_of_32(tmp_path: Path, kind: str) -> None:
    file = file_of(tmp_path / "one.gguf", one=stored(matrix(13, 96), kind))
    made, rows = rows_of(file, ["one"], 13, 96)
    assert made.bits == 8
    expected = file.tensor("one", 13, 96)
    check_half_a_step(rows, expected)


def check_half_a_step(rows: np.ndarray, expected: np.ndarray) -> None:
    blocks = np.abs(expected).reshape(len(expected), -1, 32)
    assert (np.abs(rows - expected).reshape(blocks.shape) <= 1.001 / 254 * blocks.max(axis=2, keepdims=True)).all()


def test_blocks_of_256_are_rounded_too(tmp_path: Path) -> None:
    blocks = np.random.default_rng(4).integers(0, 256, (9, 210), dtype=np.uint8)  # of Q6_K, with a scale behind it
    blocks[:, 208:] = np.array([0.01], np.float16).view(np.uint8)
    file = file_of(tmp_path / "one.gguf", one=(blocks, GGMLQuantizationType.Q6_K))
    made, rows = rows_of(file, ["one"], 9, 256)
    assert made.bits == 8
    check_half_a_step(rows, file.tensor("one", 9, 256))


def test_inputs_that_do_not_fill_a_block_are_filled_up_with_zeros() -> None:
    array = matrix(13, 70)
    made = pack_matrix(array)
    rows = unpacked(made, [12, 0, 5])
    assert rows.shape == (3, 96)
    assert (rows[:, 70:] == 0).all()
    assert np.abs(rows[:, :70] - array[[12, 0, 5]]).max() <= np.abs(array).max() / 250


def test_kinds_are_mixed_in_one_matrix_by_rounding_those_of_4_bits(tmp_path: Path) -> None:
    parts = {"one": stored(matrix(12, 64), "Q4_1"), "two": stored(matrix(12, 64) * 3, "Q8_0")}
    file = file_of(tmp_path / "two.gguf", **parts)
    made, rows = rows_of(file, ["one", "two"], 12, 64)
    assert made.bits == 8
    check_half_a_step(rows[:12], file.tensor("one", 12, 64))
    np.testing.assert_array_equal(rows[12:], file.tensor("two", 12, 64))


def test_two_kinds_of_4_bits_stay_as_they_are(tmp_path: Path) -> None:
    file = file_of(tmp_path / "two.gguf", one=stored(matrix(8, 64), "Q4_1"), two=stored(matrix(8, 64), "Q4_0"))
    made, rows = rows_of(file, ["one", "two"], 8, 64)
    assert made.bits == 4
    np.testing.assert_array_equal(rows, np.concatenate([file.tensor(name, 8, 64) for name in ("one", "two")]))


@pytest.mark.parametrize(("kind", "place"), [("Q4_0", 0), ("Q4_1", 0), ("Q4_1", 2), ("Q8_0", 0)])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_damaged_scales_are_refused(tmp_path: Path, kind: str, place: int, value: float) -> None:
    data, number = stored(matrix(8, 64), kind)
    data[3, place : place + 2] = np.array([value], np.float16).view(np.uint8)
    file = file_of(tmp_path / "one.gguf", one=(data, number))
    with pytest.raises(ModelFileError, match="values in one that are not finite; the file is damaged"):
        read_numbers(file, "one", 8, 64)


def test_a_matrix_that_is_missing_or_of_another_shape_is_refused(tmp_path: Path) -> None:
    file = file_of(tmp_path / "one.gguf", one=stored(matrix(8, 64), "Q4_1"))
    with pytest.raises(ModelFileError, match="has no tensor two"):
        read_numbers(file, "two", 8, 64)
    with pytest.raises(ModelFileError, match=re.escape("one of shape (8, 64); its metadata promise (16, 32)")):
        read_numbers(file, "one", 16, 32)


def test_4_bits_of_a_matrix_are_nearer_to_it_than_its_range_cut_into_15() -> None:
    whole = np.random.default_rng(1).normal(size=(2000, 64)).astype(np.float32)
    blocks = whole.reshape(2000, 2, 32)
    numbers, scales, minima = nearest_of_4_bits(blocks)
    rest = ((numbers * scales[..., None] + minima[..., None] - blocks) ** 2).mean()
    low, high = blocks.min(axis=-1, keepdims=True), blocks.max(axis=-1, keepdims=True)
    steps = (high - low) / 15
    plain = ((np.rint((blocks - low) / steps) * steps + low - blocks) ** 2).mean()
    assert numbers.max() == 15
    assert rest < 0.87 * plain


def test_what_is_of_4_bits_stays_as_it_is() -> None:
    numbers = np.random.default_rng(2).integers(0, 16, (50, 3, 32)).astype(np.uint8)
    numbers[:, :, 0], numbers[:, :, 1] = 0, 15
    numbers[0, 0] = 7  # a block of one number
    blocks = numbers * np.float32(0.25) - np.float32(1.5)
    blocks[1] = 0
    found, scales, minima = nearest_of_4_bits(blocks)
    np.testing.assert_allclose(found * scales[..., None] + minima[..., None], blocks, atol=1e-5)


@pytest.mark.parametrize("n_inputs", [32, 40, 96])
def test_a_matrix_packed_in_4_bits_multiplies_as_its_numbers_do(n_inputs: int) -> None:
    whole = np.random.default_rng(3).normal(size=(11, n_inputs)).astype(np.float32)
    packed_whole = pack_matrix(whole, 4)
    blocks = np.pad(whole, ((0, 0), (0, -n_inputs % 32))).reshape(11, -1, 32)
    found, scales, minima = nearest_of_4_bits(blocks)
    expected = (found * scales[..., None] + minima[..., None]).reshape(11, -1)
    np.testing.assert_array_equal(unpacked(packed_whole, list(range(11))), expected)
