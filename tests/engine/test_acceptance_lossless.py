"""By enumeration over a hundred random pairs: which rules are lossless, and by how much the others are not.

A pair has a row for every context of up to three tokens, and a vocabulary of three. What a step does is taken from the
rule's `chances`; that these are what `judge` does is measured in `test_acceptance_chances`.
"""

from functools import cache
from itertools import product

import numpy as np
import pytest

from engine.acceptance import (
    BlockVerification,
    Ensemble,
    ExactRejection,
    GumbelMatch,
    Lenience,
    NaiveThreshold,
    SampleMatch,
    TypicalAcceptance,
)
from engine.rules import RULES
from engine.sampling import Dense, Sampling, law
from engine.spec import RunSpec
from engine.values import Draft
from tests.engine.oracle import output_law, plain_law, rows_of, total_variation
from tests.engine.random_pairs import contexts, random_pair

PLAIN = Sampling(temperature=1)
LENGTH, VOCABULARY = 3, 3
SIZE = {"length": LENGTH, "vocab_size": VOCABULARY}
PAIRS = [
    random_pair(VOCABULARY, 1000 + seed, zeros=seed % 2, draft="sampled", draft_sampling=PLAIN) for seed in range(100)
]
TREES = ("tree-independent", "tree-distinct", "tree-match")
"""They judge chains as well, as the exact rule and sample-match do; `test_acceptance_trees` has them with trees."""

LOSSLESS = {name: rule for name, make in RULES.items() if (rule := make(RunSpec())).lossless}


@cache
def plain_law_of(place):
    return plain_law(PAIRS[place][0], PLAIN, **SIZE)


def kept_on_average(rule, pair, *, length=LENGTH, vocab_size=VOCABULARY):
    target_logits, draft_law = pair
    expected = 0.0
    for tokens in product(range(vocab_size), repeat=length):
        laws = tuple(draft_law(tokens[:index]) for index in range(length))
        weight = np.prod([law.prob(token) for law, token in zip(laws, tokens, strict=True)])
        if weight:
            chances = rule.chances(Draft(tokens, laws), rows_of(target_logits, tokens, PLAIN))
            expected += weight * sum(n * chance for n, (chance, _) in enumerate(chances))
    return expected


def same_everywhere(p, q):
    return (lambda tokens: np.log(p)), (lambda tokens: Dense(np.array(q)))


@pytest.mark.parametrize("rule", LOSSLESS.values(), ids=LOSSLESS)
def test_lossless_rule_emits_the_law_of_the_target(rule):
    for place, pair in enumerate(PAIRS):
        emitted = output_law(rule, *pair, PLAIN, **SIZE, told=True)
        assert emitted.sum() == pytest.approx(1, abs=1e-12)
        assert total_variation(emitted, plain_law_of(place)) <= 1e-12


def test_rules_that_call_themselves_lossless():
    assert set(LOSSLESS) == {"exact", "block", "sample-match", "gumbel", *TREES}


@pytest.mark.parametrize("rule", LOSSLESS.values(), ids=LOSSLESS)
def test_lossless_rule_is_so_for_drafts_that_are_sure(rule):
    for seed, draft in enumerate(("one-hot", "mixed") * 5):
        pair = random_pair(VOCABULARY, seed, zeros=0, draft=draft, draft_sampling=PLAIN)
        emitted = output_law(rule, *pair, PLAIN, **SIZE, told=True)
        assert total_variation(emitted, plain_law(pair[0], PLAIN, **SIZE)) <= 1e-12


@pytest.mark.parametrize("rule", [BlockVerification(), SampleMatch()], ids=["block", "sample-match"])
def test_lossless_rule_is_so_when_every_draw_is_measured(rule):
    for pair in PAIRS[:2]:
        emitted = output_law(rule, *pair, PLAIN, length=2, vocab_size=VOCABULARY)
        assert total_variation(emitted, plain_law(pair[0], PLAIN, length=2, vocab_size=VOCABULARY)) <= 1e-12


# ---- what a rule keeps ----


def test_block_never_keeps_less_than_the_exact_rule_and_often_more():
    gains = [kept_on_average(BlockVerification(), pair) / kept_on_average(ExactRejection(), pair) for pair in PAIRS]
    assert min(gains) >= 1 - 1e-12
    assert max(gains) > 1.2


def test_block_keeps_eleven_ninths_where_the_exact_rule_keeps_ten():
    pair = same_everywhere([1 / 3, 2 / 3], [2 / 3, 1 / 3])
    size = {"length": 2, "vocab_size": 2}
    assert kept_on_average(ExactRejection(), pair, **size) == pytest.approx(10 / 9, abs=1e-12)
    assert kept_on_average(BlockVerification(), pair, **size) == pytest.approx(11 / 9, abs=1e-12)


