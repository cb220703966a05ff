"""The prediction from parts against the whole run, on a clock that only counts calls: they must agree exactly."""

import dataclasses

import pytest

from engine.bench.costs import Costs, DraftCost, measure_costs
from engine.bench.predict import Counts, pooled, predicted_by_the_paper, predicted_speed_up
from engine.build import build
from engine.metrics import measure
from engine.spec import RunSpec
from engine.theory import speed_up

PROMPTS = ("The draft model", "To see why this helps,", "The price of a token")


def figures(drafter, length, **settings):
    return [
        measure(build(RunSpec(prompt=prompt, drafter=drafter, draft_length=length, max_tokens=40, **settings)).events())
        for prompt in PROMPTS
    ]


def counts(**changes):
    blank = Counts(1, 10, 10, 0, 0, 0, 0, 0, (), (), (), 0.0, 0.0, 0.0, 0.0, True)
    return dataclasses.replace(blank, **changes)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("drafter", ["model", "ngram"])
@pytest.mark.parametrize("length", [1, 2, 4, 7])
@pytest.mark.parametrize("agreement", [0.0, 0.8])
def test_prediction_is_the_measured_speed_up_where_calls_are_all_that_costs(drafter, length, temperature, agreement):
    settings = {"target_call_seconds": 0.02, "draft_call_seconds": 0.003, "temperature": temperature}
    settings |= {"agreement": agreement, "seed": 3}
    runs = figures(drafter, length, **settings)
    seconds = sum(run.decode_seconds for run in runs)
    tokens = sum(run.tokens_generated for run in runs)
    costs = measure_costs(RunSpec(**settings), [drafter], [length], PROMPTS[0], n_rounds=1)
    predicted = predicted_speed_up(pooled(runs), costs, drafter)
    assert predicted == pytest.approx(tokens / seconds * 0.02, rel=1e-9)


def test_dearer_rows_and_short_drafts_are_taken_into_account():
    """10 steps: 2 drafted nothing, 3 one token, 5 two; 6 tokens were kept."""
    found = counts(drafted=13, accepted=6, tokens=16, drafted_at=(8, 5), accepted_at=(5, 1), tested_at=(8, 4))
    costs = Costs(10, 1.0, (1.0, 1.4, 1.7), {"model": DraftCost(0.05, 0.1, ())})
    cost_of_a_step = 0.05 + 0.1 * 1.3 + (2 * 1.0 + 3 * 1.4 + 5 * 1.7) / 10
    assert predicted_speed_up(found, costs, "model") == pytest.approx(1.6 / cost_of_a_step)


def test_discarded_tokens_are_not_gained():
    found = counts(drafted=10, accepted=10, discarded=4, tokens=16, drafted_at=(10,), accepted_at=(10,))
    costs = Costs(10, 1.0, (1.0, 1.0), {"model": DraftCost(0.0, 0.0, ())})
    assert predicted_speed_up(found, costs, "model") == pytest.approx(1.6)


def test_without_a_step_nothing_is_predicted():
    costs = Costs(10, 1.0, (1.0, 1.0), {"model": DraftCost(0.0, 0.1, ())})
    assert predicted_speed_up(counts(steps=0), costs, "model") is None
    assert predicted_by_the_paper(counts(), costs, "model", 3) is None


def test_the_papers_prediction_is_theorem_3_8():
    found = counts(accepted=6, rejected=2)
    costs = Costs(10, 1.0, (1.0, 1.9), {"model": DraftCost(0.06, 0.1, ())})
    assert predicted_by_the_paper(found, costs, "model", 3) == pytest.approx(speed_up(0.75, 3, 0.12))


def test_pooled_counts_are_sums_over_runs_and_positions():
    runs = figures("model", 4, temperature=0.0)
    whole = pooled(runs)
    assert whole.runs == 3
    assert whole.tokens == sum(run.tokens_generated for run in runs)
    assert sum(whole.drafted_at) == whole.drafted == sum(run.drafted for run in runs)
    assert sum(whole.tested_at) == whole.accepted + whole.rejected
    assert whole.tokens_per_step == whole.tokens / whole.steps
    assert pooled([]).tokens_per_step is None
