"""Numbers about laws, against loops over the whole vocabulary."""

import math
from itertools import product

import numpy as np
import pytest

from engine.laws import below, entropy, highest, probs_at, top, total_variation
from engine.sampling import Dense, OneHot, Sparse

SIZE = 9
LAWS = {
    "one-hot": OneHot(4),
    "another one-hot": OneHot(0),
    "dense": Dense(np.array([0.1, 0.0, 0.2, 0.05, 0.3, 0.0, 0.15, 0.2, 0.0])),
    "even": Dense(np.full(SIZE, 1 / SIZE)),
    "sparse": Sparse(np.array([1, 4, 7]), np.array([0.5, 0.25, 0.25])),
    "sparse with a zero": Sparse(np.array([0, 2, 8]), np.array([0.75, 0.0, 0.25])),
    "sparse beside the others": Sparse(np.array([1, 5]), np.array([0.5, 0.5])),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_entropy_is_the_sum_over_all_tokens(law):
    expected = -math.fsum(prob * math.log(prob) for prob in law.dense(SIZE).tolist() if prob > 0)
    assert entropy(law) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("pair", list(product(LAWS, LAWS)), ids=" and ".join)
def test_total_variation_is_half_the_absolute_difference(pair):
    one, other = (LAWS[name] for name in pair)
    expected = 0.5 * math.fsum(np.abs(one.dense(SIZE) - other.dense(SIZE)).tolist())
    assert total_variation(one, other) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("n", [1, 2, 5, SIZE, 20])
def test_top_is_the_head_of_the_whole_order(law, n):
    row = law.dense(SIZE).tolist()
    order = sorted((token for token in range(SIZE) if row[token] > 0), key=lambda token: (-row[token], token))
    assert top(law, n) == order[:n]


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_stretches_of_all_tokens_fill_the_line(law):
    row = law.dense(SIZE).tolist()
    for token in range(SIZE):
        assert below(law, token) == pytest.approx(math.fsum(row[:token]), abs=1e-15)
        if row[token] > 0:
            assert law.draw(below(law, token) + row[token] / 2) == token
    assert probs_at(law, range(SIZE)).tolist() == row


def test_highest_takes_the_lowest_place_of_a_tie():
    values = np.array([1.0, 3.0, 3.0, -np.inf, 3.0, 2.0])
    assert [highest(values, n).tolist() for n in (1, 2, 4, 9)] == [[1], [1, 2], [1, 2, 4, 5], [1, 2, 4, 5, 0, 3]]
