"""Penalties and min-p: each as its source defines it, position by position on both sides; the rule stays exact."""

import itertools

import numpy as np
import pytest

from engine.acceptance import ExactRejection, NaiveThreshold, TreeDistinct, TreeIndependent, TreeMatch
from engine.decode import decode
from engine.drafters import (
    LookupFirst,
    ModelDrafter,
    NoDraft,
    PromptLookup,
    SuffixDecoding,
    TokenRecycling,
    TreeDrafter,
)
from engine.errors import SettingError
from engine.lengths import FixedLength
from engine.models.callable import CallableModel
from engine.rules import RULES
from engine.sampling import Noise, OneHot, Rows, Sampling, law, penalised
from engine.spec import RunSpec
from engine.values import Draft, Finished, Step
from tests.engine.oracle import output_law, plain_law, slow_law, total_variation
from tests.engine.test_acceptance_exact import random_pair
from tests.engine.toys import letters, random_model, script_model

REPETITION = Sampling(temperature=1, repetition_penalty=1.8, prompt_length=1)
COUNTED = Sampling(temperature=1, frequency_penalty=0.9, presence_penalty=-0.6, prompt_length=1)
STRONG = Sampling(temperature=1, presence_penalty=2.0, prompt_length=1)
ALL = Sampling(0.8, 3, 0.9, 0.05, 1.4, 0.7, 0.4, prompt_length=1)


def slow(logits, sampling, context):
    names = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "frequency_penalty", "presence_penalty")
    settings = {name: getattr(sampling, name) for name in (*names, "prompt_length")}
    return slow_law(logits, **settings, context=context)


def greedy(**penalties):
    return Sampling(temperature=0, **penalties)


def text_of(target, drafter, prompt, **settings):
    *_, finished = decode(target, drafter, prompt, **settings)
    assert isinstance(finished, Finished)
    assert not finished.error
    return finished.ids


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


@pytest.mark.parametrize("rule", LOSSLESS)
def test_greedy_text_with_penalties_is_the_plain_text_under_every_lossless_rule(rule):
    target, penalties = random_model(1), {"repetition_penalty": 1.3, "frequency_penalty": 0.2}
    prompt = [0, 1, 2, 0, 1, 2, 0, 1]
    expected = plain_text(target, prompt, penalties, 30)
    for drafter in (ModelDrafter(random_model(3), 6), ModelDrafter(target, 6), PromptLookup(2)):
        settings = {"sampling": greedy(**penalties), "lengths": FixedLength(4), "max_tokens": 30}
        assert text_of(target, drafter, prompt, rule=RULES[rule](RunSpec()), **settings) == expected


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


@pytest.mark.parametrize("length", [1, 3, 8])
def test_draft_that_is_the_target_is_accepted_whole(length):
    """Both sides see the same penalties at every position, or something would be rejected."""
    target = random_model(4)
    sampling = Sampling(1, 4, 0.95, 0.02, 1.5, 0.6, 0.4)
    for seed in range(5):
        settings = {"sampling": sampling, "lengths": FixedLength(length), "seed": seed, "max_tokens": 30}
        events = decode(target, ModelDrafter(target, 6), [0, 3], **settings)
        outcomes = {each.outcome for step in events if isinstance(step, Step) for each in step.decisions}
        assert outcomes <= {"accepted", "bonus", "plain"}


PENALTIES = [
    {"repetition_penalty": 1.3},
    {"repetition_penalty": 0.7},
    {"frequency_penalty": 0.5},
    {"presence_penalty": 1.5},
    {"repetition_penalty": 1.2, "frequency_penalty": -0.3, "presence_penalty": 0.8},
]


def plain_text(target, prompt, penalties, n_tokens):
    """The argmax of the penalised logits, token by token."""
    ids = list(prompt)
    for _ in range(n_tokens):
        row = target.logits(ids)[0]
        ids.append(slow(row, Sampling(0, **penalties, prompt_length=len(prompt)), ids).index(1.0))
    return tuple(ids[len(prompt) :])


