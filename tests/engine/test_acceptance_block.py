"""Block verification: which test decides, what it is made of, and what goes wrong if it ends at the first failure."""

from itertools import product

import numpy as np
import pytest

from engine.acceptance import BlockVerification, ExactRejection, residual
from engine.acceptance.exact import excess
from engine.sampling import Dense, Noise, OneHot, Rows, Sampling, Sparse
from engine.values import Draft
from tests.engine.oracle import BELOW_ONE, Draws, output_law, plain_law, rows_of, total_variation
from tests.engine.random_pairs import random_pair

PLAIN = Sampling(temperature=1)
P, Q = [1 / 3, 2 / 3], Dense(np.array([2 / 3, 1 / 3]))


def judge(tokens, draws, *, target_draw=0.5):
    """The verdict on tokens drafted from Q where the target says P at every position."""
    rows = Rows(np.log([P] * (len(tokens) + 1)), PLAIN)
    draft = Draft(tokens, (Q,) * len(tokens))
    return BlockVerification().judge(draft, rows, noise=Draws(draws, target_draw), start=0)


def test_tests_by_hand():
    """Tokens 0, 1: P_1 = (1/3) / (2/3) = 1/2, P_2 = min(1, 1/2 * 2) = 1; Z_1 = 0, as 1/2 * P lies below Q at both."""
    verdict = judge((0, 1), [0.5, 0.5])
    assert [test.accept_prob for test in verdict.tested] == pytest.approx([0.0, 1.0])
    assert verdict.n_accepted == 2
    # Tokens 1, 1: P_1 = 1, Z_1 = 1/3, and the last test passes for sure.
    first, last = judge((1, 1), [0.5, 0.5]).tested
    assert {term.name: term.value for term in first.terms} == pytest.approx({"left": 1 / 3, "joint_ratio": 1.0})
    assert (first.accept_prob, last.accept_prob) == pytest.approx((1.0, 1.0))


def test_last_test_that_passes_decides_wherever_the_others_fail():
    verdict = judge((0, 1), [BELOW_ONE, 0.0])
    assert [test.accepted for test in verdict.tested] == [True, True]
    assert verdict.tested[0].draw >= verdict.tested[0].accept_prob
    verdict = judge((0, 0), [BELOW_ONE, BELOW_ONE])
    assert [test.accepted for test in verdict.tested] == [False, False]
    assert len(verdict.tested) == 2  # those behind the refused one were tested, too


def test_replacement_comes_from_the_weighted_residual():
    rng = np.random.default_rng(3)
    for seed in range(30):
        target_logits, draft_law = random_pair(3, seed, zeros=0, draft="sampled", draft_sampling=PLAIN)
        tokens = tuple(int(token) for token in rng.integers(0, 3, 3))
        laws = tuple(draft_law(tokens[:index]) for index in range(3))
        rows = rows_of(target_logits, tokens, PLAIN)
        verdict = BlockVerification().judge(Draft(tokens, laws), rows, noise=Noise(seed), start=0)
        n_accepted = verdict.n_accepted
        if n_accepted == 3:
            assert verdict.law is rows.law(3)
            continue
        ratio = 1.0
        for index in range(n_accepted):
            ratio = min(1.0, ratio * rows.law(index).prob(tokens[index]) / laws[index].prob(tokens[index]))
        left = np.maximum(ratio * rows.law(n_accepted).dense(3) - laws[n_accepted].dense(3), 0)
        assert verdict.law.dense(3) == pytest.approx(left / left.sum(), abs=1e-12)
        assert verdict.law.prob(verdict.token) > 0


class EndsAtTheFirstFailure(BlockVerification):
    """The mistake that is easily made, and that a review asked for: vllm-project/vllm#11985."""

    def chances(self, draft, rows):
        right = super().chances(draft, rows)
        tests = BlockVerification().judge(draft, rows, noise=Draws([0.5] * len(draft.tokens), 0.5), start=0).tested
        passed, chances = 1.0, []
        for index, test in enumerate(tests):
            chances.append((passed * (1 - test.accept_prob), right[index][1]))
            passed *= test.accept_prob
        return [*chances, (passed, right[-1][1])]


def test_ending_at_the_first_failure_is_biased_so_the_enumeration_has_teeth():
    """The last test that passes decides (Sun et al., arXiv 2403.10444, Algorithm 2), and not the first that fails."""
    size = {"length": 3, "vocab_size": 3}
    far = []
    for seed in range(20):
        pair = random_pair(3, seed, zeros=0, draft="sampled", draft_sampling=PLAIN)
        emitted = output_law(EndsAtTheFirstFailure(), *pair, PLAIN, **size, told=True)
        far.append(total_variation(emitted, plain_law(pair[0], PLAIN, **size)))
    assert np.mean(far) > 0.1
    assert max(far) < 0.6


def test_greedy_is_exact_match():
    greedy = Rows(np.array([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), Sampling(temperature=0))
    for tokens in product(range(3), repeat=2):
        draft = Draft(tokens, tuple(OneHot(token) for token in tokens))
        block, exact = (
            rule.judge(draft, greedy, noise=Noise(1), start=0) for rule in (BlockVerification(), ExactRejection())
        )
        assert (block.n_accepted, block.token) == (exact.n_accepted, exact.token)
    sure = BlockVerification().judge(Draft((1, 0), (OneHot(1), OneHot(0))), greedy, noise=Noise(1), start=0)
    assert sure.tested[0].terms == ()  # 0 / (0 + 1 - 1) would be shown


def test_token_of_target_probability_0_is_never_kept_nor_any_behind_it():
    rows = Rows(np.array([[0.0, -np.inf, 0.0]] + [[0.0, 1.0, 2.0]] * 2), PLAIN)
    law = Dense(np.array([0.2, 0.5, 0.3]))
    verdict = BlockVerification().judge(Draft((1, 2), (law, law)), rows, noise=Draws([0.0, 0.0], 0.5), start=0)
    assert verdict.n_accepted == 0


def test_plain_step_takes_the_target_token():
    verdict = BlockVerification().judge(Draft(), Rows(np.log([[0.2, 0.8]]), PLAIN), noise=Draws((), 0.3), start=0)
    assert (verdict.tested, verdict.token) == ((), 1)


@pytest.mark.parametrize("weight", [0.3, 1.0])
@pytest.mark.parametrize(
    "draft", [Dense(np.array([0.1, 0.2, 0.3, 0.4])), OneHot(2), Sparse(np.array([1, 3]), np.array([0.4, 0.6]))]
)
@pytest.mark.parametrize(
    "target", [Dense(np.array([0.4, 0.3, 0.2, 0.1])), OneHot(1), Sparse(np.array([0, 3]), np.array([0.5, 0.5]))]
)
def test_excess_and_residual_with_a_weight_equal_their_definition(target, draft, weight):
    left = np.maximum(weight * target.dense(4) - draft.dense(4), 0)
    assert excess(target, draft, weight) == pytest.approx(left.sum(), abs=1e-12)
    if left.sum() > 0:
        found = residual(target, draft, weight)
        assert [found.prob(token) for token in range(4)] == pytest.approx(left / left.sum(), abs=1e-12)
