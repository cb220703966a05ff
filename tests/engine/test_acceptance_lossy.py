"""Lenience, ensemble and typical acceptance, one test at a time, and what their parameters may be."""

import math

import numpy as np
import pytest

from engine.acceptance import Ensemble, Lenience, SampleMatch, TypicalAcceptance
from engine.acceptance.lenience import LEAST
from engine.errors import SettingError
from engine.sampling import Dense, Noise, OneHot, Rows, Sampling
from engine.values import Draft
from tests.engine.oracle import Draws

PLAIN = Sampling(temperature=1)
TARGET, DRAFT = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])


def judge(rule, tokens, draws=(), *, law=None, target=TARGET, target_draw=0.5, sampling=PLAIN):
    laws = (law or Dense(DRAFT),) * len(tokens)
    rows = Rows(np.log([target] * (len(tokens) + 1)), sampling)
    return rule.judge(Draft(tokens, laws), rows, noise=Draws(draws, target_draw), start=0)


@pytest.mark.parametrize("lenience", [0.5, 0.9])
def test_lenience_keeps_up_to_its_probability_and_replaces_from_the_plain_residual(lenience):
    keeps = 0.2 / (lenience * 0.5)
    for draw in (keeps - 1e-9, keeps + 1e-9):
        verdict = judge(Lenience(lenience), (2,), [draw])
        assert verdict.n_accepted == (draw < keeps)
        assert verdict.tested[0].accept_prob == pytest.approx(keeps)
        assert verdict.token == (0 if draw >= keeps else 1)  # the residual (1, 0, 0), or the bonus at 0.5
    assert verdict.tested[0].draw == keeps + 1e-9


@pytest.mark.parametrize("draft_prob", [5e-324, 1e-300, 1e-6])
def test_the_least_lenience_is_one_to_compute_with(draft_prob):
    """No quotient is one by 0, and no distance lost in rounding, however improbable the draft had its token."""
    rule, draft = Lenience(LEAST), Dense(np.array([1 - draft_prob, draft_prob, 0.0]))
    for target, keeps in (([1.0, 0.0, 0.0], 0.0), ([0.7, 0.3, 0.0], 1.0)):
        with np.errstate(divide="ignore"):
            tested = judge(rule, (1,), [0.5], law=draft, target=target).tested[0]
        assert tested.accept_prob == keeps
        assert tested.accepted == (keeps == 1)
    assert rule.distance(Dense(TARGET), Dense(DRAFT)) == pytest.approx(0.3, abs=1e-9)  # all that is drafted is kept


@pytest.mark.parametrize("weight", [0.25, 0.8])
def test_ensemble_keeps_up_to_the_mixture(weight):
    keeps = (weight * 0.2 + (1 - weight) * 0.5) / 0.5
    for draw in (keeps - 1e-9, keeps + 1e-9):
        verdict = judge(Ensemble(weight), (2,), [draw])
        assert verdict.n_accepted == (draw < keeps)
        assert verdict.tested[0].accept_prob == pytest.approx(keeps)
    assert {term.name: term.value for term in verdict.tested[0].terms} == {"weight": weight, "rest": 1 - weight}


def test_ensemble_of_weight_0_keeps_all_that_is_drafted():
    assert judge(Ensemble(0.0), (2, 2, 1), [1 - 2**-53] * 3).n_accepted == 3


def test_at_temperature_0_nothing_is_mixed():
    greedy = {"sampling": Sampling(temperature=0), "draws": [0.0], "law": OneHot(2)}
    verdict = judge(Ensemble(0.1), (2,), **greedy)
    assert (verdict.n_accepted, verdict.token) == (0, 0)
    assert Ensemble(0.1).distance(OneHot(0), OneHot(2)) == 0
    assert Ensemble.guarantee.startswith("Above temperature 0 ")  # and what it says of drafted positions ends there
    assert Lenience(0.1).distance(OneHot(0), OneHot(2)) == 0


