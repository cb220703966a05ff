"""Predictions at other draft lengths: by hand, against the theory, and against whole runs on a counting clock."""

from dataclasses import replace

import pytest

from engine.bench.costs import Costs, DraftCost
from engine.build import build
from engine.errors import SettingError
from engine.report import Report
from engine.spec import RunSpec
from engine.theory import best_draft_length, speed_up
from engine.what_if import LONGEST, Profile, draft_cost_of, prediction, profile_of, what_if

FLAT = Costs(200, 0.02, (1.0,), {})
RISING = Costs(200, 0.02, (1.0, 1.2, 1.5, 2.0), {})


def constant_profile(alpha, length=LONGEST):
    """Every step drafts all it may, and each token is kept with probability `alpha`: the theory's assumption."""
    return Profile((1.0,) * length, (1.0,) * length, 1.0).supposing(alpha)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.8, 1.0])
@pytest.mark.parametrize("c", [0.0, 0.05, 0.3])
def test_constant_acceptance_and_free_verification_are_theorem_3_8(alpha, c):
    found = what_if({16: constant_profile(alpha)}, FLAT, draft_cost_of(c))
    assert found["predicted"] == pytest.approx([speed_up(alpha, length, c) for length in range(LONGEST + 1)])
    assert found["predicted"] == pytest.approx(found["theory"])
    assert found["best_length"] == best_draft_length(alpha, c, LONGEST)


def test_by_hand_short_drafts_rising_costs_and_a_cost_of_every_step():
    """Of 10 steps 8 draft one token and 5 of these two; 6 keep one, 2 keep two."""
    profile = Profile((0.8, 0.5), (0.6, 0.2), 0.5)
    draft = DraftCost(0.05, 0.1, ())
    one = (1 + 0.6) / (0.05 + 0.1 * 0.8 + 0.2 * 1.0 + 0.8 * 1.2)
    two = (1 + 0.8) / (0.05 + 0.1 * 1.3 + 0.2 * 1.0 + 0.3 * 1.2 + 0.5 * 1.5)
    assert prediction(profile, 1, draft, RISING.verify_cost) == pytest.approx(one)
    assert prediction(profile, 2, draft, RISING.verify_cost) == pytest.approx(two)
    assert prediction(profile, 0, draft, RISING.verify_cost) == 1.0


def test_behind_what_was_measured_drafts_go_on_as_before():
    drafted, kept = Profile((0.8, 0.4), (0.6, 0.2), 0.5).at(4)
    assert drafted == pytest.approx([0.8, 0.4, 0.2, 0.1])
    assert kept == pytest.approx([0.6, 0.2, 0.05, 0.0125])
    assert Profile((0.5,), (0.4,), 0.8).at(2) == ([0.5, 0.5], pytest.approx([0.4, 0.32]))


def test_each_length_takes_the_runs_with_the_next_longer_draft():
    profiles = {2: Profile((1.0, 1.0), (0.9, 0.8), 0.9), 4: constant_profile(0.1, 4)}
    found = what_if(profiles, FLAT, draft_cost_of(0.0))
    assert found["predicted"][1:5] == pytest.approx([1.9, 2.7, 1.111, 1.1111])
    assert found["acceptance"] == 0.1


def test_suppositions_take_the_place_of_what_was_measured_but_not_of_how_far_drafts_go():
    profiles, draft = {2: Profile((0.5, 0.2), (0.4, 0.1), 0.7, 0.3)}, DraftCost(0.0, 0.3, ())
    found = what_if(profiles, RISING, draft, acceptance=0.6, c=0.05, flat=True)
    assert found["predicted"][1] == pytest.approx((1 + 0.5 * 0.6) / (1 + 0.05 * 0.5))
    assert found["predicted"][2] == pytest.approx((1 + 0.5 * 0.6 + 0.2 * 0.36) / (1 + 0.05 * 0.7))
    assert found["predicted"][3] == pytest.approx((1 + 0.5 * 0.6 + 0.2 * 0.36 + 0.08 * 0.216) / (1 + 0.05 * 0.78))
    assert found["theory"] == pytest.approx([speed_up(0.6, length, 0.05) for length in range(LONGEST + 1)])
    assert (found["acceptance"], found["c"], set(found["verify"])) == (0.6, 0.05, {1.0})
    dear = what_if({4: constant_profile(0.1, 4)}, RISING, draft, acceptance=0.6, c=0.05)
    assert dear["predicted"][3] == pytest.approx((1 + 0.6 + 0.36 + 0.216) / (0.15 + 2.0))
    assert dear["predicted"][4] == pytest.approx((1 + 0.6 + 0.36 + 0.216 + 0.1296) / (0.2 + 2.5))  # the line goes on


