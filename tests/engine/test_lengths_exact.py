"""A length policy may remember what it likes: the exact rule stays exact, by enumeration of the whole loop."""

import pytest

from engine.drafters import ModelDrafter
from engine.lengths import Confident, FixedLength, LengthPolicy
from engine.sampling import Sampling
from tests.engine.every_path import Branching, law_of_loop
from tests.engine.oracle import plain_law, total_variation
from tests.engine.toys import random_model

PLAIN = Sampling(temperature=1)


class Remembering(LengthPolicy):
    """Goes on behind token 0 only, and drafts next by how far the last draft went, judged or not."""

    def __init__(self):
        self.length = 3

    def next_length(self):
        return self.length

    def behind(self, prospect, token):
        return prospect.n_before == 0 or token == 0

    def observe(self, outcome):
        self.length = {3: 1, 2: 0, 1: 0, 0: 1}[outcome.n_drafted]


class KeyedByPosition(Branching):
    """Numbers as they must not be: a guess that nobody judged is drawn again with the same number."""

    def in_step(self, position, purpose):
        return 0


def distance(policy, *, seed=1, vocab_size=3, n_tokens=4, noise=Branching):
    """From the law of what the loop emits to that of plain decoding."""
    target, draft = random_model(seed, vocab_size, scale=1.0), random_model(seed + 50, vocab_size, scale=1.0)
    found = law_of_loop(
        target, lambda: ModelDrafter(draft, vocab_size), policy, n_tokens=n_tokens, noise=noise, sampling=PLAIN
    )
    plain = plain_law(lambda ids: target.logits([0, *ids])[0], PLAIN, length=n_tokens - 1, vocab_size=vocab_size)
    assert found.sum() == pytest.approx(1, abs=1e-12)
    return total_variation(found, plain)


POLICIES = {
    "fixed": lambda: FixedLength(2),
    "confident": lambda: Confident(2),
    "remembering": Remembering,
}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize("seed", [1, 4])
def test_the_loop_emits_the_target_s_law_under_every_policy(policy, seed):
    assert distance(policy, seed=seed) < 1e-12


def test_numbers_of_a_draft_are_new_at_every_step_because_a_policy_may_have_seen_the_last():
    """What stopped an earlier draft is in its length, and would say something of the same number drawn again."""
    assert distance(Remembering, seed=4, noise=KeyedByPosition) > 0.01
    assert distance(POLICIES["fixed"], seed=4, noise=KeyedByPosition) < 1e-12  # which remembers nothing
