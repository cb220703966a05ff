"""What the compiled code does between two products, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

import tests.engine.models.jit_backend  # noqa: F401
from engine.models.jit.head_program import least_score, products_of
from engine.models.jit.numbers import _exp, attend, gate, norm, rotate, round_row


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def rounded(row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n_blocks = -(-len(row) // 32)
    numbers, factors = np.full(n_blocks * 32, 99, np.int8), np.full(n_blocks * 2, 99, np.float32)
    round_row(row, numbers, factors)
    return numbers.reshape(-1, 32), factors.reshape(-1, 2)


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


@pytest.mark.parametrize("n_slots", [1, 2, 9, 300])
@pytest.mark.parametrize("length", [32, 64])
def test_attention_is_that_of_numpy(n_slots: int, length: int) -> None:
    query, keys, values = normal(length), normal(400, length), normal(401, length)[1:]
    slots = np.random.default_rng(1).permutation(400)[:n_slots].astype(np.int32)
    weights, gathered = np.empty(n_slots, np.float32), np.empty(length, np.float32)
    attend(query, keys, values, slots, weights, gathered)
    scores = keys[slots].astype(float) @ query
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    np.testing.assert_allclose(weights, shares, rtol=2e-5, atol=1e-8)
    np.testing.assert_allclose(gathered, shares @ values[slots], atol=1e-5)


def test_exp_is_right_over_its_whole_range() -> None:
    values = np.linspace(-87, 88, 20_001, dtype=np.float32)
    found = np.array([_exp(value) for value in values])
    assert np.abs(found / np.exp(values.astype(float)) - 1).max() < 3e-7
    assert _exp(np.float32(0)) == 1
    assert 0 < _exp(np.float32(-1e30)) < 2e-38
    assert 1e38 < _exp(np.float32(np.inf)) < np.inf
    assert np.isnan(_exp(np.float32(np.nan)))


# ---- of the draft head ----


@pytest.mark.parametrize("n", [1, 5, 3000])
@pytest.mark.parametrize("n_wanted", [1, 4, 256])
def test_the_least_score_is_reached_by_enough_and_not_by_many_more(n: int, n_wanted: int) -> None:
    scores = normal(n)
    least = least_score(scores, n_wanted)
    assert least in scores
    assert n_wanted <= (scores >= least).sum() <= n_wanted + n // 100 or (n_wanted >= n and (scores >= least).all())


def test_scores_that_a_histogram_cannot_hold_are_all_kept() -> None:
    for scores in (np.ones(9), np.arange(9) * 1e-42, np.array([3e38, -3e38, 0] * 3)):
        scores = scores.astype(np.float32)
        assert (scores >= least_score(scores, 2)).all()
    for value in (np.nan, np.inf, -np.inf):
        scores = np.array([1, 2, value, 3, 4], np.float32)
        np.testing.assert_equal(least_score(scores, 2), value)


def test_products_of_chosen_rows() -> None:
    rows, vector, places = normal(50, 64), normal(64), np.array([49, 0, 7])
    np.testing.assert_allclose(products_of(places, rows, vector), rows[places] @ vector, rtol=1e-4, atol=1e-5)