def test_typical_acceptance_asks_for_less_where_the_target_is_open():
    """Cai et al., arXiv 2401.10774, section 2.3.1: .09 at entropies 1.03 and .39, 3e-4 for an even choice of 1000."""
    rule = TypicalAcceptance()
    assert rule.asked_for(Dense(TARGET)) == 0.09
    assert rule.asked_for(Dense(np.array([0.87, 0.13]))) == 0.09
    assert rule.asked_for(Dense(np.full(1000, 1e-3))) == pytest.approx(3e-4)
    open_to = math.log(0.3 / 0.09)
    assert open_to == pytest.approx(1.204, abs=5e-4)
    assert rule.asked_for(OneHot(1)) == 0.09


def test_typical_acceptance_draws_nothing_for_its_test_and_refuses_strictly():
    verdict = judge(TypicalAcceptance(0.2, 1.0), (0, 1, 2, 0), target_draw=0.6)  # 0.2 is not more than 0.2
    assert [test.accepted for test in verdict.tested] == [True, True, False]
    assert (verdict.n_accepted, verdict.token) == (2, 1)  # the whole of the target's law, not a residual
    assert all(test.draw is None for test in verdict.tested)
    terms = {term.name: term.value for term in verdict.tested[2].terms}
    assert terms["asked_for"] == min(terms["threshold"], terms["scale"] * math.exp(-terms["entropy"])) == 0.2


@pytest.mark.parametrize(("threshold", "scale"), [(1.0, 1.0), (0.09, 0.3), (0.0, 0.0)])
@pytest.mark.parametrize("sampling", [Sampling(temperature=0), Sampling(temperature=1, top_k=1), PLAIN], ids=str)
def test_typical_acceptance_keeps_what_the_target_is_sure_of_and_nothing_else(threshold, scale, sampling):
    """At temperature 0 that gives the text of plain decoding, whatever is asked for."""
    rule, draft = TypicalAcceptance(threshold, scale), Draft((1, 0), (OneHot(1), OneHot(0)))
    with np.errstate(divide="ignore"):
        rows = Rows(np.log([[0.0, 1.0, 0.0]] * 3), sampling)
    verdict = rule.judge(draft, rows, noise=Noise(3), start=0)
    assert [test.accepted for test in verdict.tested] == [True, False]
    assert (verdict.n_accepted, verdict.token) == (1, 1)
    assert [chance for chance, _ in rule.chances(draft, rows)] == [0, 1, 0]


def test_every_step_gets_on_whatever_is_refused():
    verdict = judge(TypicalAcceptance(1.0, 1.0), (1, 1), target=[0.4, 0.3, 0.3], target_draw=0.99)
    assert (verdict.n_accepted, verdict.token) == (0, 2)


def test_match_tells_where_the_number_fell():
    verdict = judge(SampleMatch(), (1, 1), target_draw=0.6)
    first, second = verdict.tested
    assert (first.accepted, first.draw, first.accept_prob) == (True, None, pytest.approx(0.3))
    assert {term.name: term.value for term in first.terms} == pytest.approx({"number": 0.6, "low": 0.5, "high": 0.8})
    assert second.accepted
    refused = judge(SampleMatch(), (0, 0), target_draw=0.6)
    assert (refused.n_accepted, refused.token, len(refused.tested)) == (0, 1, 1)


@pytest.mark.parametrize(
    ("make", "values", "name"),
    [
        (Lenience, [0.0, -0.1, 1e-323, 9.9e-7, 1.01, math.nan, math.inf], "lenience"),
        (Ensemble, [-0.1, 1.01, math.nan, math.inf], "ensemble_weight"),
        (TypicalAcceptance, [-0.1, 1.01, math.nan, math.inf], "typical_threshold"),
        (lambda value: TypicalAcceptance(0.09, value), [-0.1, 1.01, math.nan], "typical_scale"),
    ],
    ids=["lenience", "ensemble", "threshold", "scale"],
)
def test_parameter_out_of_range_is_refused(make, values, name):
    for value in values:
        with pytest.raises(SettingError, match=f"{name} is {value}; it must be"):
            make(value)


@pytest.mark.parametrize("rule", [Lenience(), Ensemble(), TypicalAcceptance(), SampleMatch()])
def test_plain_step_takes_the_target_token(rule):
    rows = Rows(np.log([[0.2, 0.8]]), PLAIN)
    verdict = rule.judge(Draft(), rows, noise=Noise(0), start=0)
    assert verdict.tested == ()
    assert verdict.token == rows.law(0).draw(Noise(0).uniform(0, 2))
