"""How long events are held."""

import pytest

from dashboard.pace import Pace
from engine import Drafted, Step

GUESS = Drafted(0, 1, (5,), ("a",), draft_seconds=0.2)
NO_GUESS = Drafted(0, 1, (), (), draft_seconds=0.0)
STEP = Step(0, 1, (), (), draft_seconds=0.2, verify_seconds=0.5, overhead_seconds=0.1, at_seconds=0.8)


def test_as_fast_as_it_goes_holds_nothing():
    assert Pace().hold(GUESS, now=1.0, simulated=False) == 0
    assert Pace().hold(STEP, now=1.0, simulated=False) == 0


def test_a_simulated_run_is_held_for_its_own_seconds():
    assert Pace().hold(GUESS, now=1.0, simulated=True) == pytest.approx(0.2)
    assert Pace().hold(STEP, now=1.0, simulated=True) == pytest.approx(0.6)


def test_a_guess_stands_for_half_a_step_and_no_guess_for_no_time():
    assert Pace(2).hold(GUESS, now=1.0, simulated=False) == pytest.approx(0.25)
    assert Pace(2).hold(NO_GUESS, now=1.0, simulated=False) == 0


def test_the_time_that_the_engine_took_counts():
    pace, now, ends = Pace(10), 0.0, []
    for _ in range(50):
        now += 0.01  # the engine drafts
        now += pace.hold(GUESS, now=now, simulated=False)
        now += 0.02  # the engine verifies
        now += pace.hold(STEP, now=now, simulated=False)
        ends.append(now)
    assert (ends[-1] - ends[0]) / 49 == pytest.approx(0.1)


def test_an_engine_that_is_too_slow_is_not_held_and_does_not_catch_up_in_a_rush():
    pace = Pace(10)
    pace.hold(STEP, now=0.0, simulated=False)
    assert pace.hold(STEP, now=9.0, simulated=False) == 0
    assert pace.hold(STEP, now=9.01, simulated=False) == pytest.approx(0.09)
