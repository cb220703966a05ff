"""Penalties and min-p: each as its source defines it, position by position on both sides; the rule stays exact."""

import itertools

import numpy as np
import pytest

from engine.acceptance import ExactRejection
from engine.drafters import (
    ModelDrafter,
    NoDraft,
)
from engine.errors import SettingError
from engine.models.callable import CallableModel
from engine.rules import RULES
from engine.sampling import Noise, OneHot, Rows, Sampling, law, penalised
from engine.spec import RunSpec
from engine.values import Draft
from tests.engine.oracle import output_law, plain_law, total_variation
from tests.engine.penalties import ALL, COUNTED, REPETITION, STRONG, greedy, slow, text_of
from tests.engine.test_acceptance_exact import random_pair
from tests.engine.toys import random_model


def test_repetition_divides_positive_logits_and_multiplies_negative_ones():
    """CTRL, arXiv 1909.05858, 4.1; the sign as in transformers' RepetitionPenaltyLogitsProcessor."""
    logits = np.array([3.0, -3.0, 0.0, 3.0])
    assert penalised(logits, Sampling(repetition_penalty=1.5), [0, 1, 2, 0]).tolist() == [2.0, -4.5, 0.0, 3.0]
    assert penalised(logits, Sampling(repetition_penalty=0.5), [0, 1]).tolist() == [6.0, -1.5, 0.0, 3.0]


def test_repetition_looks_at_prompt_and_output_the_others_at_the_output_alone():
    logits = np.ones(4)
    asked = {"context": [0, 1, 1, 2, 2, 2], "sampling": Sampling(repetition_penalty=2, prompt_length=2)}
    assert penalised(logits, **asked).tolist() == [0.5, 0.5, 0.5, 1.0]
    asked["sampling"] = Sampling(frequency_penalty=0.25, prompt_length=2)
    assert penalised(logits, **asked).tolist() == [1.0, 0.75, 0.25, 1.0]
    asked["sampling"] = Sampling(presence_penalty=0.25, prompt_length=2)
    assert penalised(logits, **asked).tolist() == [1.0, 0.75, 0.75, 1.0]


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.5])
@pytest.mark.parametrize("min_p", [0.0, 0.1, 0.6, 1.0])
@pytest.mark.parametrize(("top_k", "top_p"), [(0, 1.0), (4, 1.0), (0, 0.7), (5, 0.8)])
@pytest.mark.parametrize("penalties", [(1.0, 0.0, 0.0), (1.7, 0.0, 0.0), (0.6, 0.5, -1.0), (1.2, -0.4, 0.8)])
def test_law_equals_the_slow_reference(temperature, min_p, top_k, top_p, penalties):
    rng = np.random.default_rng(8)
    sampling = Sampling(temperature, top_k, top_p, min_p, *penalties, prompt_length=3)
    for logits in rng.normal(0, 2, (4, 9)):
        logits[rng.integers(9)] = -np.inf
        context = rng.integers(0, 9, 8).tolist()
        drawn_from = law(logits, sampling, context).dense(9)
        assert drawn_from == pytest.approx(slow(logits, sampling, context), abs=1e-12)


def test_min_p_is_a_share_of_the_best_tokens_probability():
    """Nguyen et al., arXiv 2407.01082: keep p >= min_p * max p."""
    logits = np.log([0.4, 0.3, 0.2, 0.1])
    kept = {share: np.count_nonzero(law(logits, Sampling(1, min_p=share)).dense(4)) for share in (0, 0.24, 0.4, 0.6, 1)}
    assert kept == {0: 4, 0.24: 4, 0.4: 3, 0.6: 2, 1: 1}


def test_min_p_comes_behind_the_temperature_and_before_top_p():
    logits = np.log([0.6, 0.3, 0.1])
    assert np.count_nonzero(law(logits, Sampling(temperature=2, min_p=0.6)).dense(3)) == 2
    assert np.count_nonzero(law(logits, Sampling(temperature=1, min_p=0.6)).dense(3)) == 1
    # without min-p .6 and .3 reach .65; of .6 and .3 alone the first has 2/3 of the mass
    assert np.count_nonzero(law(logits, Sampling(1, top_p=0.65)).dense(3)) == 2
    assert np.count_nonzero(law(logits, Sampling(1, top_p=0.65, min_p=0.4)).dense(3)) == 1


def test_without_a_penalty_the_logits_are_handed_on_as_they_are():
    logits = np.array([1.0, 2.0])
    assert penalised(logits, Sampling(), None) is logits
    rows = Rows(logits[None], Sampling(), before=lambda row: pytest.fail("nobody needs the context"))
    assert rows.scores(0).base is logits


def test_a_penalty_without_a_context_is_refused():
    for penalty in ({"repetition_penalty": 2}, {"frequency_penalty": 1}, {"presence_penalty": 1}):
        with pytest.raises(SettingError, match="hand them over"):
            law(np.zeros(2), Sampling(**penalty))
        with pytest.raises(SettingError, match="hand them over"):
            Rows(np.zeros((1, 2)), Sampling(**penalty)).law(0)


def test_penalties_do_not_write_to_the_logits_and_keep_float32():
    logits = np.array([1, 2, 3], dtype=np.float32)
    changed = penalised(logits, Sampling(presence_penalty=1), [0, 2])
    assert (logits.tolist(), changed.tolist(), changed.dtype) == ([1, 2, 3], [0, 2, 2], np.float32)
    assert penalised(np.array([1, 2]), Sampling(presence_penalty=0.5), [0]).tolist() == [0.5, 2.0]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_banned_tokens_stay_banned_and_no_other_becomes_so(kind):
    limit = float(np.finfo(kind).max)
    logits = np.array([-np.inf, -limit, limit], dtype=kind)
    for sampling in (Sampling(repetition_penalty=1e300), Sampling(repetition_penalty=5e-324)):
        changed = penalised(logits, sampling, [0, 1, 2])
        assert changed[0] == -np.inf
        assert np.isfinite(changed[1:]).all()
    changed = penalised(logits, Sampling(frequency_penalty=-2, presence_penalty=-2), [0, 1, 2])
    assert np.isfinite(changed).tolist() == [False, True, True]