def test_supposing_the_acceptance_that_was_measured_changes_nothing():
    """A lookup that finds something in half of the steps, and each of its tokens kept with 0.6."""
    profile, draft = Profile((0.5, 0.5, 0.4), (0.3, 0.18, 0.0864), 0.6), DraftCost(0.01, 0.02, ())
    measured = what_if({3: profile}, RISING, draft)
    supposed = what_if({3: profile}, RISING, draft, acceptance=0.6)
    assert supposed["predicted"] == pytest.approx(measured["predicted"])
    assert supposed["theory"] == measured["theory"] != pytest.approx(measured["predicted"])


def test_what_was_discarded_is_taken_off_beside_a_measurement_only():
    rows = [{"name": "model 2", "draft_length": 2, "speed_up": {"value": 1.2, "low": 1.1, "high": 1.3}}]
    profiles = {2: Profile((1.0, 1.0), (0.6, 0.4), 0.6, 0.25)}
    found = what_if(profiles, FLAT, draft_cost_of(0.0), measured=rows)
    assert found["predicted"][2] == pytest.approx(2.0)
    assert found["points"][0]["predicted"] == pytest.approx(1.75)
    supposed = what_if(profiles, FLAT, draft_cost_of(0.0), measured=rows, acceptance=0.4)
    assert supposed["points"][0]["predicted"] == pytest.approx(1.56) == pytest.approx(supposed["predicted"][2])


def test_costs_of_a_simulated_clock_are_marked():
    profiles = {2: constant_profile(0.5, 2)}
    assert what_if(profiles, FLAT, draft_cost_of(0.0), simulated=True)["simulated"] is True
    assert what_if(profiles, FLAT, draft_cost_of(0.0))["simulated"] is False


def test_measured_points_say_how_far_off_the_prediction_was():
    rows = [
        {"name": "model 1", "draft_length": 1, "speed_up": {"value": 1.65, "low": 1.6, "high": 1.7}},
        {"name": "model 3", "draft_length": 3, "speed_up": None},
        {"name": "model 20", "draft_length": 20, "speed_up": {"value": 1.0, "low": None, "high": None}},
    ]
    [point] = what_if({1: constant_profile(0.5, 1)}, FLAT, draft_cost_of(0.0), measured=rows)["points"]
    assert point["predicted"] == 1.5
    assert point["off_by"] == pytest.approx(0.1)
    assert point["words"] == "the measurement is 10.0 % above the prediction"


@pytest.mark.parametrize("drafter", ["model", "ngram"])
@pytest.mark.parametrize("length", [1, 4, 7])
def test_a_runs_own_profile_predicts_that_run(drafter, length):
    spec = RunSpec(
        prompt="The draft model", drafter=drafter, draft_length=length, temperature=0.0, max_tokens=60,
        target_call_seconds=0.02, draft_call_seconds=0.003,
    )  # fmt: skip
    record = Report(build(spec).events()).record()
    profile = profile_of(record)
    draft = draft_cost_of(0.15 if drafter == "model" else 0.0)
    assert record["discarded"] == 0
    measured = 0.02 * record["tokens_generated"] / record["decode_seconds"]
    assert prediction(profile, length, draft, FLAT.verify_cost) == pytest.approx(measured)


def test_a_record_and_a_row_give_the_same_profile():
    record = Report(build(RunSpec(prompt="The draft model", max_tokens=40)).events()).record()
    row = {
        **{name: record[name] for name in ("steps", "discarded", "per_token_acceptance")},
        "drafted_at": [position["drafted"] for position in record["per_position"]],
        "accepted_at": [position["accepted"] for position in record["per_position"]],
    }
    assert profile_of(record) == profile_of(row)


def test_a_run_that_drafted_nothing_has_no_profile():
    assert profile_of(Report(build(RunSpec(prompt="The", drafter="none", max_tokens=5)).events()).record()) is None
    with pytest.raises(SettingError, match="no acceptance was measured"):
        what_if({}, FLAT, draft_cost_of(0.1))


@pytest.mark.parametrize("call", [
    lambda: constant_profile(1.5),
    lambda: draft_cost_of(-0.1),
    lambda: prediction(constant_profile(0.5), -1, draft_cost_of(0.0), FLAT.verify_cost),
])  # fmt: skip
def test_values_out_of_range_are_refused(call):
    with pytest.raises(SettingError, match="it must be"):
        call()


def test_costs_are_not_changed_by_a_supposition():
    found = what_if({4: constant_profile(0.5, 4)}, replace(RISING), DraftCost(0.1, 0.05, ()), flat=False)
    assert found["c"] == pytest.approx((0.1 + 0.05 * 4) / 4)