@pytest.mark.parametrize(
    ("length", "exact", "block"),
    [(1, 0.8, 0.8), (2, 1.44, 1.48), (3, 1.952, 2.074), (4, 2.362, 2.601), (5, 2.689, 3.074)],
)
def test_tokens_kept_of_two_fixed_laws(length, exact, block):
    """Exact: .8 + .64 + ...; block: .8 + .68 + ..., the mean running ratios of docs/rules.md."""
    pair = same_everywhere([0.5, 0.3, 0.2], [0.3, 0.3, 0.4])
    assert kept_on_average(ExactRejection(), pair, length=length) == pytest.approx(exact, abs=5e-4)
    assert kept_on_average(BlockVerification(), pair, length=length) == pytest.approx(block, abs=5e-4)


def test_block_keeps_as_many_as_the_sum_of_the_joint_ratios():
    """E[kept] = sum over i of E[P_i], an identity of the proof."""
    for target_logits, draft_law in PAIRS[:20]:
        expected = 0.0
        for tokens in product(range(VOCABULARY), repeat=LENGTH):
            weight, ratio, ratios = 1.0, 1.0, 0.0
            for index, token in enumerate(tokens):
                drafted = draft_law(tokens[:index]).prob(token)
                if not drafted:
                    weight = 0.0
                    break
                weight *= drafted
                ratio = min(1.0, ratio * law(target_logits(tokens[:index]), PLAIN).prob(token) / drafted)
                ratios += ratio
            expected += weight * ratios
        kept = kept_on_average(BlockVerification(), (target_logits, draft_law))
        assert kept == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("draft", ["one-hot", "sampled"])
def test_block_is_the_exact_rule_for_one_token_and_for_drafts_that_are_sure(draft):
    length = 3 if draft == "one-hot" else 1
    for seed in range(20):
        pair = random_pair(VOCABULARY, seed, zeros=0, draft=draft, draft_sampling=PLAIN)
        block, exact = (kept_on_average(rule, pair, length=length) for rule in (BlockVerification(), ExactRejection()))
        assert block == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("rule", [SampleMatch(), GumbelMatch()], ids=["sample-match", "gumbel"])
def test_match_never_keeps_more_than_the_exact_rule(rule):
    for pair in PAIRS[:30]:
        assert kept_on_average(rule, pair) <= kept_on_average(ExactRejection(), pair) + 1e-12


def test_identical_laws_are_kept_whole_by_all_but_sample_match():
    shared = random_pair(VOCABULARY, 5, zeros=0, draft="sampled", draft_sampling=PLAIN)
    pair = shared[0], lambda tokens: law(shared[0](tokens), PLAIN)
    for rule in (ExactRejection(), BlockVerification(), GumbelMatch(), Lenience(0.3), Ensemble(0.3)):
        assert kept_on_average(rule, pair) == pytest.approx(LENGTH, abs=1e-9)
    assert kept_on_average(SampleMatch(), pair) < LENGTH


# ---- how far the lossy ones are off ----


def first_token_law(rule, target_logits, draft_law):
    return output_law(rule, target_logits, draft_law, PLAIN, length=1, vocab_size=VOCABULARY, told=True).sum(axis=1)


def behind(pair, context):
    """The pair as it is behind some tokens."""
    return tuple(lambda tokens, side=side: side((*context, *tokens)) for side in pair)


@pytest.mark.parametrize("lenience", [0.05, 0.5, 0.9, 1.0])
def test_lenience_is_off_by_its_closed_form(lenience):
    """TV = alpha(l) - alpha(1), at every context of every pair (docs/rules.md)."""
    rule = Lenience(lenience)
    for pair in PAIRS:
        for context in contexts(VOCABULARY, 1):
            target_logits, draft_law = behind(pair, context)
            target, draft = law(target_logits(()), PLAIN), draft_law(())
            p, q = target.dense(VOCABULARY), draft.dense(VOCABULARY)
            alpha = [float(np.minimum(p / share, q).sum()) for share in (lenience, 1.0)]
            off = total_variation(first_token_law(rule, target_logits, draft_law), p)
            assert off == pytest.approx(alpha[0] - alpha[1], abs=1e-12)
            assert rule.distance(target, draft) == pytest.approx(off, abs=1e-12)


def test_lenience_makes_no_token_more_probable_than_its_bound():
    for pair in PAIRS:
        p = law(pair[0](()), PLAIN).dense(VOCABULARY)
        for lenience in (0.2, 0.6):
            assert (first_token_law(Lenience(lenience), *pair) <= p / lenience + 1e-12).all()


