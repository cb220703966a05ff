"""The lab's figures: what they draw is what the engine says."""

import pytest

from dashboard.lab_charts import accepted_chart, check_chart
from engine.lab.check import statistical_check
from engine.lab.trace import trace_run
from engine.spec import RunSpec


def test_a_square_is_held_against_the_longest_draft():
    trace = trace_run(RunSpec(prompt="The draft model", max_tokens=12, draft_length=3))
    (squares,) = accepted_chart(trace).data
    assert (squares.zmin, squares.zmax) == (0, 3)
    assert squares.y == tuple(rule.name for rule in trace.rules)
    assert [list(row) for row in squares.z] == [
        [step.judged[rule.name].accepted for step in trace.steps] for rule in trace.rules
    ]


def test_where_nothing_is_accepted_no_square_has_the_strongest_colour():
    """Without a largest value the figure stretches its colours over one value, and paints all squares in the last."""
    trace = trace_run(RunSpec(prompt="The draft model", max_tokens=4, drafter="none"))
    (squares,) = accepted_chart(trace).data
    assert (squares.zmin, squares.zmax) == (0, 1)
    assert {count for row in squares.z for count in row} == {0}


def test_the_interval_of_a_count_is_drawn_as_it_is_given():
    cells = statistical_check(RunSpec(prompt="The draft", temperature=1.0), n_runs=120, n_tokens=1).cells
    expected, observed = check_chart(cells).data
    shown = [*cells[:15], *cells[-1:]] if len(cells) > 16 else list(cells)
    assert list(expected.x) == [cell.expected for cell in shown]
    assert expected.error_x.array is None
    assert list(observed.x) == [cell.observed for cell in shown]
    drawn = zip(observed.x, observed.error_x.arrayminus, observed.error_x.array, strict=True)
    assert [(count - below, count + above) for count, below, above in drawn] == [
        pytest.approx((cell.low, cell.high)) for cell in shown
    ]
