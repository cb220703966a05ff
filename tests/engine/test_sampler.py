"""Logits to law to token, against a slow reference, and the random numbers in between."""

import math

import numpy as np
import pytest

from engine.errors import SettingError
from engine.sampling import Dense, Noise, OneHot, Peaks, Purpose, Rows, Sampling, Sparse, Weighted, law, philox
from tests.engine.oracle import BELOW_ONE, preimages, slow_law

INF = math.inf


def probs(logits, **settings):
    return law(np.array(logits, dtype=float), Sampling(**settings)).dense(len(logits))


@pytest.mark.parametrize("temperature", [0.05, 0.7, 1.0, 3.0])
@pytest.mark.parametrize("top_k", [0, 1, 3, 12, 40])
@pytest.mark.parametrize("top_p", [1e-9, 0.3, 0.77, 0.999, 1.0])
def test_law_equals_the_slow_reference(temperature, top_k, top_p):
    settings = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    rng = np.random.default_rng(4)
    for logits in rng.normal(0, 2, (5, 12)):
        assert probs(logits, **settings) == pytest.approx(slow_law(logits, **settings), abs=1e-12)


def test_temperature_comes_before_top_p():
    """Truncation does not commute with temperature: at 2 the nucleus of .6 needs two tokens, at 1 one."""
    logits = np.log([0.7, 0.2, 0.1])
    assert np.count_nonzero(probs(logits, temperature=1, top_p=0.6)) == 1
    assert np.count_nonzero(probs(logits, temperature=2, top_p=0.6)) == 2


def test_top_k_comes_before_top_p():
    """top-p acts on what top-k left, renormalised: .5 / .8 reaches .6, .5 alone does not."""
    logits = np.log([0.5, 0.3, 0.2])
    assert np.count_nonzero(probs(logits, temperature=1, top_p=0.6)) == 2
    assert np.count_nonzero(probs(logits, temperature=1, top_p=0.6, top_k=2)) == 1


def test_top_k_keeps_all_that_tie_with_the_kth():
    assert probs([1, 3, 2, 2, 0, 2], temperature=1, top_k=2).nonzero()[0].tolist() == [1, 2, 3, 5]


@pytest.mark.parametrize("arithmetic", ["float", "integer"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_top_k_is_bit_for_bit_the_softmax_of_a_row_without_the_others(kind, arithmetic):
    """Only the kept scores are exponentiated; the law is that of a row in which the others are banned."""
    rng = np.random.default_rng(6)
    for size, top_k, temperature in ((5000, 40, 0.7), (5000, 1, 1.0), (4097, 999, 1.3)):
        scores = rng.normal(0, 4, size).astype(kind)
        banned = np.where(scores >= np.sort(scores)[-top_k], scores, -np.inf).astype(kind)
        settings = {"temperature": temperature, "min_p": 0.01, "arithmetic": arithmetic}
        found, expected = law(scores, Sampling(top_k=top_k, **settings)), law(banned, Sampling(**settings))
        assert np.array_equal(found.probs, expected.probs)


def test_top_k_of_all_or_more_tokens_keeps_every_token():
    for top_k in (3, 4, 1000):
        assert np.count_nonzero(probs([1, 2, 3], temperature=1, top_k=top_k)) == 3


def test_top_p_edge_cases():
    logits = np.log([0.25, 0.5, 0.25])
    assert np.count_nonzero(probs(logits, temperature=1, top_p=1)) == 3
    for tiny in (1e-300, 5e-324):
        assert probs(logits, temperature=1, top_p=tiny).tolist() == [0, 1, 0]
    assert probs([0, 0], temperature=1, top_p=0.5).tolist() == [1, 0]  # .5 is reached by one token
    assert probs(logits, temperature=1, top_p=0.6) == pytest.approx([1 / 3, 2 / 3, 0])  # on a tie the lower id
    assert np.count_nonzero(probs(logits, temperature=1, top_p=math.nextafter(1, 0))) == 3


def test_banned_tokens_stay_banned():
    for settings in ({}, {"top_k": 3}, {"top_p": 0.99}, {"temperature": 5.0}):
        row = probs([-INF, 1.0, -INF, 1.0], **settings)
        assert row == pytest.approx([0, 0.5, 0, 0.5])


@pytest.mark.parametrize("scale", [1e4, 1e154, 1.7e308])
def test_huge_logits_do_not_overflow(scale):
    assert probs([scale, -scale, scale], temperature=1).tolist() == [0.5, 0, 0.5]
    assert probs([-scale, -scale], temperature=0.5).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("temperature", [0.25, 1, 4])
@pytest.mark.parametrize("offset", [-1e4, -100, -10, 0, 10, 79, 330, 1e4])
def test_the_law_does_not_depend_on_a_constant_in_the_logits(offset, temperature, kind):
    scores = np.linspace(-30, 0, 3001).astype(kind)
    shifted = (scores + kind(offset)).astype(kind)
    found = law(shifted, Sampling(temperature=temperature)).probs
    exact = np.exp((shifted.astype(np.float64) - float(shifted[-1])) / temperature)
    np.testing.assert_allclose(found, exact / exact.sum(), rtol=5e-6 if kind is np.float32 else 1e-9, atol=1e-30)
    assert abs(found.sum() - 1) < 1e-12


@pytest.mark.parametrize("n_tokens", [5, 256, 1000, 2560])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.uint32])
def test_a_law_of_weights_is_the_law_of_their_shares(n_tokens, kind):
    weights = np.random.default_rng(n_tokens).integers(0, 9, n_tokens).astype(kind)
    by_weights, by_shares = Weighted(weights), Dense(weights.astype(float) / weights.sum())
    assert np.array_equal(by_weights.probs, by_shares.probs)
    assert [by_weights.prob(token) for token in range(n_tokens + 2)] == [*by_shares.probs, 0.0, 0.0]
    assert [by_weights.draw(place / 997) for place in range(997)] == [
        by_shares.draw(place / 997) for place in range(997)
    ]
    by_weights.row()[:] = 7
    assert np.array_equal(by_weights.probs, by_shares.probs)  # a row is the caller's own


