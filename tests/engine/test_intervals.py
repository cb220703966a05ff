"""Wilson's interval against published values, and against its own definition."""

import pytest

from engine.intervals import Z_95, rate


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0000, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_published_intervals(successes, trials, low, high):
    """Newcombe (1998), Two-sided confidence intervals for the single proportion, Statistics in Medicine 17,
    857-872, table I, method 3 (Wilson, without continuity correction)."""
    found = rate(successes, trials)
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)
    assert found.value == successes / trials


@pytest.mark.parametrize(("successes", "trials"), [(1, 3), (7, 10), (250, 1000), (999, 1000)])
def test_the_ends_are_where_the_score_test_just_does_not_reject(successes, trials):
    """Wilson (1927): |share - p| = z sqrt(p (1 - p) / n) at both ends."""
    found = rate(successes, trials)
    for end in (found.low, found.high):
        assert abs(found.value - end) == pytest.approx(Z_95 * (end * (1 - end) / trials) ** 0.5, rel=1e-12)


def test_success_and_failure_are_mirrored():
    for trials in range(1, 30):
        for successes in range(trials + 1):
            ours, mirrored = rate(successes, trials), rate(trials - successes, trials)
            assert ours.low == pytest.approx(1 - mirrored.high, abs=1e-12)
            assert 0 <= ours.low <= ours.value <= ours.high <= 1


def test_of_nothing_there_is_no_rate():
    nothing = rate(0, 0)
    assert (nothing.value, nothing.low, nothing.high) == (None, None, None)


@pytest.mark.parametrize(("successes", "trials"), [(2, 1), (-1, 3), (0, -1)])
def test_impossible_counts_are_refused(successes, trials):
    with pytest.raises(ValueError, match=f"{successes} successes of {trials} trials"):
        rate(successes, trials)
