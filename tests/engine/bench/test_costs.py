"""Costs measured by themselves, on a simulated clock: they must be found to the last digit."""

import dataclasses

import pytest

from engine.bench.costs import Costs, DraftCost, fit_line, measure_costs
from engine.spec import RunSpec

TEXT = "The draft model writes and the target model reads what it wrote."


def base(target=0.02, draft=0.003, **settings):
    return RunSpec(target_call_seconds=target, draft_call_seconds=draft, temperature=0.0, **settings)


def test_a_call_costs_the_same_for_any_number_of_rows_of_the_embedded_pair():
    costs = measure_costs(base(), ["model"], [1, 4], TEXT, n_rounds=2)
    assert costs.plain_call_seconds == pytest.approx(0.02, rel=1e-12)
    assert costs.verify == pytest.approx([1.0] * 9, rel=1e-12)
    assert costs.context_tokens == 200


def test_a_model_that_drafts_costs_a_call_a_token_and_nothing_a_step():
    costs = measure_costs(base(), ["model"], [2, 5], TEXT, n_rounds=2)
    draft = costs.draft["model"]
    assert [length for length, *_ in draft.by_length] == [1, 2, 5]
    assert [cost for *_, cost in draft.by_length] == pytest.approx([0.15, 0.3, 0.75])
    assert (draft.per_step, draft.per_token) == pytest.approx((0.0, 0.15), abs=1e-12)
    assert draft.of_call(4) == pytest.approx(0.15)


def test_a_lookup_costs_nothing_on_a_clock_that_counts_calls():
    draft = measure_costs(base(), ["ngram"], [3], TEXT, n_rounds=2).draft["ngram"]
    assert (draft.per_step, draft.per_token) == (0.0, 0.0)


def test_a_target_that_takes_no_time_has_no_costs():
    assert measure_costs(base(target=0.0), ["model"], [3], TEXT, n_rounds=1) is None


def test_the_curve_goes_as_far_as_the_drafts_do():
    assert len(measure_costs(base(), ["model"], [12], TEXT, n_rounds=1).verify) == 13


def test_a_short_context_shortens_the_curve(monkeypatch):
    monkeypatch.setattr("engine.models.markov.MarkovModel.context_length", 8)
    costs = measure_costs(base(), ["model"], [3], TEXT, n_rounds=1)
    assert (costs.context_tokens, len(costs.verify)) == (4, 4)
    assert Costs(1, 1.0, (1.0,), {}).verify_cost(3) == 1.0


def test_real_time_gives_numbers_above_nothing():
    costs = measure_costs(dataclasses.replace(base(0.0, 0.0)), ["ngram"], [2], TEXT, n_rounds=3)
    assert costs.plain_call_seconds > 0
    assert min(costs.verify) > 0
    assert costs.draft["ngram"].of_call(2) > 0


def test_beyond_its_end_the_curve_is_a_straight_line():
    costs = Costs(10, 1.0, (1.0, 1.5, 1.75), {})
    assert [costs.verify_cost(rows) for rows in (1, 3, 4, 6)] == [1.0, 1.75, 2.0, 2.5]


@pytest.mark.parametrize(
    ("points", "line"),
    [
        ([(1, 2.0), (3, 4.0), (5, 6.0)], (1.0, 1.0)),
        ([(2, 1.0), (2, 3.0)], (0.0, 1.0)),  # one length tells no offset from slope
        ([(0, 1.0), (0, 3.0)], (2.0, 0.0)),  # nothing was drafted
        ([(1, 3.0), (2, 1.0)], (2.0, 0.0)),  # noise must not make longer drafts cheaper
        ([(1, 0.5), (2, 2.0)], (0.0, 0.9)),  # nor a step cheaper than nothing
    ],
)
def test_line_through_points(points, line):
    assert fit_line(points) == pytest.approx(line)


def test_cost_of_a_call_shares_what_a_step_costs():
    assert DraftCost(0.2, 0.1, ()).of_call(4) == pytest.approx(0.15)