@pytest.mark.parametrize("n_tokens", [1000, 2560])
def test_a_token_is_drawn_from_as_much_of_the_line_as_it_is_probable(n_tokens):
    weights = np.exp(np.random.default_rng(3).normal(0, 2, n_tokens)).astype(np.float32)
    law_of_weights = Weighted(weights)
    ends = np.cumsum(law_of_weights.probs)
    for token in np.flatnonzero(law_of_weights.probs > 1e-5).tolist()[1::7]:
        assert law_of_weights.draw(ends[token] - 1e-6) == token
        assert law_of_weights.draw(ends[token - 1] + 1e-6) == token


@pytest.mark.parametrize("temperature", [1e-6, 1e-300, 5e-324])
def test_tiny_temperature_approaches_the_argmax(temperature):
    assert probs([1.0, 2.0, -INF, 1.999], temperature=temperature).tolist() == [0, 1, 0, 0]


def test_law_does_not_write_to_the_logits_and_takes_float32():
    logits = np.array([1, 2, 3], dtype=np.float32)
    before = logits.copy()
    drawn_from = law(logits, Sampling(temperature=0.7, top_k=2, top_p=0.9))
    assert np.array_equal(logits, before)
    assert drawn_from.dense(3).dtype == np.float64


@pytest.mark.parametrize("temperature", [5e-324, 1e-3, 1e3, 1e300])
@pytest.mark.parametrize("arithmetic", ["float", "integer"])
def test_float32_scores_work_at_temperatures_that_float32_does_not_have(temperature, arithmetic):
    """1e300 is infinite in float32, and -inf / inf is no number."""
    logits = np.array([1.0, 2.0, -INF, 1.0], dtype=np.float32)
    drawn_from = law(logits, Sampling(temperature, arithmetic=arithmetic)).dense(4)
    expected = [0, 1, 0, 0] if temperature < 1 else [1 / 3, 1 / 3, 0, 1 / 3]
    assert drawn_from == pytest.approx(expected, abs=1e-3)


def test_greedy_takes_the_lowest_id_on_a_tie():
    assert law(np.array([0.0, 7.0, 7.0, -INF]), Sampling(temperature=0, top_k=1, top_p=0.1)) == OneHot(1)


