"""The law of the first token under a rule: against the enumeration of whole steps."""

import numpy as np
import pytest

from engine.lab.enumerate import enumerate_step
from engine.lab.first_token import MOST_DRAFTS, first_token_bias
from engine.rules import RULES
from engine.sampling import Dense, OneHot, Rows, Sampling, Sparse, law
from engine.spec import RunSpec
from tests.engine.toys import random_model

PLAIN = Sampling(temperature=1)
MADE = {name: make(RunSpec()) for name, make in RULES.items()}


@pytest.mark.parametrize("draft_length", [1, 2, 3])
@pytest.mark.parametrize("name", MADE)
def test_distance_is_that_of_the_first_token_of_a_whole_step(name, draft_length):
    """Block verification too, which looks at all that is drafted."""
    rule = MADE[name]
    for seed in range(8):
        target, draft = (random_model(seed + shift, 4) for shift in (0, 50))
        row = draft.logits([0])[0]
        drawn_from = law(row, Sampling(temperature=0) if rule.greedy_draft else PLAIN)
        found = first_token_bias(
            rule, drawn_from, Rows(target.logits([0]), PLAIN), score=lambda token, row=row: row[token]
        )
        step = enumerate_step(
            rule,
            lambda tokens, target=target: target.logits([0, *tokens])[0],
            lambda tokens, draft=draft: draft.logits([0, *tokens])[0],
            draft_length=draft_length,
        )
        assert found.distance == pytest.approx(step.distance(1), abs=1e-12)
        assert found.unknown == 0.0


def test_sparse_and_dense_drafts_are_the_same():
    rows = Rows(np.log([[0.1, 0.2, 0.3, 0.4]]), PLAIN)
    dense, sparse = Dense(np.array([0.0, 0.7, 0.0, 0.3])), Sparse(np.array([1, 3]), np.array([0.7, 0.3]))
    for name in ("lenience", "ensemble", "typical"):
        assert first_token_bias(MADE[name], dense, rows) == first_token_bias(MADE[name], sparse, rows)


def test_a_large_vocabulary_is_known_to_within_what_was_not_looked_at():
    generator = np.random.default_rng(5)
    target, draft = generator.normal(0, 1, 3000), generator.normal(0, 1, 3000)
    rows, drawn_from = Rows(target[None], PLAIN), law(draft, PLAIN)
    found = first_token_bias(MADE["lenience"], drawn_from, rows)
    exact = MADE["lenience"].distance(law(target, PLAIN), drawn_from)
    left_out = np.sort(drawn_from.probs)[: 3000 - MOST_DRAFTS].sum()
    assert found.unknown == pytest.approx(left_out, abs=1e-12)
    assert abs(found.distance - exact) <= found.unknown


def test_a_very_large_vocabulary_is_looked_at_for_nearly_all_of_the_probability():
    generator = np.random.default_rng(6)
    target, draft = generator.normal(0, 1, 6000), np.concatenate([[20.0, 19.0], generator.normal(0, 1, 5998)])
    found = first_token_bias(MADE["exact"], law(draft, PLAIN), Rows(target[None], PLAIN))
    assert 0 < found.unknown < 1e-4
    assert found.distance <= found.unknown


def test_a_sure_draft_needs_one_look_whatever_the_vocabulary():
    rows = Rows(np.zeros((1, 49_152)), PLAIN)
    found = first_token_bias(MADE["sample-match"], OneHot(7), rows)
    assert (found.unknown, found.distance) == (0.0, pytest.approx(0, abs=1e-12))
