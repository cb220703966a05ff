"""A drafter that is not sure stands back; how far it goes never depends on the token that it drew."""

from __future__ import annotations

import numpy as np
import pytest

from engine.build import check
from engine.drafters.combined import LookupFirst
from engine.drafters.confidence import chance_of_keeping
from engine.drafters.eagle import EagleDrafter
from engine.drafters.head_network import Guess
from engine.drafters.none import NoDraft
from engine.errors import SettingError
from engine.lengths import ALWAYS, Confident
from engine.sampling import Noise, Sampling
from engine.spec import RunSpec

WIDTH = 4


class Target:
    name = "target"
    vocab_size = 6
    context_length = 64

    def logits(self, context, last=1):
        return np.zeros((last, self.vocab_size))

    def fork(self):
        return self

    def hidden(self, context, last=1, taps=()):
        return np.zeros((last, 1 + len(taps), WIDTH), np.float32)


class Rows:
    vocab_size = 6
    head = np.zeros((6, WIDTH), np.float32)

    def embedding(self, tokens):
        return np.zeros((len(tokens), WIDTH), np.float32)


class Weights:
    taps = (0,)
    width = WIDTH


class Network:
    """Gives its guesses one by one, however it is asked, and counts."""

    def __init__(self, *chances: float) -> None:
        self.chances = list(chances)
        self.n_asked = 0

    def read(self, start, features, embeddings):
        self.n_asked += 1
        best = self.chances[self.n_asked - 1]
        logits = np.log([best, *[(1 - best) / 9] * 9])
        return Guess(np.zeros(WIDTH, np.float32), np.arange(10), logits)

    def go_on(self, place, state, embedding):
        return self.read(place, None, None)


def drafted(network, go_on, temperature=0.0, seed=0):
    drafter = EagleDrafter(Target(), Weights(), Rows(), network)
    return drafter.propose(
        [1, 2, 3], 4, sampling=Sampling(temperature), noise=Noise(seed), end_tokens=frozenset(), go_on=go_on
    )


@pytest.mark.parametrize(
    ("chances", "n_drafted", "n_asked"),
    [
        ((0.9, 0.9, 0.9, 0.9), 4, 4),
        ((0.9, 0.9, 0.4, 0.9), 2, 3),  # 0.81, then 0.32
        ((0.3, 0.9), 1, 1),  # kept as a first guess, and none behind it is asked for
        ((0.17,), 1, 1),
        ((0.2,), 1, 1),
    ],
)
def test_a_head_goes_on_while_its_guesses_are_likely_kept(chances, n_drafted, n_asked):
    network = Network(*chances)
    assert len(drafted(network, Confident()).tokens) == n_drafted
    assert network.n_asked == n_asked


def test_a_head_that_is_not_sure_of_its_first_guess_makes_none():
    draft = drafted(Network(0.14), Confident())
    assert draft.tokens == ()
    assert "not sure" in draft.note


def test_always_sure_goes_to_the_draft_length():
    assert len(drafted(Network(*[0.2] * 4), ALWAYS).tokens) == 4


@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_how_far_a_head_goes_does_not_depend_on_what_it_drew(temperature):
    drafts = [drafted(Network(0.8, 0.7, 0.3, 0.9), Confident(), temperature, seed) for seed in range(30)]
    assert len({draft.tokens[0] for draft in drafts}) > 1
    assert len({len(draft.tokens) for draft in drafts}) == 1


@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0])
def test_the_chance_of_keeping_is_a_probability_that_rises_with_the_best(temperature):
    chances = [
        chance_of_keeping(np.log([best, *[(1 - best) / 5] * 5]), temperature) for best in (0.2, 0.4, 0.6, 0.8, 0.99)
    ]
    assert chances == sorted(chances)
    assert chances[0] > 0
    assert chances[-1] <= 1
    if temperature == 0:
        assert chances[0] == pytest.approx(0.2)


def test_a_temperature_just_above_zero_changes_the_chance_but_little():
    logits = np.log([0.5, 0.3, 0.2])
    assert chance_of_keeping(logits, 0.01) == pytest.approx(chance_of_keeping(logits, 0), abs=0.01)


def looked_up(context, limit, go_on, temperature=0.0):
    return (
        LookupFirst(NoDraft())
        .propose(context, limit, sampling=Sampling(temperature), noise=Noise(0), end_tokens=frozenset(), go_on=go_on)
        .tokens
    )


def test_a_lookup_goes_as_far_as_the_length_of_its_match_makes_likely():
    behind = [31, 32, 33, 34, 35, 36, 37, 38]
    two, eight = [1, 2], [3, 4, 5, 6, 7, 8, 1, 2]
    confident = Confident()
    assert looked_up([9, *two, *behind, 10, *two], 8, confident) == (31,)  # 0.49, then 0.49 x 0.65
    assert looked_up([*eight, *behind, 10, *eight], 8, confident) == tuple(behind)  # 0.95 each
    assert looked_up([9, *two, *behind, 10, *two], 8, ALWAYS) == tuple(behind)
    assert looked_up([*eight, *behind, 10, *eight], 8, confident, 1.0) == (31, 32)  # 0.70, 0.49, 0.34


def test_an_unknown_policy_is_refused():
    with pytest.raises(SettingError, match="'bold'; choose confident"):
        check(RunSpec(prompt="x", length_policy="bold"))
