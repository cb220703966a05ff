"""The arithmetic of whole numbers: its stated bound, a slow counterpart, and exactness for its own law."""

import math

import numpy as np
import pytest

from engine.acceptance import ExactRejection
from engine.decode import decode
from engine.drafters import ModelDrafter, NoDraft
from engine.sampling import Dense, Sampling, law, log_probability
from engine.sampling.integer import RELATIVE, UNIT, error_bound, exponentials, log_sum_exp
from engine.values import Step
from tests.engine.oracle import output_law, plain_law, slow_integer_weights, slow_law, total_variation
from tests.engine.test_acceptance_exact import random_pair
from tests.engine.toys import random_model

INTEGER = Sampling(temperature=1, arithmetic="integer")
BELOW = 1 - 2**-24


def rows_of_scores():
    """Rows of all sizes, spreads and kinds, extremes among them, as (row, temperature)."""
    rng = np.random.default_rng(11)
    for size in (1, 2, 7, 300, 49_152):
        for spread in (0.0, 1e-6, 0.3, 3.0, 40.0, 1e4):
            for kind in (np.float32, np.float64):
                yield (rng.normal(0, spread, size) + rng.normal(0, 100)).astype(kind), float(rng.uniform(0.1, 3))
    steps = np.arange(200_000, dtype=np.float64) * (math.log(2) / 4096)  # right on the grid, and half-way between
    for kind in (np.float32, np.float64):
        yield (-steps).astype(kind), 1.0
        yield (-(steps + 0.5 * math.log(2) / 4096)).astype(kind), 1.0
        limit = float(np.finfo(kind).max)
        yield np.array([limit, -limit, limit, 0.0], kind), 1.0
        yield np.array([-np.inf, -limit, -limit, -np.inf], kind), 0.5
        yield np.array([0.0, -1e-30, -21.4, -21.5, -22.2, -1e9, -np.inf], kind), 1.0
    for temperature in (5e-324, 1e300):
        yield np.array([1.0, 2.0, -np.inf, 1.999]), temperature


def exact(scores, temperature):
    """exp(-(m - x) / T) in long floats."""
    with np.errstate(over="ignore"):
        depth = (np.longdouble(scores.max()) - scores.astype(np.longdouble)) / np.longdouble(temperature)
    return np.exp(-depth)


def test_every_exponential_is_within_the_stated_bound():
    for scores, temperature in rows_of_scores():
        wanted = exact(scores, temperature)
        found = exponentials(scores, temperature).astype(np.longdouble) / 2**31
        assert found.max() == 1
        assert (np.abs(found - wanted) <= RELATIVE * wanted + UNIT).all()


def test_law_is_within_the_stated_total_variation():
    for scores, temperature in rows_of_scores():
        wanted = exact(scores, temperature)
        weights = exponentials(scores, temperature)
        found = weights.astype(np.longdouble) / int(weights.sum(dtype=np.uint64))
        distance = 0.5 * np.abs(found - wanted / wanted.sum()).sum()
        assert distance <= error_bound(len(scores))


def test_log_sum_exp_is_within_the_stated_bound():
    for scores, _ in rows_of_scores():
        wanted = np.longdouble(scores.max()) + np.log(exact(scores, 1.0).sum())
        bound = -math.log1p(-error_bound(len(scores))) + 1e-8
        assert abs(log_sum_exp(scores) - wanted) <= bound + abs(float(wanted)) * 2**-52


def test_the_bound_is_not_idle():
    """Half a step, as a row can have it, uses most of what is allowed."""
    half = np.array([0.0, -0.5 * math.log(2) / 4096])
    found = exponentials(half) / 2**31
    assert abs(found[1] - math.exp(half[1])) > 0.9 * RELATIVE


