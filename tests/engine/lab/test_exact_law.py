"""The cells of a law: against the whole of it, token by token."""

from itertools import product
from math import prod

import numpy as np
import pytest

from engine.lab.exact_law import law_cells
from engine.sampling import OneHot, Sampling, Sparse, law
from tests.engine.toys import random_model

PLAIN = Sampling(temperature=1)


def law_of(seed, vocab_size=5):
    model = random_model(seed, vocab_size)
    return lambda tokens: law(model.logits([0, *tokens])[0], PLAIN)


@pytest.mark.parametrize("least", [0.002, 0.02, 0.05])
def test_cells_are_the_likely_beginnings_and_all_others_together(least):
    follow = law_of(4)
    whole = {
        tokens: prod(follow(tokens[:place]).prob(token) for place, token in enumerate(tokens))
        for tokens in product(range(5), repeat=3)
    }
    cells = law_cells(follow, 3, least=least)
    named = {cell.tokens: cell.probability for cell in cells if cell.tokens is not None}
    assert all(probability == pytest.approx(whole[tokens], abs=1e-15) for tokens, probability in named.items())
    assert sum(cell.probability for cell in cells) == pytest.approx(1, abs=1e-12)
    assert all(cell.probability >= least for cell in cells)
    missing = [probability for tokens, probability in whole.items() if tokens not in named]
    assert max(missing, default=0) <= min(named.values())
    assert list(named.values()) == sorted(named.values(), reverse=True)


def test_a_beginning_ends_with_an_end_token():
    follow = law_of(7, 3)
    cells = law_cells(follow, 2, least=1e-9, end_tokens=frozenset({0}))
    assert {cell.tokens for cell in cells} == {(0,), *product((1, 2), range(3))}
    assert sum(cell.probability for cell in cells) == pytest.approx(1, abs=1e-12)


def test_a_law_that_is_sure_has_one_cell():
    (cell,) = law_cells(lambda tokens: OneHot(len(tokens)), 3, least=0.1)
    assert (cell.tokens, cell.probability) == ((0, 1, 2), 1.0)


def test_sparse_laws_name_their_own_tokens():
    some = Sparse(np.array([3, 900]), np.array([0.25, 0.75]))
    assert [cell.tokens for cell in law_cells(lambda tokens: some, 1, least=0.1)] == [(900,), (3,)]
