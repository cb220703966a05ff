"""A length policy may remember what it likes: the exact rule stays exact, by enumeration of the whole loop."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from engine.acceptance import ExactRejection
from engine.decode import decode
from engine.drafters import ModelDrafter, NoDraft, tree
from engine.drafters.tree import TreeDrafter
from engine.lengths import FixedLength, LengthPolicy
from engine.policies import POLICIES
from engine.rules import RULES
from engine.sampling import Dense, Purpose, Sampling
from engine.spec import RunSpec
from engine.values import Step
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


class Dropping(ModelDrafter):
    """Throws a drawn token away if its draft gave it little."""

    def propose(self, *arguments, **settings):
        draft = super().propose(*arguments, **settings)
        probs = [law.prob(token) for law, token in zip(draft.laws, draft.tokens, strict=True)]
        return draft.cut(next((place for place, prob in enumerate(probs) if prob < 0.5), len(probs)))


class Hurried:
    """A clock by which drafts are cheap, so that a policy that weighs costs does draft."""

    def __init__(self):
        self.now, self.n_asked = 0.0, 0

    def __call__(self):
        self.n_asked += 1
        self.now += 1.0 if self.n_asked % 7 == 0 else 0.125
        return self.now


class KeyedByPosition(Branching):
    """Numbers as they must not be: a guess that nobody judged is drawn again with the same number."""

    def in_step(self, position, purpose):
        return 0


def distance(policy, *, rule=None, drafter=None, seed=5, vocab_size=2, n_tokens=4, noise=Branching):
    """From the law of what the loop emits to that of plain decoding."""
    target, draft = random_model(seed, vocab_size, scale=1.0), random_model(seed + 50, vocab_size, scale=1.0)
    found = law_of_loop(
        target, lambda: (drafter or ModelDrafter)(draft, vocab_size), policy, n_tokens=n_tokens, rule=rule, noise=noise,
        sampling=PLAIN, clock_for=Hurried,
    )  # fmt: skip
    plain = plain_law(lambda ids: target.logits([0, *ids])[0], PLAIN, length=n_tokens - 1, vocab_size=vocab_size)
    assert found.sum() == pytest.approx(1, abs=1e-12)
    return total_variation(found, plain)


SETTINGS = RunSpec(draft_length=2, confidence_threshold=0.5, entropy_bound=0.65, start_threshold=0.5)
EXACT = [name for name, make in RULES.items() if make(SETTINGS).lossless and not hasattr(make(SETTINGS), "noise")]
COUPLED = [name for name, make in RULES.items() if hasattr(make(SETTINGS), "noise")]
"""Rules with numbers of their own, which an enumeration by intervals cannot follow; the text itself tells there."""


@pytest.mark.parametrize("rule", EXACT)
@pytest.mark.parametrize("policy", POLICIES)
def test_the_loop_emits_the_target_s_law_under_every_policy_and_exact_rule(policy, rule):
    assert distance(lambda: POLICIES[policy](SETTINGS), rule=RULES[rule](SETTINGS)) < 1e-12


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_does_not_bias_trees_either(policy):
    assert distance(
        lambda: POLICIES[policy](SETTINGS), rule=RULES["tree-independent"](SETTINGS), n_tokens=3,
        drafter=partial(TreeDrafter, children="independent", width=2, n_nodes=3),
    ) < 1e-12  # fmt: skip


@pytest.mark.parametrize("children", ["independent", "distinct"])
def test_a_depth_with_more_guesses_than_the_width_does_not_bias_the_text(children, monkeypatch):
    """Two guesses, and then two behind each of them: how many is settled before any is drawn."""
    widest = []

    def one_by_one(guess, n, how, *, noise, position, place):
        """The same law as `siblings` by draws that the enumeration can follow."""
        drawn = []
        for number in range(n):
            token = noise.draw(guess, position, Purpose.DRAFT, place + number)
            drawn.append((token, guess))
            if how == "distinct":
                left = np.where(np.arange(2) == token, 0.0, guess.dense(2))
                guess = Dense(left / (left.sum() or 1.0))
        widest.append(place + n)
        return drawn

    monkeypatch.setattr(tree, "siblings", one_by_one)
    assert distance(
        lambda: FixedLength(2), rule=RULES[f"tree-{children}"](SETTINGS), n_tokens=3,
        drafter=partial(TreeDrafter, children=children, width=2, n_nodes=6),
    ) < 1e-12  # fmt: skip
    assert max(widest) == 4


@pytest.mark.parametrize("rule", COUPLED)
@pytest.mark.parametrize("policy", POLICIES)
def test_under_a_coupled_rule_every_policy_gives_the_plain_text(rule, policy):
    target, draft = random_model(1, scale=2.0), random_model(51, scale=2.0)
    chosen = replace(SETTINGS, entropy_bound=0.4)
    for seed in range(10):
        settings = {"rule": RULES[rule](SETTINGS), "sampling": PLAIN, "max_tokens": 40, "seed": seed}
        *_, plain = decode(target, NoDraft(), [0], **settings)
        *events, fast = decode(
            target, ModelDrafter(draft, 6), [0], lengths=POLICIES[policy](chosen), clock=Hurried(), **settings
        )
        assert fast.ids == plain.ids
        assert any(isinstance(event, Step) and event.n_drafted for event in events)


@pytest.mark.parametrize("rule", EXACT)
def test_a_policy_that_remembers_how_far_unjudged_drafts_went_cannot_bias_the_text(rule):
    assert distance(Remembering, rule=RULES[rule](SETTINGS)) < 1e-12


def test_to_drop_a_token_for_its_value_would_bias_the_text():
    """What `behind` rules out, see `Dropping`; the enumeration would find it."""
    target, draft = random_model(1, 3, scale=1.0), random_model(51, 3, scale=1.0)
    found = law_of_loop(
        target, lambda: Dropping(draft, 3), lambda: FixedLength(2), n_tokens=3, rule=ExactRejection(), sampling=PLAIN
    )
    plain = plain_law(lambda ids: target.logits([0, *ids])[0], PLAIN, length=2, vocab_size=3)
    assert total_variation(found, plain) > 0.01


def test_numbers_of_a_draft_are_new_at_every_step_because_a_policy_may_have_seen_the_last():
    """What stopped an earlier draft is in its length, and would say something of the same number drawn again."""
    assert distance(Remembering, noise=KeyedByPosition) > 0.01
    assert distance(lambda: FixedLength(3), noise=KeyedByPosition) < 1e-12  # which remembers nothing


def test_block_verification_needs_new_numbers_at_every_step_whatever_the_policy():
    """It looks at the numbers of positions behind the last that it keeps, which the next step looks at again."""
    block = RULES["block"](SETTINGS)
    assert distance(lambda: FixedLength(3), rule=block, noise=KeyedByPosition) > 0.05
    assert distance(lambda: FixedLength(3), rule=block) < 1e-12