@pytest.mark.parametrize("temperature", [0.05, 0.7, 1.0, 3.0])
def test_exponentials_equal_the_slow_counterpart(temperature):
    rng = np.random.default_rng(12)
    for scores in rng.normal(0, 6, (40, 30)):
        scores[rng.integers(30)] = -np.inf
        assert exponentials(scores, temperature).tolist() == slow_integer_weights(scores.tolist(), temperature)


def test_larger_scores_never_have_smaller_exponentials():
    for scores, temperature in rows_of_scores():
        assert (np.diff(exponentials(np.sort(scores), temperature).astype(np.int64)) >= 0).all()


@pytest.mark.parametrize(("top_k", "top_p", "min_p"), [(0, 1.0, 0.0), (4, 1.0, 0.0), (0, 0.8, 0.0), (5, 0.7, 0.1)])
def test_law_equals_the_slow_reference(top_k, top_p, min_p):
    settings = {"temperature": 0.7, "top_k": top_k, "top_p": top_p, "min_p": min_p, "arithmetic": "integer"}
    rng = np.random.default_rng(13)
    for logits in rng.normal(0, 2, (20, 12)):
        assert law(logits, Sampling(**settings)).dense(12) == pytest.approx(slow_law(logits, **settings), abs=1e-12)


def test_temperature_0_has_no_arithmetic():
    logits = np.array([1.0, 3.0, 3.0])
    assert law(logits, Sampling(0, arithmetic="integer")) == law(logits, Sampling(0))


@pytest.mark.parametrize("length", [1, 2, 3])
def test_output_law_is_the_processed_law_of_the_same_arithmetic(length):
    for sampling in (INTEGER, Sampling(0.8, top_p=0.8, presence_penalty=0.7, arithmetic="integer", prompt_length=1)):
        pair = random_pair(3, length, zeros=0, draft="sampled", draft_sampling=INTEGER)
        size = {"length": length, "vocab_size": 3, "context": (0, 1)}
        found = output_law(ExactRejection(), *pair, sampling, **size)
        assert total_variation(found, plain_law(pair[0], sampling, **size)) < 1e-12
    float_law = plain_law(pair[0], Sampling(temperature=1), length=length, vocab_size=3)
    apart = total_variation(plain_law(pair[0], INTEGER, length=length, vocab_size=3), float_law)
    assert 0 < apart < (length + 1) * error_bound(3)


def test_draft_that_is_the_target_is_accepted_whole():
    target = random_model(4)
    for event in decode(target, ModelDrafter(target, 6), [0], sampling=INTEGER, max_tokens=40):
        if isinstance(event, Step):
            assert {decision.outcome for decision in event.decisions} <= {"accepted", "bonus", "plain"}


def test_log_probability_agrees_with_float_within_the_bound():
    rng = np.random.default_rng(14)
    for scores in rng.normal(0, 4, (50, 2000)).astype(np.float32):
        for token in (0, int(scores.argmax()), int(scores.argmin())):
            ours, theirs = log_probability(scores, token, "integer"), log_probability(scores, token)
            assert ours == pytest.approx(theirs, abs=error_bound(2000) * 1.001 + 1e-6)
            assert ours <= 0


def test_log_probabilities_of_a_run_use_its_arithmetic():
    target = random_model(4)
    ids = [0]
    for event in decode(target, NoDraft(), ids, sampling=INTEGER, max_tokens=8, logprobs=True):
        if isinstance(event, Step):
            (decision,) = event.decisions
            row = target.logits(ids)[0]
            assert decision.logprob == pytest.approx(float(row[decision.target_token]) - log_sum_exp(row), abs=1e-12)
            ids.append(decision.target_token)


def test_a_draw_never_gives_a_token_whose_exponential_is_0():
    drawn_from = law(np.array([-50.0, 0.0, -50.0]), INTEGER)
    assert isinstance(drawn_from, Dense)
    assert drawn_from.dense(3).tolist() == [0, 1, 0]
    assert {drawn_from.draw(uniform) for uniform in (0.0, 0.5, BELOW)} == {1}
