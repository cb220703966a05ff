"""The papers' formulas against the papers' own tables."""

import math

import numpy as np
import pytest

from engine.errors import SettingError
from engine.theory import best_draft_length, expected_tokens_per_step, operations_factor, speed_up


@pytest.mark.parametrize(
    ("alpha", "length", "operations", "speed"),
    [
        (0.6, 2, 1.53, 1.96), (0.7, 3, 1.58, 2.53), (0.8, 2, 1.23, 2.44),
        (0.8, 5, 1.63, 3.69), (0.9, 2, 1.11, 2.71), (0.9, 10, 1.60, 6.86),
    ],
)  # fmt: skip
def test_leviathan_table_1(alpha, length, operations, speed):
    assert operations_factor(alpha, length) == pytest.approx(operations, abs=0.00501)
    assert speed_up(alpha, length) == pytest.approx(speed, abs=0.00501)


@pytest.mark.parametrize(
    ("alphas", "speeds"),
    [
        ((0.62, 0.71, 0.76, 0.84), (2.33, 2.94, 3.45, 4.79)),  # T5-small, of which the paper prints 2.5, 3.1, 3.6, 5
        ((0.68, 0.80, 0.83, 0.90), (2.70, 4.00, 4.56, 6.86)),  # T5-base
    ],
)
def test_speed_under_lenience_at_the_best_draft_length(alphas, speeds):
    """Leviathan, appendix A.5: acceptance at lenience 1, .5, .3, .1, cost .015."""
    for alpha, speed in zip(alphas, speeds, strict=True):
        assert speed_up(alpha, best_draft_length(alpha, 0.015), 0.015) == pytest.approx(speed, abs=0.00501)


@pytest.mark.parametrize(("alpha", "speed"), [(0.75, 3.30), (0.80, 3.87), (0.87, 4.91)])
def test_speed_under_lenience_at_temperature_0(alpha, speed):
    """The same with the argmax variant, at draft length 8."""
    assert speed_up(alpha, 8, 0.015) == pytest.approx(speed, abs=0.00501)


@pytest.mark.parametrize(
    ("alpha", "length", "cost", "expected"),
    [
        (0.75, 7, 0.02, 3.2), (0.80, 7, 0.04, 3.3), (0.82, 7, 0.11, 2.5), (0.62, 7, 0.02, 2.3), (0.68, 5, 0.04, 2.4),
        (0.71, 3, 0.11, 2.0), (0.65, 5, 0.02, 2.4), (0.73, 5, 0.04, 2.6), (0.74, 3, 0.11, 2.0), (0.53, 5, 0.02, 1.9),
        (0.55, 3, 0.04, 1.8), (0.56, 3, 0.11, 1.6),
    ],
)  # fmt: skip
def test_leviathan_table_4_expected_column(alpha, length, cost, expected):
    """The printed alpha and c are rounded, so a range of speeds fits them; the printed one must be in it."""
    slowest = speed_up(alpha - 0.005, length, cost + 0.005)
    fastest = speed_up(alpha + 0.005, length, cost - 0.005)
    assert slowest <= expected + 0.05
    assert fastest >= expected - 0.05
    assert speed_up(alpha, length, cost) == pytest.approx(expected, abs=0.075)


LENGTHS = (1, 2, 3, 4, 5, 7, 8, 10, 16)
TOKENS_PER_STEP = {
    0.2: (1.2, 1.24, 1.248, 1.2496, 1.2499, 1.25, 1.25, 1.25, 1.25),
    0.5: (1.5, 1.75, 1.875, 1.9375, 1.9688, 1.9922, 1.9961, 1.9990, 2.0),
    0.6: (1.6, 1.96, 2.176, 2.3056, 2.3834, 2.4580, 2.4748, 2.4909, 2.4996),
    0.7: (1.7, 2.19, 2.533, 2.7731, 2.9412, 3.1412, 3.1988, 3.2674, 3.3256),
    0.8: (1.8, 2.44, 2.952, 3.3616, 3.6893, 4.1611, 4.3289, 4.5705, 4.8874),
    0.9: (1.9, 2.71, 3.439, 4.0951, 4.6856, 5.6953, 6.1258, 6.8619, 8.3323),
    0.95: (1.95, 2.8525, 3.7099, 4.5244, 5.2982, 6.7316, 7.3950, 8.6240, 11.6376),
}


@pytest.mark.parametrize("alpha", TOKENS_PER_STEP)
def test_expected_tokens_per_step(alpha):
    found = [expected_tokens_per_step(alpha, length) for length in LENGTHS]
    assert found == pytest.approx(TOKENS_PER_STEP[alpha], abs=5.1e-5)


def test_expected_tokens_per_step_is_the_mean_over_where_the_first_rejection_falls():
    for alpha in (0.0, 0.3, 0.99, 1.0):
        for length in (0, 1, 4, 9):
            shares = [(1 - alpha) * alpha**n for n in range(length)] + [alpha**length]
            mean = math.fsum((n + 1) * share for n, share in enumerate(shares))
            assert expected_tokens_per_step(alpha, length) == pytest.approx(mean)


@pytest.mark.parametrize(("alpha", "length", "tokens"), [(1, 5, 6), (0, 5, 1), (0.7, 0, 1), (1, 0, 1)])
def test_expected_tokens_per_step_at_the_edges(alpha, length, tokens):
    assert expected_tokens_per_step(alpha, length) == tokens


def test_corollary_3_9_some_length_gains_at_least_as_much_as_one_token_promises():
    for alpha in np.linspace(0, 1, 21):
        for cost in np.linspace(0, 0.99, 12):
            best = speed_up(alpha, best_draft_length(alpha, cost), cost)
            if alpha > cost:
                assert best >= (1 + alpha) / (1 + cost) - 1e-12
            else:
                assert best == pytest.approx(1)  # the best is not to draft


@pytest.mark.parametrize(
    ("alpha", "cost", "longest"), [(0.5, 0.05, 32), (0.8, 0.1, 32), (0.95, 0.01, 16), (0.1, 0.3, 8)]
)
def test_best_draft_length_is_the_best_of_all(alpha, cost, longest):
    speeds = [speed_up(alpha, length, cost) for length in range(longest + 1)]
    assert best_draft_length(alpha, cost, longest) == speeds.index(max(speeds))


def test_best_draft_length_is_the_shortest_on_a_tie():
    assert best_draft_length(0.0, 0.0) == 0
    assert best_draft_length(1.0, 0.0) == 32
    assert best_draft_length(1.0, 1.0) == 0


def test_arithmetic_counts_the_draft_too():
    """Theorem 3.11 with c-hat: (1 - a)(n c + n + 1) / (1 - a^(n + 1))."""
    assert operations_factor(0.8, 5, 0.1) == pytest.approx(0.2 * (0.5 + 6) / (1 - 0.8**6))


@pytest.mark.parametrize(
    ("alpha", "length", "cost"),
    [(-0.1, 2, 0), (1.1, 2, 0), (math.nan, 2, 0), (0.5, -1, 0), (0.5, 2, -0.1), (0.5, 2, math.nan), (0.5, 2, math.inf)],
)
def test_number_out_of_range_is_refused(alpha, length, cost):
    for function in (speed_up, operations_factor):
        with pytest.raises(SettingError, match="it must be"):
            function(alpha, length, cost)
