"""Greedy text is that of plain decoding: every drafter x rule x policy x draft length of the embedded pair."""

from itertools import product

import pytest

from engine.build import build
from engine.policies import POLICIES
from engine.rules import RULES
from engine.spec import RunSpec
from engine.values import Finished

DRAFTERS = ("none", "ngram", "suffix", "recycling", "model", "model:markov")
NEEDS_LOGITS = ("none", "model", "model:markov")


def ids(**settings):
    spec = RunSpec(target="markov", temperature=0, max_tokens=16, prompt="The draft model", **settings)
    *_, finished = build(spec).events()
    assert isinstance(finished, Finished)
    assert not finished.error
    return finished.ids


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "naive"])
def test_greedy_text_is_that_of_plain_decoding(rule):
    plain = ids(drafter="none")
    for drafter, policy, length in product(DRAFTERS, POLICIES, range(9)):
        got = ids(drafter=drafter, rule=rule, length_policy=policy, draft_length=length)
        assert got == plain, (drafter, policy, length)


def test_the_naive_rule_gives_another_text_somewhere():
    """So the sixteen tokens above do tell a rule that is lossy at temperature 0 from the others."""
    plain = ids(drafter="none")
    assert any(ids(drafter=drafter, rule="naive", draft_length=4) != plain for drafter in NEEDS_LOGITS)
