"""The chi-square test against published quantiles, and against counts that were drawn."""

import math

import numpy as np
import pytest

from engine.lab.chi_square import chi_square, upper_tail

# NIST/SEMATECH e-Handbook of Statistical Methods, table 1.3.6.7.4: upper critical values.
PROBABILITIES = (0.10, 0.05, 0.025, 0.01, 0.001)
CRITICAL = {
    1: (2.706, 3.841, 5.024, 6.635, 10.828),
    2: (4.605, 5.991, 7.378, 9.210, 13.816),
    5: (9.236, 11.070, 12.833, 15.086, 20.515),
    10: (15.987, 18.307, 20.483, 23.209, 29.588),
    15: (22.307, 24.996, 27.488, 30.578, 37.697),
    30: (40.256, 43.773, 46.979, 50.892, 59.703),
    60: (74.397, 79.082, 83.298, 88.379, 99.607),
    100: (118.498, 124.342, 129.561, 135.807, 149.449),
}


@pytest.mark.parametrize("degrees", CRITICAL)
def test_upper_tail_at_published_quantiles(degrees):
    for probability, critical in zip(PROBABILITIES, CRITICAL[degrees], strict=True):
        assert upper_tail(critical, degrees) == pytest.approx(probability, rel=1e-3)


def test_upper_tail_of_two_degrees_is_an_exponential():
    for statistic in (0.1, 1.0, 50.0, 700.0):
        assert upper_tail(statistic, 2) == pytest.approx(math.exp(-statistic / 2), rel=1e-13)


def test_upper_tail_falls_with_the_statistic_and_rises_with_the_degrees():
    for degrees in range(1, 60):
        tails = [upper_tail(float(statistic), degrees) for statistic in range(0, 200, 5)]
        assert tails == sorted(tails, reverse=True)
        assert all(0 <= tail <= 1 for tail in tails)
        assert upper_tail(20.0, degrees) < upper_tail(20.0, degrees + 1)


def test_far_out_the_tail_is_small_and_no_error():
    assert 0 < upper_tail(1000.0, 75) < 1e-100
    assert upper_tail(1e6, 75) == 0.0
    assert upper_tail(math.inf, 3) == 0.0


def test_p_value_is_how_often_drawn_counts_are_as_far():
    expected = np.array([40.0, 25.0, 15.0, 12.0, 8.0])
    observed = [52, 18, 13, 11, 6]
    drawn = np.random.default_rng(3).multinomial(100, expected / 100, size=40_000)
    statistics = ((drawn - expected) ** 2 / expected).sum(axis=1)
    test = chi_square(observed, list(expected))
    share = float((statistics >= test.statistic).mean())
    assert test.p_value == pytest.approx(share, abs=0.01)  # four standard errors of the share, and the approximation


def test_what_cannot_be_and_was_seen_is_infinitely_far():
    test = chi_square([5, 1], [6.0, 0.0])
    assert (test.statistic, test.degrees, test.p_value) == (math.inf, 0, 0.0)
    assert chi_square([6, 0], [6.0, 0.0]).p_value == 1.0


@pytest.mark.parametrize(("observed", "expected"), [([1], [0.5, 0.5]), ([], []), ([-1, 2], [0.5, 0.5])])
def test_what_are_no_counts_is_refused(observed, expected):
    with pytest.raises(ValueError, match="count"):
        chi_square(observed, expected)


def test_a_negative_statistic_is_refused():
    with pytest.raises(ValueError, match="negative"):
        upper_tail(-1.0, 3)