def test_greedy_pays_for_no_softmax(monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("a softmax was computed at temperature 0")

    monkeypatch.setattr(np, "exp", forbidden)
    rows = Rows(np.array([[1.0, 2.0]]), Sampling(temperature=0))
    assert rows.law(0).draw(0.9) == 1
    with pytest.raises(AssertionError, match="softmax"):
        law(np.zeros(2), Sampling(temperature=1))


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": -0.1},
        {"temperature": math.nan},
        {"temperature": INF},
        {"top_k": -1},
        {"top_k": 1.5},
        {"top_k": 2.0},
        {"top_k": math.nan},
        {"top_k": INF},
        {"top_p": 0},
        {"top_p": -0.5},
        {"top_p": 1.01},
        {"top_p": math.nan},
        {"judged_at": -0.1},
        {"judged_at": math.nan},
    ],
    ids=str,
)
def test_setting_out_of_range_is_refused_by_name(settings):
    (name,) = settings
    with pytest.raises(SettingError, match=f"^{name} is .*must be"):
        Sampling(**settings)


@pytest.mark.parametrize("settings", [{"temperature": 0}, {"temperature": 1e6}, {"top_k": np.int64(3)}, {"top_p": 1}])
def test_setting_in_range_is_taken(settings):
    assert law(np.zeros(5), Sampling(**settings)).dense(5).sum() == pytest.approx(1)


def test_inverse_cdf_gives_every_token_its_own_share():
    row = np.array([0.0, 0.125, 0.0, 0.5, 0.25, 0.125, 0.0])
    shares = {1: 0.125, 3: 0.5, 4: 0.25, 5: 0.125}
    assert preimages(Dense(row).draw) == pytest.approx(shares)
    assert preimages(Dense(row * 3).draw) == pytest.approx(shares)  # a total that is off by rounding, exaggerated


@pytest.mark.parametrize("uniform", [0.0, 5e-324, 0.5, BELOW_ONE])
def test_draw_never_gives_a_token_of_probability_0(uniform):
    rng = np.random.default_rng(5)
    for size in (2, 3, 50, 5000):
        row = rng.dirichlet(np.full(size, 0.05))
        row[[0, -1]] = 0.0
        if row.sum():
            assert row[Dense(row / row.sum()).draw(uniform)] > 0


def test_draw_at_a_total_that_rounds_up_stays_inside():
    """`uniform * total` can round to the total itself, behind which there is no token."""
    row = np.array([0.0, 5e-324, 0.0])
    assert Dense(row).draw(BELOW_ONE) == 1


def test_draw_frequencies_follow_the_law():
    """Chi-square over 8 tokens, 40,000 draws, seed 1: 24.3 is the 0.1 % point of 7 degrees of freedom."""
    row = np.array([0.3, 0.05, 0.05, 0.2, 0.1, 0.1, 0.05, 0.15])
    n_draws = 40_000
    counts = np.zeros(8)
    noise = Noise(1)
    for position in range(n_draws):
        counts[Dense(row).draw(noise.uniform(position, Purpose.TARGET))] += 1
    assert ((counts - n_draws * row) ** 2 / (n_draws * row)).sum() < 24.3


def test_probability_of_an_id_behind_the_row_is_0():
    assert Dense(np.array([0.4, 0.6])).prob(2) == 0
    assert OneHot(1).prob(2) == 0
    assert (OneHot(1).prob(1), OneHot(1).draw(0.99), OneHot(1).dense(3).tolist()) == (1, 1, [0, 1, 0])


def test_rows_process_a_row_once_and_only_when_asked():
    logits = np.array([[0.0, 1.0], [np.nan, np.nan]])
    rows = Rows(logits, Sampling(temperature=1))
    assert rows.law(0) is rows.law(0)
    assert rows.logit(0, 1) == 1.0


def test_margin_is_the_lead_of_the_emitted_token_at_temperature_0_only():
    logits = np.array([[1.0, 4.0, 3.5], [2.0, 2.0, 0.0], [-INF, 1.0, -INF]])
    greedy = Rows(logits, Sampling(temperature=0))
    assert [greedy.margin(row, 1) for row in range(3)] == [0.5, 0.0, None]
    assert greedy.margin(0, 2) == -0.5  # what a lossy rule may emit
    assert Rows(logits, Sampling(temperature=1)).margin(0, 1) is None
    assert Rows(np.zeros((1, 1)), Sampling(temperature=0)).margin(0, 0) is None


def test_peaks_of_the_logits_are_used_only_where_they_are_those_of_the_law():
    logits = np.array([[0.0, 2.0, 1.0], [3.0, 3.0, 1.0]])
    peaks = Peaks(logits)
    given = Rows(logits, Sampling(temperature=0), peaks=peaks)
    assert [given.law(index) for index in range(2)] == [OneHot(1), OneHot(0)]
    penalised = Rows(logits, Sampling(temperature=0, presence_penalty=2), lambda index: [1], peaks)
    assert penalised.law(0) == OneHot(2)
    assert isinstance(Rows(logits, Sampling(temperature=1), peaks=peaks).law(0), Dense)