def test_lenience_of_the_toy_has_the_law_worked_out_by_hand():
    """The first token is kept with .5 / (.9 * .6), which gives .5556; what is refused becomes the third."""
    emitted = first_token_law(Lenience(0.9), *same_everywhere([0.5, 0.3, 0.2], [0.6, 0.3, 0.1]))
    assert emitted == pytest.approx([0.5556, 0.3, 0.1444], abs=1e-4)
    assert total_variation(emitted, [0.5, 0.3, 0.2]) == pytest.approx(0.05556, abs=1e-5)


@pytest.mark.parametrize("weight", [0.0, 0.25, 0.8])
def test_ensemble_is_off_by_its_closed_form(weight):
    """Law w p + (1 - w) q, TV (1 - w) TV(p, q), kept with probability 1 - w TV(p, q) (docs/rules.md)."""
    rule = Ensemble(weight)
    for pair in PAIRS:
        for context in contexts(VOCABULARY, 1):
            target_logits, draft_law = behind(pair, context)
            target, draft = law(target_logits(()), PLAIN), draft_law(())
            p, q = target.dense(VOCABULARY), draft.dense(VOCABULARY)
            emitted = first_token_law(rule, target_logits, draft_law)
            apart = total_variation(p, q)
            assert emitted == pytest.approx(weight * p + (1 - weight) * q, abs=1e-12)
            assert rule.distance(target, draft) == pytest.approx((1 - weight) * apart, abs=1e-12)
            kept = kept_on_average(rule, (target_logits, draft_law), length=1)
            assert kept == pytest.approx(1 - weight * apart, abs=1e-12)


def test_ensemble_of_a_whole_step_has_the_law_of_the_mixture():
    """Continued by the mixture, three tokens have exactly its law, and the one behind them the target's."""
    weight = 0.6
    for target_logits, draft_law in PAIRS[:20]:

        def mixed(tokens, target_logits=target_logits, draft_law=draft_law):
            p = law(target_logits(tokens), PLAIN).dense(VOCABULARY)
            return weight * p + (1 - weight) * draft_law(tokens).dense(VOCABULARY)

        def law_at(tokens, target_logits=target_logits, mixed=mixed):
            return law(target_logits(tokens), PLAIN).dense(VOCABULARY) if len(tokens) == LENGTH else mixed(tokens)

        emitted = output_law(Ensemble(weight), target_logits, draft_law, PLAIN, **SIZE, told=True, continued=law_at)
        expected = np.zeros_like(emitted)
        for tokens in product(range(VOCABULARY), repeat=LENGTH + 1):
            expected[tokens] = np.prod([law_at(tokens[:index])[token] for index, token in enumerate(tokens)])
        assert total_variation(emitted, expected) <= 1e-12


def test_lenience_and_ensemble_of_one_are_the_exact_rule_and_say_so():
    for rule in (Lenience(1.0), Ensemble(1.0)):
        assert rule.lossless
        for place, pair in enumerate(PAIRS[:5]):
            emitted = output_law(rule, *pair, PLAIN, **SIZE, told=True)
            assert total_variation(emitted, plain_law_of(place)) <= 1e-12
    assert not Lenience(0.99).lossless
    assert not Ensemble(0.99).lossless


def test_typical_acceptance_of_the_toy_gives_the_law_of_the_draft():
    """All of the target is above .09, so everything is kept and the law is q."""
    emitted = first_token_law(TypicalAcceptance(), *same_everywhere([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]))
    assert emitted == pytest.approx([0.2, 0.3, 0.5])
    assert total_variation(emitted, [0.5, 0.3, 0.2]) == pytest.approx(0.3)


def test_typical_acceptance_has_the_law_that_is_kept_plus_what_is_replaced():
    """q(x) where it is kept, and the refused mass spread by p."""
    rule = TypicalAcceptance(0.3, 0.6)
    for pair in PAIRS:
        target, draft = law(pair[0](()), PLAIN), pair[1](())
        p, q = target.dense(VOCABULARY), draft.dense(VOCABULARY)
        kept = q * (p > rule.asked_for(target))
        assert first_token_law(rule, *pair) == pytest.approx(kept + (1 - kept.sum()) * p, abs=1e-12)


def test_lossy_rules_are_off():
    for rule in (Lenience(0.5), Ensemble(0.5), TypicalAcceptance()):
        assert not rule.lossless
        far = [
            total_variation(output_law(rule, *pair, PLAIN, **SIZE, told=True), plain_law_of(place))
            for place, pair in enumerate(PAIRS[:10])
        ]
        assert max(far) > 0.05
    assert not NaiveThreshold.lossless
