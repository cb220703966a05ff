"""The enumeration of a step: against an oracle that measures `judge`, and against worked cases of the literature."""

from itertools import pairwise

import numpy as np
import pytest

from engine.errors import DraftError, SettingError
from engine.lab.cases import CASES, CHAIN_RULES
from engine.lab.enumerate import PROPOSALS, enumerate_step
from engine.lab.lossless import lossless
from engine.lab.small_pair import SmallPair
from engine.rules import RULES
from engine.sampling import Sampling, law
from engine.spec import RunSpec
from tests.engine.oracle import output_law, plain_law
from tests.engine.toys import random_model

PLAIN = Sampling(temperature=1)
MADE = {name: make(RunSpec()) for name, make in RULES.items()}
SMALL = {"length": 2, "vocab_size": 3}


def rows_of(seed, vocab_size=3):
    model = random_model(seed, vocab_size)
    return lambda tokens: model.logits([0, *tokens])[0]


def wanted(rule, row_of):
    """The draft's law as the driver would have it drawn for a rule."""
    return lambda tokens: law(row_of(tokens), Sampling(temperature=0) if rule.greedy_draft else PLAIN)


@pytest.mark.parametrize("name", [name for name in MADE if MADE[name].needs != "draft logits" and name != "gumbel"])
def test_output_is_what_judging_every_draw_gives(name):
    rule, target, draft = MADE[name], rows_of(1), rows_of(2)
    step = enumerate_step(rule, target, draft, draft_length=2)
    measured = output_law(rule, target, wanted(rule, draft), PLAIN, **SMALL)
    assert np.abs(step.output - measured).max() < 1e-9
    assert np.abs(step.target - plain_law(target, PLAIN, **SMALL)).max() < 1e-14


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", [name for name in MADE if MADE[name].lossless])
def test_lossless_rules_are_at_no_distance(name, seed):
    rule, target, draft = MADE[name], rows_of(seed), rows_of(100 + seed)
    for proposal in ("sampled", "argmax", "sampled, one-hot handed over"):
        step = enumerate_step(rule, target, draft, draft_length=3, proposal=proposal)
        assert step.distance(4) <= 1e-12
        assert sum(step.kept) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", MADE)
def test_distances_rise_with_the_number_of_tokens_and_figures_agree(name):
    step = enumerate_step(MADE[name], rows_of(5), rows_of(6), draft_length=3)
    distances = [step.distance(n) for n in range(1, 5)]
    assert all(low <= high + 1e-15 for low, high in pairwise(distances))
    assert step.expected_accepted == pytest.approx(sum(step.survival), abs=1e-14)
    assert step.output.sum() == pytest.approx(1, abs=1e-12)
    reached = 1.0
    for survival, conditional in zip(step.survival, step.conditional, strict=True):
        assert survival == pytest.approx(reached * (conditional or 0.0), abs=1e-14)
        reached = survival


def test_a_step_without_a_draft_is_the_target():
    step = enumerate_step(MADE["naive"], rows_of(5), rows_of(6), draft_length=0)
    assert (step.distance(1), step.kept, step.survival) == (0.0, (1.0,), ())


def test_temperature_zero_gives_the_argmax():
    step = enumerate_step(MADE["exact"], rows_of(5), rows_of(6), draft_length=2, sampling=Sampling(temperature=0))
    assert step.output.max() == 1.0
    assert step.distance(3) == 0.0


def test_what_is_handed_over_makes_no_difference_to_a_rule_that_needs_no_law():
    for name in ("sample-match", "gumbel", "typical", "naive"):
        told, not_told = (
            enumerate_step(MADE[name], rows_of(8), rows_of(9), draft_length=2, proposal=proposal)
            for proposal in ("argmax, softmax handed over", "argmax")
        )
        assert np.array_equal(told.output, not_told.output)


def test_softmax_of_an_argmax_draft_is_off_by_a_third():
    pair = SmallPair((0.5, 0.3, 0.2), (0.6, 0.3, 0.1))
    found = lossless(RunSpec(), pair, proposal="argmax, softmax handed over")
    assert found.step.beginning(1)[0] == pytest.approx([5 / 6, 0, 1 / 6], abs=1e-12)
    assert not found.same
    assert "told another law" in found.sentence


