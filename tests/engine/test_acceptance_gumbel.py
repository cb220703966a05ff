"""Gumbel numbers that draft and target share: the law of what is drawn, and how often both draw the same."""

import math
from collections import Counter
from functools import cache
from itertools import product

import numpy as np
import pytest

from engine.acceptance import GumbelMatch, SampleMatch
from engine.acceptance.coupling import keep_probability, law_beside
from engine.build import build
from engine.gumbels import KEPT, SHARED, SharedGumbels
from engine.laws import total_variation
from engine.metrics import measure
from engine.sampling import Dense, Noise, OneHot, Purpose, Rows, Sampling, Sparse
from engine.spec import RunSpec
from engine.values import Draft

PLAIN = Sampling(temperature=1)
TARGET, DRAFT = Dense(np.array([0.5, 0.3, 0.2, 0.0])), Dense(np.array([0.1, 0.3, 0.35, 0.25]))
N_DRAWS = 10_000


@cache
def drawn_together():
    """The tokens that target and draft draw, position by position."""
    noise = SharedGumbels(5)
    return [
        (noise.draw(TARGET, place, Purpose.TARGET), noise.draw(DRAFT, place, Purpose.DRAFT)) for place in range(N_DRAWS)
    ]


def chi_squared(counts, probs, n):
    return sum((counts[key] - n * prob) ** 2 / (n * prob) for key, prob in probs.items() if prob)


# ---- the draws ----


def test_draws_have_the_law_that_they_are_drawn_from():
    """The 0.999 quantile of chi-squared is 13.8 for two degrees of freedom and 16.3 for three."""
    for side, law, bound in ((0, TARGET, 13.8), (1, DRAFT, 16.3)):
        counts = Counter(pair[side] for pair in drawn_together())
        assert chi_squared(counts, dict(enumerate(law.probs)), N_DRAWS) < bound
    assert all(target != 3 for target, _ in drawn_together())  # its probability is 0


def test_joint_draws_have_the_closed_form():
    """At most 11 pairs of tokens are possible; the 0.999 quantile of chi-squared for 10 degrees of freedom is 29.6."""
    joint = {
        (target, token): DRAFT.probs[token] * law_beside(TARGET, DRAFT, token).prob(target)
        for target, token in product(range(4), repeat=2)
    }
    assert sum(joint.values()) == pytest.approx(1, abs=1e-12)
    counts = Counter(drawn_together())
    assert all(joint[pair] > 0 for pair in counts)
    assert chi_squared(counts, joint, N_DRAWS) < 29.6


def match_probability(target, draft):
    """The probability that target and draft draw the same token."""
    return sum(draft.prob(token) * keep_probability(target, draft, token) for token in range(6) if draft.prob(token))


def test_match_probability_is_that_of_the_paper_and_of_the_draws():
    p, q = TARGET.probs, DRAFT.probs
    closed = sum(1 / sum(max(p[y] / p[x], q[y] / q[x]) for y in range(4)) for x in range(4) if p[x] > 0 and q[x] > 0)
    matches = np.mean([target == token for target, token in drawn_together()])
    assert match_probability(TARGET, DRAFT) == pytest.approx(closed, abs=1e-12)
    assert matches == pytest.approx(closed, abs=3.3 * math.sqrt(closed * (1 - closed) / N_DRAWS))


def test_match_probability_lies_between_its_bound_and_that_of_the_exact_rule():
    rng = np.random.default_rng(4)
    for p, q in zip(rng.dirichlet(np.full(6, 0.4), 200), rng.dirichlet(np.full(6, 0.4), 200), strict=True):
        target, draft = Dense(p), Dense(q)
        apart = total_variation(target, draft)
        matches = match_probability(target, draft)
        assert (1 - apart) / (1 + apart) - 1e-12 <= matches <= 1 - apart + 1e-12
        beside = sum(q[token] * law_beside(target, draft, token).dense(6) for token in range(6))
        assert beside == pytest.approx(p, abs=1e-12)
        for token in range(6):
            assert law_beside(target, draft, token).prob(token) == pytest.approx(
                keep_probability(target, draft, token), abs=1e-12
            )


