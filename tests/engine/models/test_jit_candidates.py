"""What the compiled code picks of the rough scores of a draft head, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

import tests.engine.models.jit_backend  # noqa: F401
from engine.models.jit.candidates import best_places, least_score


def normal(n: int) -> np.ndarray:
    return np.random.default_rng(n).normal(size=n).astype(np.float32)


def best(scores: np.ndarray, n_wanted: int) -> np.ndarray:
    places = np.full(len(scores), -1)
    return places[: best_places(scores, n_wanted, places)]


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
        assert best(scores, 2).tolist() == list(range(9))
    for value in (np.nan, np.inf, -np.inf):
        scores = np.array([1, 2, value, 3, 4], np.float32)
        np.testing.assert_equal(least_score(scores, 2), value)


@pytest.mark.parametrize(
    "order", ["as they come", "rising", "falling", "the best close together", "the best far apart"]
)
@pytest.mark.parametrize("n", [1, 40, 4095, 4096, 4103, 16384])
@pytest.mark.parametrize("n_wanted", [1, 10, 256])
def test_the_best_places_are_those_of_the_highest_scores(n: int, n_wanted: int, order: str) -> None:
    scores = normal(n)
    if order != "as they come":
        scores.sort()
    if order == "falling":
        scores = scores[::-1].copy()
    if order == "the best far apart":  # at the same place of every run that the search cuts them into
        scores = np.resize(scores[: n // 16 * 16].reshape(-1, 16).T, n) if n >= 16 else scores
    if order == "the best close together":
        scores = np.roll(scores, n // 3)
    places = best(scores, n_wanted)
    assert (np.diff(places) > 0).all()
    assert min(n, n_wanted) <= len(places) <= n_wanted + max(4, n_wanted // 16)
    assert sorted(scores[places]) == sorted(scores)[n - len(places) :]


@pytest.mark.parametrize("n", [9, 16384])
@pytest.mark.parametrize("place", [0, 5, -1])
def test_a_score_that_is_no_number_keeps_all_and_one_without_bounds_is_kept(n: int, place: int) -> None:
    scores = normal(n)
    for value in (np.nan, -np.inf):
        scores[place] = value
        assert best(scores, 2).tolist() == list(range(n))
    scores[place] = np.inf
    assert place % n in best(scores, 2)


def test_scores_whose_squares_are_too_large_are_told_apart() -> None:
    scores = normal(16384) * np.float32(1e30)
    assert set(np.argsort(scores)[-256:]) <= set(best(scores, 256))