WORKED = {  # distance of the first token, accepted tokens
    "Exact rule": (0.0, 0.9),
    "Bug: softmax of an argmax draft": (1 / 3, 5 / 6),
    "Argmax draft, told as it is": (0.0, 0.5),
    "Drawn, but told as certain": (0.0, 0.41),
    "Two thirds, two tokens": (0.0, 10 / 9),
    "Two thirds, by block verification": (0.0, 11 / 9),
    "Three drafted, by block verification": (0.0, 2.074),
    "Sample-match": (0.0, 0.41),
    "Gumbel-coupled sample-match": (0.0, 48 / 55),
    "Lenience 0.5": (0.2, 0.9),
    "Ensemble, weight 0.8": (0.06, 0.76),
    "Typical acceptance of a drawn draft": (0.3, 1.0),
    "Naive rule, case A": (0.5, 1.0),
    "Naive rule, case B: the target likes it": (0.0, 0.0),
    "Naive rule, case C: the target refuses it": (0.99, 1.0),
    "Naive rule, identical models": (0.0, 0.0),
    "Naive rule, logits shifted": (0.0, 0.0),
}


@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
def test_worked_cases_come_out_as_they_are_told(case):
    distance, accepted = WORKED[case.title]
    found = lossless(case.spec, case.pair, draft_length=case.draft_length, proposal=case.proposal)
    figures = {figure.name: figure.value for figure in found.figures}
    assert figures["distance_first"] == pytest.approx(distance, abs=1e-12)
    assert figures["expected_accepted"] == pytest.approx(accepted, abs=1e-9)
    assert figures["tokens_per_step"] == pytest.approx(accepted + 1, abs=1e-9)
    assert found.same == (figures["distance_all"] == 0)


def test_there_is_a_worked_case_of_every_rule_for_chains():
    assert {case.rule for case in CASES} == set(CHAIN_RULES) < set(RULES)
    assert {case.proposal for case in CASES} == set(PROPOSALS)
    assert {case.title for case in CASES} == set(WORKED)


def test_numbers_of_the_exact_rule_beside_block_verification():
    case = next(case for case in CASES if case.title == "Three drafted, by block verification")
    assert lossless(RunSpec(), case.pair, draft_length=3).step.expected_accepted == pytest.approx(1.952, abs=1e-9)


def test_the_shift_of_logits_changes_no_law_but_the_naive_rules_mind():
    pair = SmallPair((0.5, 0.3, 0.2), (0.6, 0.3, 0.1))
    shifted = SmallPair(pair.target, pair.draft, target_shift=1.0)
    exact = [lossless(RunSpec(), one).step.output for one in (pair, shifted)]
    assert np.abs(exact[0] - exact[1]).max() < 1e-15
    accepted = [lossless(RunSpec(rule="naive"), one).step.expected_accepted for one in (pair, shifted)]
    assert accepted == [1.0, 0.0]


def test_a_token_of_probability_zero_never_comes_out():
    pair = SmallPair((0.6, 0.4, 0.0), (0.2, 0.2, 0.6))
    for name, rule in MADE.items():
        if rule.lossless:
            assert lossless(RunSpec(rule=name), pair, draft_length=2).step.output[2].sum() == 0.0


@pytest.mark.parametrize(
    ("options", "words"),
    [({"draft_length": 4}, "goes up to 3"), ({"draft_length": 1, "proposal": "guessed"}, "choose one of: sampled")],
)
def test_what_cannot_be_enumerated_is_told(options, words):
    with pytest.raises(SettingError, match=words):
        enumerate_step(MADE["exact"], rows_of(1), rows_of(2), **options)


@pytest.mark.parametrize(
    ("target", "draft", "words"),
    [
        ((1.0,), (1.0,), "2 to 5 are enumerated"),
        ((1.0,) * 6, (1.0,) * 6, "2 to 5 are enumerated"),
        ((0.5, 0.5), (0.2, 0.3, 0.5), "both need the same"),
        ((0.5, -0.5), (0.5, 0.5), "none may be negative"),
        ((0.0, 0.0), (0.5, 0.5), "not all 0"),
        ((0.5, float("nan")), (0.5, 0.5), "none may be negative"),
    ],
)
def test_laws_that_are_none_are_told(target, draft, words):
    with pytest.raises(SettingError, match=words):
        SmallPair(target, draft)


def test_a_rule_that_cannot_judge_says_so():
    class Blind:
        needs, greedy_draft = "draft law", False

        def chances(self, draft, rows):
            raise DraftError("no such draft")

    with pytest.raises(DraftError, match="no such draft"):
        enumerate_step(Blind(), rows_of(1), rows_of(2), draft_length=1)


def test_pairs_keep_their_laws_when_tokens_come_and_go():
    pair = SmallPair((0.5, 0.3, 0.2), (0.6, 0.3, 0.1))
    assert pair.resized(2).target == pytest.approx((0.625, 0.375))
    assert pair.resized(5).resized(3).target == pytest.approx(pair.target)
    assert SmallPair((0.0, 0.0, 1.0), (1.0, 1.0, 1.0)).resized(2).target == (0.5, 0.5)
