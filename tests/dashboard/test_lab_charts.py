"""The lab's figures: what they draw is what the engine says."""

from dashboard.lab_charts import accepted_chart
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
