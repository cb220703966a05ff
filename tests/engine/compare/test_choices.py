"""Configurations from specs and from words."""

from dataclasses import replace

import pytest

from engine.bench.plan import Configuration
from engine.build import check
from engine.compare.choices import configurations_from, spec_from_words
from engine.compare.proposals import proposal_of
from engine.errors import SettingError
from engine.spec import RunSpec

BASE = RunSpec(temperature=0.0)


def test_plain_decoding_is_always_among_them_and_only_once():
    specs = [BASE, replace(BASE, drafter="none")]
    assert configurations_from(specs) == (Configuration(), Configuration(drafter="model", draft_length=4))


def test_a_configuration_names_what_it_changes():
    specs = [BASE, replace(BASE, rule="naive", temperature=0.5, draft_length=2)]
    assert configurations_from(specs)[-1].name == "model 2, rule naive, temperature 0.5"
    assert configurations_from(specs)[-1].spec(BASE, "Hello") == replace(specs[1], prompt="Hello")


def test_plain_decoding_with_other_settings_is_a_configuration_of_its_own():
    ways = configurations_from([BASE, replace(BASE, drafter="none", temperature=1.0)])
    assert [way.name for way in ways] == ["plain", "model 4", "plain, temperature 1.0"]


@pytest.mark.parametrize(
    ("specs", "told"),
    [
        ([], "0 configurations"),
        ([replace(BASE, draft_length=length) for length in range(1, 6)], "5 configurations"),
        ([BASE, BASE], "model 4 is there twice"),
        ([BASE, replace(BASE, seed=1, draft_length=2)], "differ in seed"),
        ([BASE, replace(BASE, target="noisy", draft_length=2)], "differ in target"),
    ],
)
def test_choices_that_cannot_be_compared_are_told(specs, told):
    with pytest.raises(SettingError, match=told):
        configurations_from(specs)


@pytest.mark.parametrize(
    ("words", "drafter", "length"),
    [
        ("ngram", "ngram", 4),
        ("ngram:2", "ngram", 2),
        ("model:smollm2-135m", "model:smollm2-135m", 4),
        ("model:smollm2-135m:8", "model:smollm2-135m", 8),
        ("eagle+ngram:16", "eagle+ngram", 16),
    ],
)
def test_words_name_a_drafter_and_its_length(words, drafter, length):
    spec = spec_from_words(words, BASE)
    assert (spec.drafter, spec.draft_length) == (drafter, length)


def test_words_may_set_more():
    spec = spec_from_words("model:2, rule=naive, top-k=5,temperature=0.5", BASE)
    assert (spec.rule, spec.top_k, spec.temperature) == ("naive", 5, 0.5)


@pytest.mark.parametrize(
    ("words", "told"),
    [("ngram:2,seed=3", "is no setting"), ("ngram,hot", "is no setting"), ("ngram,top_k=many", "a number is expected")],
)
def test_bad_words_are_told(words, told):
    with pytest.raises(SettingError, match=told):
        spec_from_words(words, BASE)


def test_plain_decoding_is_no_configuration_of_its_own():
    for words in ("none", "none:4"):
        with pytest.raises(SettingError, match="plain decoding, which is always compared with"):
            spec_from_words(words, RunSpec())


def test_a_negative_draft_length_is_told_as_a_draft_length():
    with pytest.raises(SettingError, match="draft length is -1"):
        check(replace(spec_from_words("ngram:-1", RunSpec()), prompt="x"))


def test_a_truth_is_read_from_its_word():
    assert spec_from_words("suffix,suffix_outputs=true", RunSpec()).suffix_outputs
    assert not spec_from_words("suffix,suffix-outputs=False", RunSpec(suffix_outputs=True)).suffix_outputs
    with pytest.raises(SettingError, match=r"'yes'.*true or false is expected"):
        spec_from_words("suffix,suffix_outputs=yes", RunSpec())


@pytest.mark.parametrize(
    ("drafter", "temperature"), [("model", 0.0), ("eagle", 0.0), ("eagle+ngram", 0.7), ("eagle+suffix", 0.7)]
)
def test_a_rule_that_wants_the_best_token_leaves_the_temperature_to_drafters_that_copy_first(drafter, temperature):
    spec = RunSpec(drafter=drafter, rule="sample-match", temperature=0.7)
    assert dict(proposal_of(spec))["temperature"] == temperature
    assert dict(proposal_of(replace(spec, rule="exact")))["temperature"] == 0.7
