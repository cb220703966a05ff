"""The exact rule, held to its own definition by enumeration: the output law is the target's."""

import numpy as np
import pytest

from engine.acceptance import ExactRejection, residual
from engine.sampling import Dense, Noise, OneHot, Purpose, Rows, Sampling, Sparse, law
from engine.values import Draft
from tests.engine.oracle import BELOW_ONE, Draws, output_law, plain_law, total_variation
from tests.engine.random_pairs import random_pair

PLAIN = Sampling(temperature=1)
P, Q = np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.3, 0.1])


def rows(*probs, sampling=PLAIN):
    with np.errstate(divide="ignore"):
        return Rows(np.log(np.array(probs)), sampling)


def judge(draft_token, draft_law, target, *, draw, target_draw=0.5):
    """The verdict on a draft of one token, with a bonus row that is sure of token 0."""
    bonus = np.eye(len(target))[0]
    return ExactRejection().judge(
        Draft((draft_token,), (draft_law,)), rows(target, bonus), noise=Draws([draw], target_draw), start=0
    )


@pytest.mark.parametrize(("vocab_size", "length"), [(3, 1), (3, 2), (3, 3), (4, 1), (4, 2), (4, 3)])
@pytest.mark.parametrize("draft", ["sampled", "one-hot", "mixed"])
@pytest.mark.parametrize("zeros", [0, 1])
def test_output_law_equals_the_target_law(vocab_size, length, draft, zeros):
    pair = random_pair(vocab_size, length, zeros=zeros, draft=draft, draft_sampling=PLAIN)
    size = {"length": length, "vocab_size": vocab_size}
    law_of_output = output_law(ExactRejection(), *pair, PLAIN, **size)
    assert law_of_output.sum() == pytest.approx(1, abs=1e-12)
    assert total_variation(law_of_output, plain_law(pair[0], PLAIN, **size)) < 1e-12


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(temperature=0.4),
        Sampling(temperature=1.7),
        Sampling(temperature=0.8, top_k=2),
        Sampling(temperature=1, top_p=0.7),
        Sampling(temperature=1.3, top_k=3, top_p=0.85),
        Sampling(temperature=0),
    ],
    ids=str,
)
@pytest.mark.parametrize("filter_the_draft", [True, False])
def test_output_law_equals_the_processed_target_law(sampling, filter_the_draft):
    """Both sides filtered, or the target alone: exact as long as the law handed over is the one drawn from.

    Sources: huggingface/transformers#32867, #47932 (the law handed over was not the one drawn from).
    """
    draft_sampling = sampling if filter_the_draft else PLAIN
    pair = random_pair(4, 11, zeros=0, draft="sampled", draft_sampling=draft_sampling)
    size = {"length": 2, "vocab_size": 4}
    law_of_output = output_law(ExactRejection(), *pair, sampling, **size)
    assert total_variation(law_of_output, plain_law(pair[0], sampling, **size)) < 1e-12


@pytest.mark.parametrize(
    ("drawn", "handed_over", "bias"),
    [
        # jaymody/speculative-sampling#3: an argmax draft judged with its softmax
        (OneHot(0), Dense(Q), 1 / 3),
        # the temperature on one side only: drawn at 0.5, judged at 1
        (law(np.log(Q), Sampling(temperature=0.5)), Dense(Q), 0.152),
        (Dense(Q), Dense(Q), 0.0),
        (OneHot(0), OneHot(0), 0.0),
        # drawn from the softmax, judged as one-hot: lossless for the token itself
        (Dense(Q), None, 0.0),
    ],
    ids=["softmax for argmax", "temperature on one side", "right", "one-hot", "one-hot for sampled"],
)
def test_law_handed_over_must_be_the_law_drawn_from(drawn, handed_over, bias):
    """The published mistakes show as the bias that the mathematics predicts, so the test above has teeth."""
    output = np.zeros(3)
    for token, weight in enumerate(drawn.dense(3)):
        if weight:
            laws = handed_over or OneHot(token)
            kept = judge(token, laws, P, draw=0.0).tested[0].accept_prob
            output[token] += weight * kept
            output += weight * (1 - kept) * residual(Dense(P), laws).dense(3)
    assert total_variation(output, P) == pytest.approx(bias, abs=6e-4)


