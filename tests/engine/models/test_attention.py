"""Attention of rows one by one, against a plain softmax, and the memory that it reads."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.models.aligned import Block
from engine.models.attention import STRETCH, Cache, attend_each

N_HEADS, N_KV_HEADS, HEAD_DIM = 6, 2, 16


def filled(room: int) -> Cache:
    cache = Cache(1, N_KV_HEADS, HEAD_DIM, room, room=room)
    rng = np.random.default_rng(5)
    for array in (cache.keys, cache.values):
        array[:] = rng.normal(size=array.shape)
    return cache


def softmax_of_each(queries: np.ndarray, keys: np.ndarray, values: np.ndarray, ends: range) -> np.ndarray:
    rows = []
    for query, end in zip(queries.astype(float), ends, strict=True):
        for head in range(N_HEADS):
            of_head = head // (N_HEADS // N_KV_HEADS)
            scores = keys[of_head, :end] @ query[head] / math.sqrt(HEAD_DIM)
            weights = np.exp(scores - scores.max())
            rows.append(weights @ values[of_head, :end] / weights.sum())
    return np.array(rows).reshape(len(queries), -1)


@pytest.mark.parametrize(
    ("room", "past"),
    [(40, 0), (40, 7), (64, 31), (100, 1), (100, STRETCH - 5), (100, STRETCH), (300, 59), (300, 3 * STRETCH - 1)],
)
@pytest.mark.parametrize("n_rows", [1, 2, 9, 33])
def test_each_row_is_that_of_a_plain_softmax_and_the_same_alone(room: int, past: int, n_rows: int) -> None:
    cache = filled(room)
    keys, values = cache.keys[0], cache.values[0]
    queries = np.random.default_rng(past).normal(size=(n_rows, N_HEADS, HEAD_DIM)).astype(np.float32)
    ends = range(past + 1, past + n_rows + 1)
    together = attend_each(queries, keys, values, ends)
    np.testing.assert_allclose(together, softmax_of_each(queries, keys, values, ends), atol=1e-5)
    alone = [attend_each(queries[row : row + 1], keys, values, ends[row : row + 1]) for row in range(n_rows)]
    assert np.array_equal(together, np.concatenate(alone))
    keys[:, ends[-1] :] = values[:, ends[-1] :] = 1e9  # what stands behind a row is nothing to it
    assert np.array_equal(together, attend_each(queries, keys, values, ends))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_spoils_no_row_before_it(bad: float) -> None:
    cache = filled(100)
    keys, values = cache.keys[0], cache.values[0]
    queries = np.random.default_rng(8).normal(size=(4, N_HEADS, HEAD_DIM)).astype(np.float32)
    ends = range(62, 66)
    expected = softmax_of_each(queries, keys, values, ends)
    keys[:, 63] = values[:, 63] = bad
    with np.errstate(invalid="ignore"):
        found = attend_each(queries, keys, values, ends)
    np.testing.assert_allclose(found[:2], expected[:2], atol=1e-5)
    assert not np.isfinite(found[2:]).any()


def test_a_cache_and_a_block_begin_at_a_line_of_the_processors_cache_and_keep_what_they_hold() -> None:
    cache = filled(8)
    before = cache.keys.copy()
    cache = Cache(1, N_KV_HEADS, HEAD_DIM, 64, room=8)
    cache.keys[:] = before
    cache.reserve(9)
    assert np.array_equal(cache.keys[:, :, :8], before)
    assert not cache.keys[:, :, 8:].any()
    assert cache.keys.ctypes.data % 64 == cache.values.ctypes.data % 64 == 0
    matrices = [np.full((n, 3), n, np.float32) for n in (1, 6, 5)]
    block = Block(sum(matrix.size for matrix in matrices), len(matrices))
    kept = [block.keep(matrix) for matrix in matrices]
    for matrix, copy in zip(matrices, kept, strict=True):
        assert np.array_equal(matrix, copy)
        assert copy.ctypes.data % 64 == 0
