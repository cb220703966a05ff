"""Which runs are made, and in which order."""

from collections import Counter
from dataclasses import dataclass, replace

import pytest

from engine.bench import plan as plan_module
from engine.bench.plan import (
    Configuration,
    Plan,
    configurations_of,
    optional_settings,
    plain_of,
    usable_drafters,
)
from engine.bench.prompts import Prompt
from engine.errors import SettingError
from engine.spec import RunSpec

PROMPTS = tuple(Prompt(str(number), f"prompt {number}") for number in range(4))


def plan(seed=0, repeats=3):
    return Plan(configurations_of(["ngram", "model"], [1, 4]), PROMPTS, repeats, seed)


def test_plain_is_always_among_the_configurations():
    assert [way.name for way in configurations_of(["ngram", "model"], [1, 4])] == [
        "plain", "ngram 1", "ngram 4", "model 1", "model 4",
    ]  # fmt: skip
    assert [way.name for way in configurations_of([], [1])] == ["plain"]


def test_a_rivals_names_tell_it_and_its_own_plain_is_its_baseline():
    way = Configuration("llama.cpp", "ngram", 4)
    assert (way.name, plain_of(way).name) == ("llama.cpp ngram 4", "llama.cpp plain")
    assert plain_of(Configuration(drafter="ngram", draft_length=2)) == Configuration()


def test_every_configuration_meets_every_prompt_in_every_repeat_once():
    turns = list(plan().turns())
    assert len(turns) == plan().n_turns == 5 * 4 * 3
    assert set(Counter((turn.repeat, turn.prompt, turn.configuration) for turn in turns).values()) == {1}


def test_all_configurations_take_a_prompt_in_turn_before_the_next_prompt():
    turns = list(plan().turns())
    blocks = [turns[start : start + 5] for start in range(0, len(turns), 5)]
    assert [{(turn.repeat, turn.prompt.identity) for turn in block} for block in blocks] == [
        {(repeat, prompt.identity)} for repeat in range(3) for prompt in PROMPTS
    ]
    orders = {tuple(turn.configuration.name for turn in block) for block in blocks}
    assert len(orders) > 6  # shuffled anew each time


def test_the_order_depends_on_the_seed_alone():
    assert list(plan(seed=3).turns()) == list(plan(seed=3).turns())
    assert list(plan(seed=3).turns()) != list(plan(seed=4).turns())


@pytest.mark.parametrize("length", [0, 33])
def test_a_draft_length_out_of_range_is_told(length):
    with pytest.raises(SettingError, match=f"draft length is {length}"):
        configurations_of(["ngram"], [length])


def test_no_repeat_is_told():
    with pytest.raises(SettingError, match="at least 1"):
        plan(repeats=0)


def test_a_run_takes_all_but_drafter_length_and_prompt_from_the_base():
    base = RunSpec(temperature=0.0, max_tokens=9, seed=5, chat=False)
    spec = Configuration(drafter="ngram", draft_length=3).spec(base, "Hello")
    assert spec == RunSpec("markov", "ngram", draft_length=3, prompt="Hello", temperature=0.0, max_tokens=9, seed=5,
                           chat=False)  # fmt: skip


def test_the_usual_drafters_of_the_embedded_pair_are_used():
    usable, skipped = usable_drafters(RunSpec(prompt="The draft"))
    assert {"ngram", "model"} <= set(usable)
    assert set(usable) | set(skipped) | {"none"} == {"none", *plan_module.USUAL}


def test_a_drafter_that_cannot_be_had_is_left_out_with_the_reason(monkeypatch):
    monkeypatch.setattr(plan_module, "USUAL", ("ngram", "crystal-ball"))
    usable, skipped = usable_drafters(RunSpec(prompt="The draft"))
    assert usable == ["ngram"]
    assert "crystal-ball" in skipped["crystal-ball"]


def test_a_kind_that_stands_for_another_is_left_out_for_it(monkeypatch):
    monkeypatch.setattr(plan_module, "USUAL", ("model", "ngram", "model:markov-draft"))
    original = plan_module.build

    def aliased(spec):
        return original(spec if spec.drafter != "model:markov-draft" else replace(spec, drafter="model"))

    monkeypatch.setattr(plan_module, "build", aliased)
    usable, skipped = usable_drafters(RunSpec(prompt="The draft"))
    assert usable == ["ngram", "model:markov-draft"]
    assert skipped == {"model": "for this target it is the same as model:markov-draft"}


def test_settings_that_a_run_may_come_to_have_are_passed_through(monkeypatch):
    @dataclass
    class Later:
        target: str = "markov"
        backend: str = "fast"
        exact_rows: bool = True

    monkeypatch.setattr(plan_module, "RunSpec", Later)
    assert optional_settings() == {"backend": "fast", "exact_rows": True}