def test_rejected_token_is_replaced_from_the_residual():
    verdict = judge(0, Dense(Q), P, draw=0.84, target_draw=0.001)  # 0.5 / 0.6 = 0.8333
    assert not verdict.tested[0].accepted
    assert verdict.token == 2  # the residual (0, 0, 1)


@pytest.mark.parametrize("token", [0, 1, 2])
def test_reported_acceptance_probability_is_where_the_verdict_flips(token):
    probability = judge(token, Dense(Q), P, draw=0.5).tested[0].accept_prob
    assert probability == pytest.approx(min(1, P[token] / Q[token]))
    assert judge(token, Dense(Q), P, draw=probability * (1 - 1e-12)).tested[0].accepted
    if probability < 1:
        assert not judge(token, Dense(Q), P, draw=probability * (1 + 1e-12)).tested[0].accepted


def test_one_position_toy_has_the_values_of_the_formulas():
    """Leviathan et al., arXiv 2211.17192: alpha is .5 + .3 + .1 (theorem 3.5), max(0, target - draft) is (0, 0, .1)."""
    alpha = sum(q * judge(token, Dense(Q), P, draw=0.5).tested[0].accept_prob for token, q in enumerate(Q))
    assert alpha == pytest.approx(0.9)
    assert residual(Dense(P), Dense(Q)).dense(3).tolist() == [0, 0, 1]


def test_test_is_strict_so_a_token_of_target_probability_0_is_never_kept():
    """`draw * q <= p` would keep it for a draw of 0, with p = 0 on both sides."""
    for draw in (0.0, 5e-324, 0.5):
        verdict = judge(2, Dense(Q), [0.5, 0.5, 0.0], draw=draw)
        assert not verdict.tested[0].accepted
        assert verdict.token == 1


def test_identical_laws_always_accept():
    rng = np.random.default_rng(0)
    for row in rng.dirichlet(np.ones(50), size=40):
        shared = law(np.log(row), PLAIN)
        for token in range(50):
            assert BELOW_ONE * shared.prob(token) < shared.prob(token)
            assert judge(token, Dense(row), row, draw=0.99).tested[0].accepted


def test_disjoint_supports_never_accept():
    for draw in (0.0, 0.3, BELOW_ONE):
        for target_draw in (0.0, 0.5, BELOW_ONE):
            verdict = judge(3, Dense(np.array([0, 0, 0.5, 0.5])), [0.5, 0.5, 0, 0], draw=draw, target_draw=target_draw)
            assert verdict.n_accepted == 0
            assert verdict.token in (0, 1)


def test_replacement_uses_the_row_of_the_rejected_position():
    """The most frequent bug: an index off by one in the residual."""
    sure = np.eye(4)
    draft = Draft((0, 1, 2), (OneHot(0), OneHot(1), OneHot(2)))
    for n_accepted in range(4):
        target = [sure[token if token < n_accepted else 3] for token in range(3)]
        verdict = ExactRejection().judge(draft, rows(*target, sure[3]), noise=Noise(0), start=9)
        assert (verdict.n_accepted, verdict.token) == (n_accepted, 3)
        assert len(verdict.tested) == min(n_accepted + 1, 3)


def test_bonus_comes_from_the_row_behind_the_draft():
    verdict = ExactRejection().judge(Draft(), rows([0.2, 0.8]), noise=Draws((), 0.3), start=0)
    assert (verdict.tested, verdict.token) == ((), 1)
    verdict = judge(1, OneHot(1), [0.0, 1.0, 0.0], draw=0.9)
    assert (verdict.n_accepted, verdict.token) == (1, 0)