@pytest.mark.parametrize(
    ("target", "draft", "same"),
    [
        (TARGET, TARGET, 1.0),
        (TARGET, OneHot(0), 0.5),
        (OneHot(1), DRAFT, 0.3),
        (OneHot(1), OneHot(2), 0.0),
        (TARGET, Sparse(np.array([0, 1, 2]), np.array([0.5, 0.3, 0.2])), 1.0),
        (TARGET, Sparse(np.array([3]), np.array([1.0])), 0.0),
        (Sparse(np.array([3]), np.array([1.0])), Sparse(np.array([1, 3]), np.array([0.5, 0.5])), 0.5),
        (Dense(np.array([1.0, 1e-200])), Dense(np.array([0.0, 1.0])), 0.0),
    ],
)
def test_match_of_laws_of_every_kind(target, draft, same):
    assert match_probability(target, draft) == pytest.approx(same, abs=1e-12)
    for token in range(5):
        if draft.prob(token) > 0:
            beside = law_beside(target, draft, token)
            assert beside.prob(token) == pytest.approx(keep_probability(target, draft, token), abs=1e-12)
            assert sum(beside.prob(other) for other in range(5)) == pytest.approx(1, abs=1e-12)


def test_numbers_do_not_depend_on_what_was_asked_before():
    asked, fresh = SharedGumbels(9), SharedGumbels(9)
    for place in range(2 * KEPT):
        asked.draw(TARGET, place, Purpose.DRAFT)
    few, many = Dense(np.full(3, 1 / 3)), Dense(np.full(700, 1 / 700))
    for place in (0, KEPT, 2 * KEPT - 1):
        asked.draw(few, place, Purpose.DRAFT)
        assert asked.draw(many, place, Purpose.TARGET) == fresh.draw(many, place, Purpose.TARGET)
        assert asked.gumbel(2, place) == fresh.gumbel(2, place) == SharedGumbels(9).gumbel(2, place)
    assert len(asked._kept) == KEPT
    assert asked.uniform(4, Purpose.ACCEPT) == Noise(9).uniform(4, Purpose.ACCEPT)


@pytest.mark.parametrize("draft_length", [1, 4, 8, 16, 32])
def test_numbers_of_a_position_are_made_once(monkeypatch, draft_length):
    """Draft and target share them, and so do all steps that draft the position."""
    made, philox = Counter(), np.random.Philox

    def counted(*, key, counter):
        if counter[2] == SHARED:
            made[counter[1]] += 1
        return philox(key=key, counter=counter)

    monkeypatch.setattr(np.random, "Philox", counted)
    spec = RunSpec(prompt="The draft model", rule="gumbel", draft_length=draft_length, max_tokens=60, agreement=0.5)
    assert measure(build(spec).events()).rejected > 0
    assert len(made) >= 60
    assert set(made.values()) == {1}


def test_target_draws_once_at_a_position(monkeypatch):
    asked, draw = Counter(), SharedGumbels.draw

    def counted(self, law, position, purpose, place=0):
        asked[purpose, position] += 1
        return draw(self, law, position, purpose, place)

    monkeypatch.setattr(SharedGumbels, "draw", counted)
    noise = SharedGumbels(21)
    tokens = tuple(noise.draw(TARGET, position, Purpose.DRAFT) for position in range(5))
    verdict = GumbelMatch().judge(Draft(tokens, (TARGET,) * 5), rows(*[TARGET.probs] * 6), noise=noise, start=0)
    assert verdict.n_accepted == 5
    assert asked == {
        (purpose, place): 1 for purpose, n in ((Purpose.DRAFT, 5), (Purpose.TARGET, 6)) for place in range(n)
    }