@pytest.mark.parametrize("penalties", PENALTIES, ids=str)
@pytest.mark.parametrize("kind", ["none", "good", "bad", "same", "ngram", "first", "suffix", "recycling"])
def test_greedy_text_with_drafted_repeats_is_the_plain_text(penalties, kind):
    """TensorRT-LLM#17701: penalties were left out where tokens were drafted."""
    target = random_model(1)
    noisy = CallableModel(lambda ids: target.logits(ids)[0] + random_model(2, scale=1.0).logits(ids)[0], 6)
    drafter = {
        "none": NoDraft(),
        "good": ModelDrafter(noisy, 6),
        "bad": ModelDrafter(random_model(3), 6),
        "same": ModelDrafter(target, 6),
        "ngram": PromptLookup(2),
        "first": LookupFirst(ModelDrafter(noisy, 6)),
        "suffix": SuffixDecoding(),
        "recycling": TokenRecycling(),
    }[kind]
    prompt = [0, 1, 2, 0, 1, 2, 0, 1]
    expected = plain_text(target, prompt, penalties, 40)
    for length in (0, 1, 4, 8):
        settings = {"sampling": greedy(**penalties), "lengths": FixedLength(length), "max_tokens": 40}
        assert text_of(target, drafter, prompt, **settings) == expected


TREES = [(TreeIndependent(), "independent"), (TreeDistinct(), "distinct"), (TreeMatch(), "best")]


def tree(model, children):
    return TreeDrafter(model, 6, children=children, width=3, n_nodes=12)


@pytest.mark.parametrize(("rule", "children"), TREES, ids=lambda part: getattr(part, "name", part))
@pytest.mark.parametrize("penalties", PENALTIES, ids=str)
def test_greedy_text_with_drafted_trees_is_the_plain_text(rule, children, penalties):
    target, prompt = random_model(1), [0, 1, 2, 0, 1]
    expected = plain_text(target, prompt, penalties, 30)
    for drafter in (tree(random_model(3), children), tree(target, children)):
        settings = {"rule": rule, "sampling": greedy(**penalties), "lengths": FixedLength(4), "max_tokens": 30}
        assert text_of(target, drafter, prompt, **settings) == expected


@pytest.mark.parametrize(("rule", "children"), TREES[:2], ids=lambda part: getattr(part, "name", part))
def test_a_tree_of_the_target_itself_keeps_the_first_of_all_siblings(rule, children):
    """A row of a tree has the tokens on the way to it before it, and not its siblings, on both sides."""
    target = random_model(4)
    sampling = Sampling(1, repetition_penalty=1.6, frequency_penalty=0.8, presence_penalty=0.5)
    for seed in range(5):
        settings = {"rule": rule, "sampling": sampling, "lengths": FixedLength(4), "seed": seed, "max_tokens": 25}
        events = decode(target, tree(target, children), [0, 3], **settings)
        outcomes = {each.outcome for step in events if isinstance(step, Step) for each in step.decisions}
        assert outcomes <= {"accepted", "unreached", "bonus", "plain"}


@pytest.mark.parametrize(("rule", "children"), TREES, ids=lambda part: getattr(part, "name", part))
def test_what_a_tree_emits_has_the_probability_of_its_own_context(rule, children):
    target, ids = random_model(2), [0]
    sampling = Sampling(1, repetition_penalty=1.5, presence_penalty=1.0, prompt_length=1)
    settings = {"rule": rule, "sampling": sampling, "lengths": FixedLength(3), "max_tokens": 40, "logprobs": True}
    for event in decode(target, tree(random_model(5), children), ids, **settings):
        for decision in event.decisions if isinstance(event, Step) else ():
            if decision.target_token is None or decision.discarded:
                continue
            row = target.logits(ids)[0]
            assert decision.emitted_prob == pytest.approx(slow(row, sampling, ids)[decision.target_token])
            assert decision.logprob == pytest.approx(np.log(slow(row, Sampling(1), ids)[decision.target_token]))
            ids.append(decision.target_token)
    assert len(ids) == 41