def test_ids_that_a_row_does_not_have_are_passed_over():
    """A draft of another size, or of some tokens only, knows less than the context holds."""
    assert penalised(np.ones(2), Sampling(repetition_penalty=2), [1, 7]).tolist() == [1.0, 0.5]
    some = np.array([3, 7, 9])
    asked = Sampling(frequency_penalty=0.5, presence_penalty=1)
    assert penalised(np.ones(3), asked, [9, 2, 8, 9, 11, 3], tokens=some).tolist() == [-0.5, 1.0, -1.0]


@pytest.mark.parametrize("sampling", [REPETITION, COUNTED, ALL, Sampling(1, min_p=0.3)], ids=str)
@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("draft", ["sampled", "one-hot", "mixed"])
def test_output_law_with_penalties_is_that_of_plain_sampling(sampling, length, draft):
    """vllm#22987: penalties that do not know the drafted tokens before a row shift the law by some 10 %."""
    size = {"length": length, "vocab_size": 3, "context": (0, 2, 2)}
    pair = random_pair(3, length, zeros=0, draft=draft, draft_sampling=Sampling(temperature=1))
    found = output_law(ExactRejection(), *pair, sampling, **size)
    assert found.sum() == pytest.approx(1, abs=1e-12)
    assert total_variation(found, plain_law(pair[0], sampling, **size)) < 1e-12


LOSSLESS = [name for name, make in RULES.items() if make(RunSpec()).lossless]


@pytest.mark.parametrize("rule", LOSSLESS)
@pytest.mark.parametrize(("length", "told"), [(1, False), (2, False), (2, True), (3, True)])
@pytest.mark.parametrize("sampling", [REPETITION, ALL], ids=str)
def test_every_lossless_rule_has_the_penalised_law(rule, length, told, sampling):
    size = {"length": length, "vocab_size": 3, "context": (0, 2, 2)}
    pair = random_pair(3, length, zeros=0, draft="sampled", draft_sampling=Sampling(temperature=1))
    found = output_law(RULES[rule](RunSpec()), *pair, sampling, told=told, **size)
    assert total_variation(found, plain_law(pair[0], sampling, **size)) < 1e-12


def test_a_law_that_forgets_the_drafted_tokens_is_another_one():
    """So that the test above can fail: rows with the context alone are visibly off."""
    pair = random_pair(3, 2, zeros=0, draft="sampled", draft_sampling=Sampling(temperature=1))

    class Forgetful(ExactRejection):
        def judge(self, draft, rows, **rest):
            raw = np.array([[rows.logit(row, token) for token in range(3)] for row in range(len(draft.tokens) + 1)])
            return super().judge(draft, Rows(raw, STRONG, lambda row: (0,)), **rest)

    size = {"length": 2, "vocab_size": 3, "context": (0,)}
    found = output_law(Forgetful(), *pair, STRONG, **size)
    assert total_variation(found, plain_law(pair[0], STRONG, **size)) > 0.1


def test_a_model_drafts_from_the_law_of_the_context_and_its_own_drafts():
    draft_model = random_model(3, 5)
    sampling = Sampling(1, repetition_penalty=1.6, frequency_penalty=0.8, presence_penalty=0.3, prompt_length=2)
    context = [0, 1, 1, 2]
    draft = ModelDrafter(draft_model, 5).propose(context, 6, sampling=sampling, noise=Noise(1), end_tokens=frozenset())
    for place, handed_over in enumerate(draft.laws):
        ids = draft.before(context, place)
        assert ids == [*context, *draft.tokens[:place]]
        expected = slow(draft_model.logits(ids)[0], sampling, ids)
        assert handed_over.dense(5) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "settings",
    [
        {"min_p": -0.1},
        {"min_p": 1.01},
        {"min_p": np.nan},
        {"repetition_penalty": 0},
        {"repetition_penalty": -1.0},
        {"repetition_penalty": np.inf},
        {"repetition_penalty": np.nan},
        *({name: value} for name in ("frequency_penalty", "presence_penalty") for value in (-2.1, 2.1, np.nan, np.inf)),
        {"arithmetic": "decimal"},
        {"prompt_length": -1},
        {"prompt_length": 1.5},
    ],
    ids=str,
)
def test_setting_out_of_range_is_refused_by_name(settings):
    (name,) = settings
    with pytest.raises(SettingError, match=f"^{name} is .*must be"):
        Sampling(**settings)


def test_a_draft_knows_the_ids_before_each_row():
    draft = Draft((4, 5), (OneHot(4), OneHot(5)))
    assert [draft.before((1, 2), row) for row in range(3)] == [[1, 2], [1, 2, 4], [1, 2, 4, 5]]


def test_decode_says_how_long_the_prompt_is():
    """A frequency penalty must not count the prompt, whatever `Sampling` said before."""
    target = CallableModel(lambda ids: np.array([1.0, 0.9]), 2)
    for prompt, expected in itertools.product(([0], [0, 0, 0, 0]), [(0, 1)]):
        sampling = greedy(frequency_penalty=0.5, prompt_length=9)
        assert text_of(target, NoDraft(), prompt, sampling=sampling, max_tokens=2) == expected
