"""Medians, ratios and their intervals."""

import numpy as np
import pytest

from engine.bench.statistics import Estimate, median, speed, speed_ratio


def cells(seconds, tokens=10):
    """Timings from rows of seconds: one row a prompt, one column a repeat."""
    return {
        (str(prompt), repeat): (tokens, value) for prompt, row in enumerate(seconds) for repeat, value in enumerate(row)
    }


def test_median_of_nothing_is_none():
    assert median([]) is None
    assert median([4.0, 1.0]) == 2.5


def test_speed_is_a_ratio_of_sums_and_not_a_mean_of_ratios():
    assert speed({("a", 0): (10, 1.0), ("b", 0): (30, 19.0)}) == 2.0  # the mean of 10 and 1.58 would be 5.8


def test_a_stall_in_one_repeat_is_left_out():
    assert speed(cells([[1.0, 100.0, 1.0]])) == 10.0
    assert speed_ratio(cells([[1.0, 100.0, 1.0]]), cells([[2.0, 2.0, 2.0]])).value == 2.0


def test_speed_of_nothing_or_of_no_time_is_none():
    assert speed({}) is None
    assert speed({("a", 0): (0, 0.0)}) is None
    assert speed_ratio({}, {}) is None
    assert speed_ratio(cells([[1.0]]), cells([[0.0]])) is None


def test_only_what_both_measured_is_compared():
    of, to = cells([[1.0, 1.0], [1.0, 1.0]]), cells([[2.0], [2.0]])
    of["0", 5] = (10, 999.0)
    assert speed_ratio(of, to) == Estimate(2.0, 2.0, 2.0)
    assert speed_ratio(cells([[1.0]]), {("another", 0): (10, 1.0)}) is None


def test_one_sample_has_no_interval():
    assert speed_ratio(cells([[1.0]]), cells([[3.0]])) == Estimate(3.0, None, None)


def test_prompts_with_unequal_repeats_are_all_used():
    of, to = cells([[1.0, 1.0], [1.0]]), cells([[2.0, 2.0], [6.0]])
    estimate = speed_ratio(of, to)
    assert estimate.value == 4.0
    assert (estimate.low, estimate.high) == (2.0, 6.0)  # either prompt may be drawn twice


def test_the_pairs_are_kept_together():
    """A prompt that is slow for both says nothing against the ratio: the interval is a point."""
    slow = np.array([[1.0, 7.0], [50.0, 3.0], [0.1, 900.0]])
    assert speed_ratio(cells(slow), cells(1.5 * slow)) == Estimate(*[pytest.approx(1.5)] * 3)


def test_the_same_seed_gives_the_same_interval():
    generator = np.random.default_rng(0)
    of, to = cells(generator.uniform(1, 2, (9, 3))), cells(generator.uniform(1, 2, (9, 3)))
    assert speed_ratio(of, to, seed=4) == speed_ratio(of, to, seed=4)
    assert speed_ratio(of, to, seed=4) != speed_ratio(of, to, seed=5)


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    """200 experiments of 20 prompts whose true ratio is 1.25.

    The percentile interval of 20 samples is a little short: 0.92 is typical. With that, 200 experiments
    cover fewer than 170 or more than 198 with a probability below 0.001.
    """
    generator = np.random.default_rng(7)
    covered = 0
    for experiment in range(200):
        plain = generator.uniform(1, 3, (20, 1)) * generator.lognormal(0, 0.02, (20, 2))
        own_ratio = 1.25 + generator.normal(0, 0.15, (20, 1))
        estimate = speed_ratio(cells(plain / own_ratio), cells(plain), seed=experiment, n_draws=400)
        covered += estimate.low <= 1.25 <= estimate.high
    assert 170 <= covered <= 198
