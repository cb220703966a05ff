"""A run as plain data, and built from it."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest

from engine import ExactRejection, ModelDrafter, NoDraft, PromptLookup, RunSpec, Step, build
from engine.drafter_kinds import DRAFTERS, load
from engine.errors import PromptError, SettingError, VocabularyError
from engine.models.callable import CallableModel
from engine.rules import RULES
from engine.spec import KINDS, versions

SPEC = RunSpec(prompt="The draft", stop=("x", "yz"), temperature=0.25, seed=2**60, draft_length=0)


def test_json_both_ways_keeps_every_field():
    assert RunSpec.from_json(SPEC.to_json()) == SPEC


@pytest.mark.parametrize("name", [*RULES, *DRAFTERS])
def test_every_rule_and_drafter_stands_in_the_description_of_a_spec(name):
    assert f'"{name}"' in RunSpec.__doc__


def test_a_field_that_is_left_out_takes_its_default():
    assert RunSpec.from_json('{"prompt": "x", "length_policy": "confident"}') == RunSpec(prompt="x")


def test_a_spec_of_a_time_without_length_policies_drafted_to_the_end():
    assert RunSpec.from_json('{"prompt": "x"}') == RunSpec(prompt="x", length_policy="fixed")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("not json", "not JSON"),
        ("[1]", "this is [1]"),
        ('{"schema": 99}', "schema 99"),
        ('{"flavour": 1}', "no field 'flavour'"),
        ('{"seed": "seven"}', 'seed is "seven"; it must be a whole number'),
        ('{"chat": 1}', "chat is 1; it must be true or false"),
        ('{"stop": [1]}', "stop is [1]; it must be a list of texts"),
        ('{"draft_length": true}', "draft_length is true; it must be a whole number"),
        ('{"temperature": null}', "temperature is null; it must be a number"),
        (f'{{"temperature": {10**400}}}', "0; it must be a number"),
        ('{"target": 1}', "target is 1; it must be a text"),
    ],
)
def test_json_that_is_no_spec_is_refused_in_words(text, words):
    with pytest.raises(SettingError) as refused:
        RunSpec.from_json(text)
    assert words in str(refused.value)


def test_every_kind_of_field_has_a_name_in_words():
    assert {type(field.default) for field in fields(RunSpec)} == set(KINDS)


def test_a_whole_number_is_a_fine_temperature():
    assert RunSpec.from_json('{"temperature": 1}').temperature == 1.0


@pytest.mark.parametrize(
    ("drafter", "kind"),
    [("none", NoDraft), ("ngram", PromptLookup), ("model", ModelDrafter), ("model:markov", ModelDrafter)],
)
def test_a_drafter_is_made_by_its_name(drafter, kind):
    assert isinstance(build(RunSpec(prompt="The draft", drafter=drafter)).drafter, kind)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"prompt": " \n"}, PromptError, "prompt is empty"),
        ({"prompt": "caf\udce9"}, PromptError, "no valid UTF-8"),
        ({"drafter": "model:"}, SettingError, "drafter is 'model:'"),
        ({"acceptance_probability": -3.0}, SettingError, "acceptance_probability is -3.0"),
        ({"drafter": "ngrams"}, SettingError, "drafter is 'ngrams'"),
        ({"drafter": "none:x"}, SettingError, "drafter is 'none:x'"),
        ({"drafter": "ngram:-1"}, SettingError, "ngram takes nothing behind a colon; the draft length, 0 to 32, is a"),
        ({"drafter": "suffix:x"}, SettingError, "suffix takes nothing behind a colon; choose suffix"),
        ({"drafter": "eagle:"}, SettingError, "nothing behind the colon"),
        ({"drafter": "suffix", "rule": "naive"}, SettingError, "raw logits"),
        ({"drafter": "recycling", "rule": "naive"}, SettingError, "raw logits"),
        ({"suffix_factor": -1.0}, SettingError, "suffix factor is -1.0"),
        ({"suffix_choice": "best"}, SettingError, "suffix choice is 'best'"),
        ({"exit_layer": -1}, SettingError, "exit layer is -1"),
        ({"rule": "best"}, SettingError, "rule is 'best'"),
        ({"drafter": "ngram", "rule": "naive"}, SettingError, "raw logits"),
        ({"rule": "naive", "acceptance_probability": 1.0}, SettingError, "acceptance_probability is 1.0"),
        ({"lenience": 0.0}, SettingError, "lenience is 0.0"),
        ({"ensemble_weight": 1.5}, SettingError, "ensemble_weight is 1.5"),
        ({"typical_threshold": float("nan")}, SettingError, "typical_threshold is nan"),
        ({"typical_scale": -1.0}, SettingError, "typical_scale is -1.0"),
        ({"max_tokens": 0}, SettingError, "max_tokens is 0"),
        ({"draft_length": 33}, SettingError, "draft length is 33"),
        ({"seed": -1}, SettingError, "seed is -1"),
        ({"stop": ("",)}, SettingError, "stop string is empty"),
        ({"ngram_max": 0}, SettingError, "n-gram is 0"),
    ],
)
def test_what_can_be_refused_is_refused_before_a_model_is_loaded(settings, error, words):
    with pytest.raises(error) as refused:
        build(RunSpec(**{"target": "no-such-model.gguf", "prompt": "x"} | settings))
    assert words in str(refused.value)


def test_a_draft_with_hardly_any_token_of_the_target_is_refused():
    with pytest.raises(VocabularyError, match="only 2 are the same"):
        build(RunSpec(prompt="The draft", drafter="model:noisy"))


def test_early_exit_needs_a_target_with_layers():
    with pytest.raises(SettingError, match="markov has no layers to exit behind"):
        build(RunSpec(prompt="The draft", drafter="early-exit"))


def test_early_exit_asks_a_model_of_ones_own_for_its_layers_and_its_early_rows():
    class Layered(CallableModel):
        n_layers = 3

        def early_logits(self, context, last, n_layers):
            return self.logits(context, last) * n_layers / self.n_layers

    spec = RunSpec(prompt="The draft", drafter="early-exit", max_tokens=20)
    loaded = load(spec, "markov", None)
    size = loaded.tokenizer.vocab_size
    model = Layered(lambda ids: np.where(np.arange(size) == (ids[-1] + 7) % size, 99.0, 0.0), size, name="mine")
    events = list(build(spec, loaded=replace(loaded, model=model, partner=None, clock=None)).events())
    assert events[0].drafter == "model:mine-first-2"
    assert [step.n_accepted for step in events if isinstance(step, Step)] == [4, 4, 4, 4]


def test_a_rule_that_is_added_by_name_is_the_one_that_judges(monkeypatch):
    class Mine(ExactRejection):
        name = "mine"

    monkeypatch.setitem(RULES, "mine", lambda spec: Mine())
    started = next(build(RunSpec(prompt="The draft", rule="mine")).events())
    assert started.rule == "mine"


def test_the_target_as_its_own_draft_is_accepted_whole():
    events = build(RunSpec(prompt="The draft", drafter="model:markov", max_tokens=30)).events()
    assert all(event.n_accepted == event.n_drafted for event in events if isinstance(event, Step))


def test_versions_are_recorded_as_text():
    assert json.loads(json.dumps(versions())) == versions()
    assert set(versions()) >= {"draftscope", "python", "numpy"}
