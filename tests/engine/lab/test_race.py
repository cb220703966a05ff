"""The race of the length policies: it is a comparison, with the steps of every policy beside it."""

import json

import pytest

from engine.bench.prompts import Prompt
from engine.build import build
from engine.compare.choices import MOST_CONFIGURATIONS
from engine.compare.run import CompareSettings, plan_of
from engine.errors import SettingError
from engine.lab.race import race, race_settings
from engine.policies import POLICIES
from engine.spec import RunSpec
from engine.stopping import Stopped
from engine.values import Step

PRICED = RunSpec(
    prompt="The draft model", max_tokens=20, draft_length=6, temperature=0.7, agreement=0.5,
    target_call_seconds=0.02, draft_call_seconds=0.002, seed=4,
)  # fmt: skip


@pytest.fixture(scope="module")
def found():
    return race(race_settings(PRICED, repeats=2))


def test_every_policy_is_measured_beside_plain_decoding(found):
    assert [row["policy"] for row in found["policies"]] == list(POLICIES)
    assert len(found["configurations"]) == len(POLICIES) + 1
    assert found["runs_done"] == 2 * (len(POLICIES) + 1)
    assert found["simulated"] is True
    assert all(
        row["speed_up"]["low"] <= row["speed_up"]["value"] <= row["speed_up"]["high"] for row in found["policies"]
    )
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize("policy", POLICIES)
def test_steps_are_those_of_the_run_that_the_settings_make(found, policy):
    spec = race_settings(PRICED).specs[list(POLICIES).index(policy)]
    assert spec.length_policy == policy
    steps = [event for event in build(spec).events() if isinstance(event, Step)]
    row = next(row for row in found["policies"] if row["policy"] == policy)
    assert row["length_by_step"] == [step.depth for step in steps]
    assert row["accepted_by_step"] == [step.n_accepted for step in steps]
    assert max(row["length_by_step"]) <= 6


def test_the_length_of_a_tree_is_that_of_its_longest_branch():
    tree = RunSpec(prompt="The draft model", max_tokens=8, draft_length=3, rule="tree-match", tree_nodes=16)
    fixed = next(row for row in race(race_settings(tree, repeats=1))["policies"] if row["policy"] == "fixed")
    assert max(fixed["length_by_step"]) == 3
    assert fixed["drafted"] > 3 * fixed["steps"]


def test_each_repeat_has_a_seed_of_its_own_that_all_policies_share(found):
    texts = {(run["configuration"], run["repeat"]): run["tokens"] for run in found["runs"]}
    assert len(texts) == found["runs_done"]
    alone = race(race_settings(PRICED, repeats=1))
    fixed = next(row for row in alone["policies"] if row["policy"] == "fixed")
    both = next(row for row in found["policies"] if row["policy"] == "fixed")
    assert fixed["length_by_step"] == both["length_by_step"]
    assert fixed["steps"] < both["steps"]
    assert both["speed_up"]["low"] < both["speed_up"]["high"]  # on a simulated clock only another text can do that


def test_what_cannot_race_is_told():
    with pytest.raises(SettingError, match="nothing is drafted"):
        race_settings(RunSpec(prompt="The", drafter="none"))
    with pytest.raises(SettingError, match="nothing is drafted"):
        race_settings(RunSpec(prompt="The", draft_length=0))
    with pytest.raises(SettingError, match="with 3 repeats it must be at most"):
        race_settings(RunSpec(prompt="The", seed=2**64 - 1))
    with pytest.raises(SettingError, match="0 repeats"):
        race_settings(RunSpec(prompt="The"), repeats=0)


def test_stopping_keeps_what_was_measured():
    told = []
    found = race(race_settings(PRICED), lambda *far: told.append(far), cancelled=lambda: len(told) > 9)
    assert found["partial"] is True
    assert 0 < found["runs_done"] < found["runs_planned"]
    with pytest.raises(Stopped):
        race(race_settings(PRICED), cancelled=lambda: True)


def test_a_comparison_still_takes_four_and_one_seed():
    specs = race_settings(PRICED).specs
    with pytest.raises(SettingError, match=f"compare 1 to {MOST_CONFIGURATIONS}"):
        plan_of(CompareSettings(specs, (Prompt("1", "The"),)))
    assert CompareSettings(specs[:1], (Prompt("1", "The"),)).new_seeds is False
