"""The naive rule does what it states, and what it states is not lossless (docs/rules.md, docs/design.md)."""

import math

import numpy as np
import pytest

from engine.acceptance import ExactRejection, NaiveThreshold
from engine.errors import DraftError, SettingError
from engine.sampling import Noise, OneHot, Rows, Sampling
from engine.values import Draft
from tests.engine.oracle import Draws, preimages, total_variation

PLAIN = Sampling(temperature=1)
# case: target p, draft q, exp(draft logit - target logit), kept?, exact probability for a sampled and an argmax draft
CASES = {
    "A": ([0.5, 0.3, 0.2], [0.6, 0.3, 0.1], 1.2, True, 0.833, 0.5),
    "B target prefers the guess": ([0.9, 0.06, 0.04], [0.5, 0.3, 0.2], 0.556, False, 1.0, 0.9),
    "C target refuses the guess": ([0.01, 0.6, 0.39], [0.9, 0.06, 0.04], 90.0, True, 0.011, 0.01),
}


def judge(target_logits, draft_logits, *, rule=None, draw=0.5):
    """The verdict on the draft's argmax; the row behind it is sure of token 0."""
    target_logits, guess = np.asarray(target_logits, float), int(np.argmax(draft_logits))
    draft = Draft((guess,), (OneHot(guess),), (float(draft_logits[guess]),))
    behind = np.where(np.arange(len(target_logits)) == 0, 0.0, -np.inf)
    rows = Rows(np.array([target_logits, behind]), PLAIN)
    return (rule or NaiveThreshold(0.1)).judge(draft, rows, noise=Draws((), draw), start=3)


@pytest.mark.parametrize(("p", "q", "quotient", "kept", "exact", "exact_one_hot"), CASES.values(), ids=CASES)
def test_worked_case(p, q, quotient, kept, exact, exact_one_hot):
    verdict = judge(np.log(p), np.log(q))
    guess = int(np.argmax(q))
    assert math.exp(math.log(q[guess]) - math.log(p[guess])) == pytest.approx(quotient, abs=5e-3 * quotient)
    assert verdict.n_accepted == kept
    assert verdict.tested[0].accept_prob == float(kept)
    assert verdict.tested[0].draw is None
    rows = Rows(np.log([p, p]), PLAIN)
    one_hot = ExactRejection().judge(Draft((guess,), (OneHot(guess),)), rows, noise=Noise(0), start=0)
    assert min(1, p[guess] / q[guess]) == pytest.approx(exact, abs=5e-4)
    assert one_hot.tested[0].accept_prob == pytest.approx(exact_one_hot)


@pytest.mark.parametrize(
    ("case", "bias"), [("A", 0.5), ("B target prefers the guess", 0), ("C target refuses the guess", 0.99)]
)
def test_output_law_of_the_worked_cases_is_off_by_as_much_as_stated(case, bias):
    p, q, *_ = CASES[case]
    output = np.zeros(3)
    for token, share in preimages(lambda draw: first_token(judge(np.log(p), np.log(q), draw=draw), q)).items():
        output[token] += share
    assert total_variation(output, p) == pytest.approx(bias, abs=1e-9)


def first_token(verdict, q):
    return int(np.argmax(q)) if verdict.n_accepted else verdict.token


@pytest.mark.parametrize("probability", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_identical_models_never_accept_anything(probability):
    rng = np.random.default_rng(1)
    for logits in rng.normal(0, 2, (25, 8)):
        assert judge(logits, logits, rule=NaiveThreshold(probability)).n_accepted == 0


@pytest.mark.parametrize(
    ("shift", "quotient", "kept"), [(-1, 3.26, True), (0, 1.2, True), (1, 0.441, False), (5, 0.008, False)]
)
def test_constant_added_to_the_target_logits_flips_the_decision_and_changes_no_law(shift, quotient, kept):
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.3, 0.1])
    verdict = judge(np.log(p) + shift, np.log(q))
    assert math.exp(np.log(q[0]) - np.log(p[0]) - shift) == pytest.approx(quotient, abs=2e-3)
    assert verdict.n_accepted == kept
    assert verdict.tested[0].target_prob == pytest.approx(0.5)


def test_rule_is_not_right_for_greedy_either():
    """Target (1, 2, 0), draft (3, 1, 0): token 0 is kept although the target's argmax is 1."""
    assert judge([1, 2, 0], [3, 1, 0]).n_accepted == 1


@pytest.mark.parametrize(("probability", "threshold"), [(0, 1), (0.1, 1 / 0.9), (0.5, 2), (0.9, 10), (0.99, 100)])
def test_threshold_is_one_over_one_minus_p(probability, threshold):
    rule = NaiveThreshold(probability)
    assert rule.accepts(math.log(threshold) + 1e-9, 0.0)
    assert not rule.accepts(math.log(threshold) - 1e-9, 0.0)


def test_larger_acceptance_probability_accepts_less():
    rng = np.random.default_rng(2)
    pairs = rng.normal(0, 2, (500, 2))
    kept = [sum(NaiveThreshold(probability).accepts(*pair) for pair in pairs) for probability in np.arange(0, 1, 0.1)]
    assert kept == sorted(kept, reverse=True)
    assert kept[0] > kept[-1] > 0


def test_huge_logits_do_not_overflow():
    assert NaiveThreshold(0.1).accepts(1e300, -1e300)
    assert not NaiveThreshold(0.1).accepts(-math.inf, -math.inf)


def test_refused_token_is_replaced_from_the_whole_target_law_at_its_own_position():
    target = Rows(np.log([[0.5, 0.5], [0.25, 0.75], [0.9, 0.1]]), PLAIN)
    draft = Draft((0, 1, 1), (OneHot(0), OneHot(1), OneHot(1)), (9.0, -9.0, 9.0))
    for draw, token in ((0.2, 0), (0.3, 1)):
        verdict = NaiveThreshold(0.1).judge(draft, Rows(np.log([[0.5, 0.5], [0.25, 0.75], [1, 1], [1, 1]]), PLAIN),
                                            noise=Draws((), draw), start=0)  # fmt: skip
        assert (verdict.n_accepted, len(verdict.tested), verdict.token) == (1, 2, token)
    assert NaiveThreshold(0.1).judge(draft.cut(1), target, noise=Draws((), 0.3), start=0).n_accepted == 1


def test_draft_without_logits_cannot_be_judged():
    rows = Rows(np.zeros((2, 3)), PLAIN)
    with pytest.raises(DraftError, match="choose a model as the drafter, or the exact rule"):
        NaiveThreshold().judge(Draft((1,), (OneHot(1),)), rows, noise=Noise(0), start=0)


def test_plain_step_needs_no_logits():
    verdict = NaiveThreshold().judge(Draft(), Rows(np.log([[0.2, 0.8]]), PLAIN), noise=Draws((), 0.5), start=0)
    assert (verdict.tested, verdict.token) == ((), 1)


@pytest.mark.parametrize("probability", [-0.1, 1, 1.5, math.nan, math.inf])
def test_acceptance_probability_out_of_range_is_refused(probability):
    with pytest.raises(SettingError, match="acceptance_probability"):
        NaiveThreshold(probability)


def test_rule_says_that_it_is_lossy():
    assert not NaiveThreshold.lossless
    assert NaiveThreshold.greedy_draft
    assert ExactRejection.lossless
    assert not ExactRejection.greedy_draft
