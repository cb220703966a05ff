"""What a rule says of its chances is what it does: measured, draw by draw, by an oracle that knows no rule."""

from itertools import product

import numpy as np
import pytest

from engine.acceptance import (
    BlockVerification,
    Ensemble,
    ExactRejection,
    Lenience,
    NaiveThreshold,
    SampleMatch,
    TypicalAcceptance,
)
from engine.errors import DraftError
from engine.sampling import Dense, OneHot, Rows, Sampling
from engine.values import Draft
from tests.engine.oracle import judged_chances, rows_of, told_chances
from tests.engine.random_pairs import random_pair

PLAIN = Sampling(temperature=1)
RULES = {
    "exact": ExactRejection(),
    "block": BlockVerification(),
    "sample-match": SampleMatch(),
    "lenience": Lenience(0.6),
    "ensemble": Ensemble(0.7),
    "typical": TypicalAcceptance(),
    "naive": NaiveThreshold(0.1),
}
"""All but the Gumbel-coupled one, whose draws are not uniform numbers; `test_acceptance_gumbel` has it."""


def drafts(pair, length, vocab_size, sampling):
    """Every draft that can be, with logits that are the logarithms of its laws, and the target's rows."""
    target_logits, draft_law = pair
    for tokens in product(range(vocab_size), repeat=length):
        laws = tuple(draft_law(tokens[:index]) for index in range(length))
        probs = [law.prob(token) for law, token in zip(laws, tokens, strict=True)]
        if all(probs):
            yield Draft(tokens, laws, tuple(np.log(probs).tolist())), rows_of(target_logits, tokens, sampling)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("draft", ["sampled", "one-hot", "mixed"])
@pytest.mark.parametrize("length", [0, 1, 2, 3])
def test_chances_are_what_judge_does(rule, draft, length):
    ways = ((length, 0, PLAIN), (9, 1, PLAIN), (10, 0, Sampling(temperature=0)))
    for seed, zeros, sampling in ways if length < 3 else ways[1:]:  # one token banned leaves eight drafts of three
        pair = random_pair(3, seed, zeros=zeros, draft=draft, draft_sampling=sampling)
        for guess, rows in drafts(pair, length, 3, sampling):
            told = told_chances(rule, guess, rows, 3)
            done = judged_chances(rule, guess, rows)
            assert sum(told.values()) == pytest.approx(1, abs=1e-12)
            for fate in told | done:
                assert told[fate] == pytest.approx(done[fate], abs=1e-11), fate


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_chances_have_an_entry_for_every_number_of_tokens_kept(rule):
    rows = Rows(np.zeros((4, 3)), PLAIN)
    guess = Draft((0, 1, 2), (Dense(np.array([0.5, 0.3, 0.2])), OneHot(1), OneHot(2)), (0.0, 0.0, 0.0))
    assert [len(rule.chances(guess.cut(length), rows)) for length in range(4)] == [1, 2, 3, 4]


def test_naive_rule_has_no_chances_without_logits():
    with pytest.raises(DraftError, match="raw logits"):
        NaiveThreshold().chances(Draft((1,), (OneHot(1),)), Rows(np.zeros((2, 3)), PLAIN))
