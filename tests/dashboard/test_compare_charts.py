"""The figures of a comparison and a what-if: what they draw is what the engine says."""

import pytest

from dashboard.compare_charts import prediction_chart
from engine.bench.costs import Costs, DraftCost
from engine.what_if import Profile, what_if


@pytest.mark.parametrize(("c", "best", "side"), [(9.0, 0, "top right"), (0.3, 5, "top center"), (0.0, 16, "top left")])
def test_the_best_length_has_a_label_that_no_axis_cuts_and_the_legend_is_short(c, best, side):
    profile = Profile((1.0,) * 16, tuple(0.9**place for place in range(1, 17)), 0.9)
    costs = Costs(200, 0.01, (1.0,) * 17, {})
    found = what_if({16: profile}, costs, DraftCost(0.0, 0.1, ()), c=c, flat=True)
    traces = {trace.name: trace for trace in prediction_chart(found).data}
    star = traces.pop("best")
    assert (list(star.x), list(star.text), star.textposition) == ([best], [f"best: {best}"], side)
    assert star.cliponaxis is False
    assert not star.showlegend
    assert list(traces) == ["predicted", "theory"]
    assert list(traces["predicted"].y) == found["predicted"]