def test_noise_is_keyed_by_seed_position_and_purpose():
    keys = [(seed, place, purpose) for seed in (0, 1, 2**64 - 1) for place in range(300) for purpose in range(3)]
    draws = [Noise(seed).uniform(place, purpose) for seed, place, purpose in keys]
    assert len(set(draws)) == len(keys)
    assert all(0 <= draw < 1 for draw in draws)
    assert draws == [Noise(seed).uniform(place, purpose) for seed, place, purpose in keys]


def test_noise_of_a_tree_is_keyed_by_the_place_as_well():
    noise = Noise(3)
    draws = [noise.uniform(12, Purpose.DRAFT, place) for place in range(64)]
    assert len(set(draws)) == 64
    assert draws[0] == noise.uniform(12, Purpose.DRAFT)
    rows = [noise.uniforms(8, 12, Purpose.DRAFT, place) for place in range(64)]
    assert [row[0] for row in rows] == draws
    assert len(np.unique(rows)) == 64 * 8
    fair = Dense(np.array([0.5, 0.5]))
    assert [noise.draw(fair, 12, Purpose.DRAFT, place) for place in range(64)] == [int(draw >= 0.5) for draw in draws]


def test_noise_is_the_same_on_every_machine_and_version():
    """A seed is part of every export, so the numbers behind it must not change."""
    assert Noise(7).uniform(12, Purpose.ACCEPT) == 0.38655922579667834


def test_numbers_are_those_of_numpys_philox():
    """Whole numbers of Python and numpy's generator: the same bits, at both ends of every word too."""
    ends, rng = (0, 1, 2**32, 2**63, 2**64 - 1), np.random.default_rng(5)
    keys = [(key, (end, other, end)) for key in ends for end in ends for other in ends]
    keys += [(key, (b, c, d)) for key, b, c, d in rng.integers(0, 2**64, (200, 4), np.uint64).tolist()]
    for key, counter in keys:
        words = np.array([0, *counter], np.uint64)
        assert philox.uniform(key, counter) == np.random.Generator(np.random.Philox(key=key, counter=words)).random()


def test_neighbouring_keys_are_not_correlated():
    """Chi-square of (draft, accept) and (position, next position) on a 4 x 4 grid; 37.7 is the 0.1 % point of 15."""
    noise = Noise(3)
    n_draws = 8000
    columns = {purpose: [noise.uniform(place, purpose) for place in range(n_draws + 1)] for purpose in range(3)}
    pairs = [(columns[Purpose.DRAFT], columns[Purpose.ACCEPT]), (columns[Purpose.ACCEPT], columns[Purpose.TARGET])]
    pairs += [(column, column[1:]) for column in columns.values()]
    for one, other in pairs:
        counts, *_ = np.histogram2d(one[:n_draws], other[:n_draws], bins=4, range=[[0, 1], [0, 1]])
        assert ((counts - n_draws / 16) ** 2 / (n_draws / 16)).sum() < 37.7


@pytest.mark.parametrize("seed", [-1, 2**64, 0.5, math.nan])
def test_seed_out_of_range_is_refused(seed):
    with pytest.raises(SettingError, match="seed is"):
        Noise(seed)


def test_a_law_of_places_is_a_law_of_the_tokens_in_them():
    tokens = np.array([3, 7, 9])
    assert Sparse.over(tokens, OneHot(1)) == OneHot(7)
    some = Sparse.over(tokens, Dense(np.array([0.5, 0.0, 0.5])))
    assert [some.prob(token) for token in (3, 7, 9, 4, 99)] == [0.5, 0.0, 0.5, 0.0, 0.0]
    assert some.draw(0.7) == 9


def test_rows_hand_over_the_raw_logit_of_a_token_and_the_scores_behind_penalties():
    logits = np.array([[1.0, 2.0], [3.0, -np.inf]])
    rows = Rows(logits, Sampling(temperature=0.5))
    assert [rows.scores(index).tolist() for index in range(2)] == logits.tolist()
    penalising = Rows(logits, Sampling(presence_penalty=0.5), lambda row: [0, 1][: row + 1])
    assert [penalising.scores(index).tolist() for index in range(2)] == [[0.5, 2.0], [2.5, -np.inf]]
    assert penalising.logit(0, 0) == 1.0
