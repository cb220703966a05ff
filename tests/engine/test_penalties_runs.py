"""Runs with penalties: the text, what is told of each token, and the evidence."""

import numpy as np
import pytest

from engine.acceptance import NaiveThreshold, TreeDistinct, TreeIndependent, TreeMatch
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
from engine.lengths import FixedLength
from engine.models.callable import CallableModel
from engine.rules import RULES
from engine.sampling import OneHot, Rows, Sampling
from engine.spec import RunSpec
from engine.values import Step
from tests.engine.penalties import COUNTED, REPETITION, greedy, slow, text_of
from tests.engine.toys import letters, random_model, script_model


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


LOSSLESS = [name for name, make in RULES.items() if make(RunSpec()).lossless]


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


@pytest.mark.parametrize("rule", LOSSLESS)
def test_greedy_text_with_penalties_is_the_plain_text_under_every_lossless_rule(rule):
    target, penalties = random_model(1), {"repetition_penalty": 1.3, "frequency_penalty": 0.2}
    prompt = [0, 1, 2, 0, 1, 2, 0, 1]
    expected = plain_text(target, prompt, penalties, 30)
    for drafter in (ModelDrafter(random_model(3), 6), ModelDrafter(target, 6), PromptLookup(2)):
        settings = {"sampling": greedy(**penalties), "lengths": FixedLength(4), "max_tokens": 30}
        assert text_of(target, drafter, prompt, rule=RULES[rule](RunSpec()), **settings) == expected