def test_a_lookup_that_repeats_is_refused_where_the_penalty_forbids_it():
    """The target would say "abc" for ever; with a strong penalty every copy of it is refused."""
    target = script_model(letters("abcabcabcabcabc"))
    sampling = greedy(presence_penalty=2.0, frequency_penalty=2.0)
    plain = text_of(target, NoDraft(), letters("abcabc"), sampling=sampling, max_tokens=9)
    assert text_of(target, PromptLookup(3), letters("abcabc"), sampling=sampling, max_tokens=9) == plain


def test_the_naive_rule_drafts_the_argmax_behind_the_penalties():
    target = random_model(1)
    steps = [
        event
        for event in decode(
            target,
            ModelDrafter(target, 6),
            [0],
            rule=NaiveThreshold(),
            sampling=Sampling(1, presence_penalty=2.0),
            lengths=FixedLength(1),
            max_tokens=12,
        )
        if isinstance(event, Step) and event.n_drafted
    ]
    ids = [0]
    for step in steps:
        row = slow(target.logits(ids)[0], Sampling(0, presence_penalty=2.0, prompt_length=1), ids)
        assert row[step.decisions[0].draft_token] == 1.0
        ids.extend(step.emitted)


def test_margin_is_the_lead_behind_the_penalties():
    rows = Rows(np.array([[3.0, 2.5, 0.0]]), greedy(presence_penalty=1.0), lambda row: [0])
    assert rows.law(0) == OneHot(1)
    assert rows.margin(0, 1) == 0.5
    assert Rows(np.array([[-np.inf, 1.0]]), greedy()).margin(0, 0) is None


@pytest.mark.parametrize("sampling", [REPETITION, COUNTED], ids=str)
def test_emitted_probability_is_that_of_the_penalised_law(sampling):
    target = random_model(2)
    ids = [0]
    for event in decode(target, ModelDrafter(random_model(5), 6), ids, sampling=sampling, max_tokens=25, probe=4):
        if not isinstance(event, Step):
            continue
        for decision in event.decisions:
            if decision.target_token is None or decision.discarded:
                continue
            expected = slow(target.logits(ids)[0], sampling, ids)
            assert decision.emitted_prob == pytest.approx(expected[decision.target_token])
            if event.evidence.choice.position == decision.position:
                for row in event.evidence.choice.alternatives:
                    assert row.target_prob == pytest.approx(expected[row.token])
            ids.append(decision.target_token)


def test_the_probe_lists_alternatives_in_the_order_of_the_penalised_logits():
    target = CallableModel(lambda ids: np.array([3.0, 2.5, 2.0, -np.inf]), 4)
    events = decode(target, NoDraft(), [3], sampling=greedy(presence_penalty=2.0), max_tokens=2, probe=8)
    first, second = [event.evidence.choice for event in events if isinstance(event, Step)]
    assert [(row.token, row.target_logit) for row in first.alternatives] == [(0, 3.0), (1, 2.5), (2, 2.0)]
    assert [(row.token, row.target_logit) for row in second.alternatives] == [(1, 2.5), (2, 2.0), (0, 1.0)]


def test_a_guess_that_the_target_bans_has_no_logit_in_the_evidence():
    target = CallableModel(lambda ids: np.array([1.0, -np.inf]), 2)
    drafter = ModelDrafter(CallableModel(lambda ids: np.array([0.0, 1.0]), 2), 2)
    step = next(e for e in decode(target, drafter, [0], sampling=greedy(), probe=2) if isinstance(e, Step))
    assert [(row.token, row.target_logit) for row in step.evidence.choice.alternatives] == [(0, 1.0), (1, None)]


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
