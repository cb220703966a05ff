"""What the compiled code does between two products, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

import tests.engine.models.jit_backend  # noqa: F401
from engine.models.jit.attention import MORE_SLOTS
from engine.models.jit.decorators import compiled
from engine.models.jit.numbers import _exp, attend, gate, norm, rotate, round_row
from engine.models.jit.rounding import largest_of_block, round_block
from engine.models.jit.stages import address


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def rounded(row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n_blocks = -(-len(row) // 32)
    numbers, factors = np.full(n_blocks * 32, 99, np.int8), np.full(n_blocks * 2, 99, np.float32)
    round_row(row, numbers, factors)
    return numbers.reshape(-1, 32), factors.reshape(-1, 2)


@compiled
def largest_of(values: np.ndarray) -> np.float32:
    largest: np.float32 = largest_of_block(values.ctypes.data)
    return largest


@compiled
def round_by(values: np.ndarray, inverse: np.float32, numbers: np.ndarray) -> int:
    total: int = round_block(values.ctypes.data, inverse, numbers.ctypes.data)
    return total


def rounded_block(values: np.ndarray, inverse: float) -> list[int]:
    """The numbers of a block; their sum is looked at, and that nothing behind them is written."""
    numbers = np.full(33, 99, np.int8)
    assert round_by(values, np.float32(inverse), numbers) == numbers[:32].sum(dtype=np.int64)
    assert numbers[32] == 99
    return numbers[:32].tolist()


@pytest.mark.parametrize("place", range(32))
@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_of_a_block_is_found_anywhere_and_becomes_127(place: int, sign: int) -> None:
    values = np.clip(normal(32), -3, 3)
    values[place] = 3.7 * sign
    assert largest_of(values) == np.float32(3.7)
    numbers = rounded_block(values, np.float32(127) / largest_of(values))
    assert numbers[place] == 127 * sign
    assert np.abs(numbers).max() == 127


def test_ties_of_a_block_are_rounded_to_even() -> None:
    values = np.arange(-16, 16, dtype=np.float32) + np.float32(0.5)
    expected = [-16, -14, -14, -12, -12, -10, -10, -8, -8, -6, -6, -4, -4, -2, -2, 0]
    assert rounded_block(values, 1) == [*expected, *(-number for number in reversed(expected))]
    assert rounded_block(values * 4, 0.25) == rounded_block(values, 1)


def test_numbers_of_a_block_reach_from_the_least_to_the_highest() -> None:
    values = np.resize(np.array([-128, 127, -127.5, 126.5, 0, -0.0], np.float32), 32)
    assert rounded_block(values, 1) == np.resize([-128, 127, -128, 126, 0, 0], 32).tolist()


@pytest.mark.parametrize("largest", [1e-45, 1e-42, 3e-39, 1.1e-38, 1.2e-38, 3.7e-37])
def test_a_block_of_denormal_numbers_is_worth_no_more_than_it_was(largest: float) -> None:
    """127 over it may have no bounds, and a factor of it no more than a few bits: its numbers may be 0 then."""
    row = np.resize(np.array([largest, -largest, largest / 2, 0], np.float32), 32)
    assert largest_of(row) == np.float32(largest)
    numbers, factors = rounded(row)
    worth = numbers.astype(float) * factors[0, 0].astype(float)
    assert np.isfinite(factors).all()
    assert np.abs(worth - row).max() <= 2 * largest
    assert abs(float(factors[0, 1])) <= 32 * 2 * largest


@pytest.mark.parametrize("length", [1, 31, 32, 70, 576])
def test_a_row_is_rounded_by_blocks(length: int) -> None:
    row = normal(length)
    numbers, factors = rounded(row)
    whole = np.pad(row, (0, numbers.size - length)).reshape(-1, 32)
    largest = np.abs(whole).max(axis=1)
    assert (np.abs(numbers).max(axis=1) == 127).all()
    np.testing.assert_allclose(factors[:, 0], largest / 127, rtol=1e-6)
    assert (np.abs(numbers * factors[:, :1] - whole) <= 0.501 * factors[:, :1]).all()
    np.testing.assert_array_equal(factors[:, 1], factors[:, 0] * numbers.sum(axis=1, dtype=np.int32).astype(np.float32))
    assert (numbers.reshape(-1)[length:] == 0).all()


def test_zeros_are_rounded_to_zeros() -> None:
    numbers, factors = rounded(np.zeros(64, np.float32))
    assert not numbers.any()
    assert not factors.any()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 33, 69])
def test_what_is_not_finite_is_not_rounded_to_a_number(value: float, place: int) -> None:
    row = normal(70)
    row[place] = value
    assert np.isnan(rounded(row)[1][:, 0]).all()


def test_norm_is_that_of_numpy() -> None:
    row, weight, normed = normal(576), normal(575)[:1].repeat(576), np.empty(576, np.float32)
    norm(row, weight, np.float32(1e-5), normed)
    expected = row / np.sqrt((row.astype(float) ** 2).mean() + 1e-5) * weight
    np.testing.assert_allclose(normed, expected, rtol=1e-5)


def test_gate_is_silu_times_the_other_half() -> None:
    both, gated = 10 * normal(200), np.empty(100, np.float32)
    gate(both, gated)
    value, other = both.astype(float).reshape(2, 100)
    np.testing.assert_allclose(gated, value / (1 + np.exp(-value)) * other, rtol=1e-5, atol=1e-30)


def test_rotation_turns_pairs_and_leaves_the_rest() -> None:
    head = normal(32)
    angle = np.arange(8, dtype=np.float32)
    expected = head.astype(float)
    turned = (expected[:8] + 1j * expected[8:16]) * np.exp(1j * angle)
    rotate(head, np.cos(angle), np.sin(angle))
    np.testing.assert_allclose(head, [*turned.real, *turned.imag, *expected[16:]], atol=1e-6)


@pytest.mark.parametrize("n_slots", [1, 2, 8, 9, 300])
@pytest.mark.parametrize("n_queries", [1, 3])
@pytest.mark.parametrize("length", [64, 128])
def test_attention_is_that_of_numpy(n_slots: int, n_queries: int, length: int) -> None:
    queries, keys, values = normal(n_queries, length), normal(400, length), normal(401, length)[1:]
    slots = np.random.default_rng(1).permutation(400)[: n_slots + MORE_SLOTS].astype(np.int32)
    weights = np.full((n_queries, n_slots + MORE_SLOTS), np.nan, np.float32)
    gathered = np.full((n_queries, length), np.nan, np.float32)
    attend(
        address(queries), n_queries, length, address(keys), address(values), address(slots), n_slots, address(weights),
        weights.shape[1], address(gathered),
    )  # fmt: skip
    slots = slots[:n_slots]
    scores = queries.astype(float) @ keys[slots].T
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(weights[:, :n_slots], shares, rtol=3e-5, atol=1e-8)
    np.testing.assert_allclose(gathered, shares @ values[slots], atol=1e-5)


def test_exp_is_right_over_its_whole_range() -> None:
    values = np.linspace(-87, 88, 20_001, dtype=np.float32)
    found = np.array([_exp(value) for value in values])
    assert np.abs(found / np.exp(values.astype(float)) - 1).max() < 3e-7
    assert _exp(np.float32(0)) == 1
    assert 0 < _exp(np.float32(-1e30)) < 2e-38
    assert 1e38 < _exp(np.float32(np.inf)) < np.inf
    assert np.isnan(_exp(np.float32(np.nan)))
