"""Several guesses for the same place: how they are drawn, and the law that each of them was drawn from."""

from itertools import product

import numpy as np
import pytest

from engine.drafters.siblings import siblings
from engine.sampling import Dense, Noise, OneHot, Purpose, Sparse

PROBS = np.array([0.5, 0.3, 0.2])
AT = {"position": 9, "place": 0}


class Grid:
    """A stand-in for `Noise` that gives chosen numbers."""

    def __init__(self, numbers):
        self.numbers = numbers

    def uniforms(self, n, position, purpose, place=0):
        assert (n, purpose) == (len(self.numbers), Purpose.DRAFT)
        return np.array(self.numbers)


def test_without_replacement_pairs_come_up_as_often_as_when_drawn_in_turn():
    """Over a grid of numbers, all equally likely: P(first) * P(second) / (1 - P(first))."""
    middles = (np.arange(24) + 0.5) / 24
    found = np.zeros((3, 3))
    for numbers in product(middles, repeat=3):
        (first, _), (second, _) = siblings(Dense(PROBS), 2, "distinct", noise=Grid(numbers), **AT)
        found[first, second] += 1 / len(middles) ** 3
    expected = np.outer(PROBS / (1 - PROBS), PROBS) * (1 - np.eye(3))
    assert found == pytest.approx(expected, abs=0.01)
    assert np.diag(found).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "law", [Dense(np.array([0, *PROBS])), Sparse(np.array([1, 2, 3]), PROBS)], ids=["dense", "sparse"]
)
def test_each_sibling_without_replacement_has_the_law_without_those_before_it(law):
    seen = set()
    for seed in range(40):
        drawn = siblings(law, 3, "distinct", noise=Noise(seed), **AT)
        left = np.array([0, *PROBS])
        for token, drawn_from in drawn:
            assert drawn_from.dense(4) == pytest.approx(left / left.sum())
            left[token] = 0
        seen.add(tuple(token for token, _ in drawn))
    assert all(sorted(tokens) == [1, 2, 3] for tokens in seen)
    assert len(seen) == 6


def test_siblings_drawn_each_by_itself_have_numbers_and_the_law_of_their_own():
    law, noise = Dense(PROBS), Noise(3)
    drawn = siblings(law, 4, "independent", noise=noise, position=9, place=2)
    assert [token for token, _ in drawn] == [noise.draw(law, 9, Purpose.DRAFT, place) for place in range(2, 6)]
    assert all(drawn_from is law for _, drawn_from in drawn)


def test_the_most_probable_siblings_are_no_draws():
    law = Dense(np.array([0.2, 0.5, 0.3]))
    assert siblings(law, 2, "best", noise=Noise(0), **AT) == [(1, OneHot(1)), (2, OneHot(2))]


@pytest.mark.parametrize("how", ["independent", "distinct", "best"])
def test_fewer_come_where_the_law_knows_fewer_tokens(how):
    assert siblings(OneHot(7), 3, how, noise=Noise(0), **AT) == [(7, OneHot(7))]
    few = siblings(Dense(np.array([0.4, 0.0, 0.6])), 3, how, noise=Noise(0), **AT)
    assert {token for token, _ in few} <= {0, 2}
    assert len(few) == (3 if how == "independent" else 2)
