"""A length policy may remember what it likes: the exact rule stays exact, by enumeration of the whole loop."""

from dataclasses import replace
from functools import partial
from unittest import mock

import numpy as np
import pytest

from engine.acceptance import ExactRejection
from engine.decode import decode
from engine.drafters import ModelDrafter, NoDraft
from engine.drafters.tree import TreeDrafter
from engine.lengths import FixedLength, LengthPolicy
from engine.policies import POLICIES
from engine.rules import RULES
from engine.sampling import Sampling
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


class InTurn(Branching):
    """Tokens drawn without replacement are drawn in turn, which has the law of the largest Gumbel keys."""

    def uniforms(self, n, position, purpose, place=0):
        """Numbers for which the times that `siblings` puts in order are 1 / probability."""
        key = (position, purpose, self.in_step(position, purpose), place)
        assert key not in self.numbers
        self.numbers[key] = None
        return np.full(n, 1 - 1 / np.e)

    @classmethod
    def highest(cls, scores, n):
        chances = -1 / scores
        order = []
        for _ in range(min(n, len(scores))):
            order.append(cls.path.branch(chances / chances.sum()))
            chances[order[-1]] = 0.0
        return np.array(order)


def distance_of_trees(rule, width, policy="fixed"):
    """Of trees of at most six tokens that were drawn without replacement, with a pair for which the order matters."""
    with mock.patch("engine.drafters.siblings.highest", InTurn.highest):
        return distance(
            lambda: POLICIES[policy](SETTINGS), rule=RULES[rule](SETTINGS), seed=22, vocab_size=3, n_tokens=3,
            noise=InTurn, drafter=partial(TreeDrafter, children="distinct", width=width, n_nodes=6),
        )  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "width", "policy"),
    [
        ("tree-distinct", 3, "fixed"),
        ("tree-distinct", 3, "heuristic"),
        ("tree-distinct", 2, "fixed"),  # two guesses at the first place, and up to four behind them
        ("tree-independent", 3, "fixed"),
        ("tree-match", 3, "fixed"),
    ],
)
def test_trees_of_siblings_without_replacement_have_the_target_s_law(rule, width, policy):
    assert distance_of_trees(rule, width, policy) < 1e-12


def test_siblings_without_replacement_need_the_laws_that_they_were_drawn_from():
    with mock.patch("engine.drafters.siblings._without", lambda law, index: law):
        assert distance_of_trees("tree-distinct", 2) > 0.1


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