def test_draw_is_the_largest_score():
    noise = SharedGumbels(3)
    for place in range(50):
        scores = [noise.score(TARGET, token, place) for token in range(4)]
        assert scores[3] == -math.inf
        assert noise.draw(TARGET, place, Purpose.TARGET) == int(np.argmax(scores))
        few = Sparse(np.array([0, 1, 2]), TARGET.probs[:3])
        assert noise.draw(few, place, Purpose.DRAFT) == int(np.argmax(scores))
        assert noise.score(few, 1, place) == scores[1]
    assert noise.draw(OneHot(2), 0, Purpose.TARGET) == 2


# ---- the rule ----


def rows(*probs):
    with np.errstate(divide="ignore"):
        return Rows(np.log(np.array(probs)), PLAIN)


def test_chances_are_what_judge_does_with_shared_numbers():
    """Two tokens drafted from their laws; how often each number of them is kept, given the draft."""
    noise, rule = SharedGumbels(21), GumbelMatch()
    target, laws = rows(TARGET.probs, TARGET.probs, DRAFT.probs), (DRAFT, DRAFT)
    n_steps, expected, done = 1500, Counter(), Counter()
    for step in range(n_steps):
        start = 3 * step
        tokens = tuple(noise.draw(law, start + index, Purpose.DRAFT) for index, law in enumerate(laws))
        draft = Draft(tokens, laws)
        verdict = rule.judge(draft, target, noise=noise, start=start)
        done[verdict.n_accepted, verdict.token] += 1
        for n_accepted, (chance, law) in enumerate(rule.chances(draft, target)):
            for token in range(4):
                expected[n_accepted, token] += chance * law.prob(token)
    assert sum(expected.values()) == pytest.approx(n_steps)
    probs = {key: value / n_steps for key, value in expected.items()}
    assert chi_squared(done, probs, n_steps) < 31.3  # 0.999 of chi-squared(11); its variance here is smaller still


def test_test_of_a_token_tells_how_probable_a_match_was_and_who_won():
    noise, draft = SharedGumbels(2), Draft((1,), (DRAFT,))
    tested = GumbelMatch().judge(draft, rows(TARGET.probs, TARGET.probs), noise=noise, start=7).tested[0]
    assert tested.accept_prob == pytest.approx(keep_probability(TARGET, DRAFT, 1))
    assert tested.draw is None
    terms = {term.name: term.value for term in tested.terms}
    assert terms["score"] == pytest.approx(math.log(0.3) + terms["gumbel"])
    assert terms["largest"] == max(noise.score(TARGET, token, 7) for token in range(3))
    assert tested.accepted == (terms["score"] == terms["largest"])
    refused = GumbelMatch().judge(Draft((3,), (DRAFT,)), rows(TARGET.probs, TARGET.probs), noise=noise, start=7)
    assert {term.name: term.value for term in refused.tested[0].terms}["score"] is None
    assert not refused.tested[0].accepted


def test_at_temperature_0_there_is_no_race():
    greedy = Rows(np.array([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0]]), Sampling(temperature=0))
    for token in range(3):
        verdict = GumbelMatch().judge(Draft((token,), (OneHot(token),)), greedy, noise=SharedGumbels(3), start=0)
        assert (verdict.n_accepted, verdict.token) == ((1, 0) if token == 1 else (0, 1))
        assert verdict.tested[0].terms == ()


def test_without_shared_numbers_it_is_sample_match():
    draft, target = Draft((0, 2), (OneHot(0), OneHot(2))), rows(TARGET.probs, TARGET.probs, TARGET.probs)
    for seed in range(20):
        plain, coupled = (
            rule.judge(draft, target, noise=Noise(seed), start=4) for rule in (SampleMatch(), GumbelMatch())
        )
        assert (plain.n_accepted, plain.token) == (coupled.n_accepted, coupled.token)
        assert [test.accept_prob for test in plain.tested] == [test.accept_prob for test in coupled.tested]