def test_a_position_uses_its_own_draws_and_no_other():
    """The uniform number of a test must not be used for the replacement: it says which token was refused."""
    asked = []

    class Recording:
        def uniform(self, position, purpose):
            asked.append((position, purpose))
            return 0.9 if position == 21 else 0.0

        def draw(self, law, position, purpose):
            return law.draw(self.uniform(position, purpose))

    draft = Draft((0, 0, 0), (Dense(Q),) * 3)
    ExactRejection().judge(draft, rows(P, P, P, P), noise=Recording(), start=20)
    assert asked == [(20, Purpose.ACCEPT), (21, Purpose.ACCEPT), (21, Purpose.TARGET)]


@pytest.mark.parametrize("draft", [Dense(P), Dense(P + 1e-14)], ids=["equal", "equal but for rounding"])
def test_residual_with_nothing_left_is_the_target_row(draft):
    """0 / 0 elsewhere: vllm-project/vllm#2336."""
    target = Dense(P)
    assert residual(target, draft) is target


def test_residual_that_is_small_but_real_is_not_rounded_away():
    close = residual(Dense(P), Dense(P + np.array([1e-9, -1e-9, 0])))
    assert close.dense(3).tolist() == [0, 1, 0]


def test_residual_of_a_draft_that_is_sure_is_the_target_without_that_token():
    assert residual(Dense(P), OneHot(0)).dense(3) == pytest.approx([0, 0.6, 0.4])
    assert P.tolist() == [0.5, 0.3, 0.2]  # the target's row is not written to


def test_residual_of_a_sure_target_is_that_target():
    assert residual(OneHot(2), Dense(Q)) == OneHot(2)
    assert residual(OneHot(2), OneHot(1)) == OneHot(2)


def test_greedy_is_exact_match_with_the_same_rule():
    greedy = Sampling(temperature=0)
    target = Rows(np.array([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0]]), greedy)
    for token in range(3):
        verdict = ExactRejection().judge(Draft((token,), (OneHot(token),)), target, noise=Noise(3), start=0)
        assert verdict.n_accepted == (token == 1)
        assert verdict.token == (0 if token == 1 else 1)


def test_tokens_and_laws_must_pair_up():
    with pytest.raises(ValueError, match="zip"):
        ExactRejection().judge(Draft((0, 1), (OneHot(0),)), rows(P, P, P), noise=Draws([0.0], 0.5), start=0)


FEW = Sparse(np.array([1, 3]), np.array([0.25, 0.75]))


@pytest.mark.parametrize(
    "target", [Dense(np.array([0.1, 0.2, 0.3, 0.4])), OneHot(2), Sparse(np.array([0, 3]), P[:2] / 0.8)]
)
def test_law_over_a_few_tokens_leaves_the_same_residual_as_its_row(target):
    expected = residual(Dense(target.dense(4)), Dense(FEW.dense(4))).dense(4)
    np.testing.assert_allclose(residual(target, FEW).dense(4), expected)


@pytest.mark.parametrize("draft", [Dense(Q), OneHot(4), FEW])
def test_target_law_over_a_few_tokens_has_a_residual(draft):
    few = Sparse(np.array([0, 2]), np.array([0.5, 0.5]))
    n = 3 if isinstance(draft, Dense) else 5
    expected = residual(Dense(few.dense(n)), Dense(draft.dense(n))).dense(n)
    found = residual(few, draft).dense(n)
    np.testing.assert_allclose(found, expected[: len(found)])


def test_law_over_a_few_tokens_draws_as_its_row_does():
    for uniform in np.linspace(0, 0.999, 40):
        assert FEW.draw(uniform) == Dense(FEW.dense(5)).draw(uniform)
    assert [FEW.prob(token) for token in range(5)] == FEW.dense(5).tolist()
    assert Sparse.over(np.array([4, 7]), OneHot(1)) == OneHot(7)
