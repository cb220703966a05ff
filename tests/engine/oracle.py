"""Slow and independent counterparts of the engine: a law by loops, and the output law of a rule by bisection.

`output_law` knows no formula of speculative decoding. It hands draws to the rule's own `judge` and
measures, by bisection, how much of [0, 1) leads to each outcome.
"""

import math
from collections import defaultdict
from collections.abc import Callable
from itertools import product

import numpy as np

from engine.sampling import Purpose, Rows, Sampling
from engine.values import Draft

BELOW_ONE = 1 - 2**-53


def slow_law(logits, *, temperature=1.0, top_k=0, top_p=1.0):
    """Temperature, then top-k with ties, then top-p, one loop each, in exact sums."""
    scores = [float(logit) / temperature for logit in logits]
    best = max(scores)
    weights = [math.exp(score - best) for score in scores]
    if 0 < top_k < len(weights):
        kth = sorted(scores, reverse=True)[top_k - 1]
        weights = [weight if score >= kth else 0.0 for weight, score in zip(weights, scores, strict=True)]
    total = math.fsum(weights)
    probs = [weight / total for weight in weights]
    if top_p < 1:
        kept, mass = set(), 0.0
        for token in sorted(range(len(probs)), key=lambda token: (-probs[token], token)):
            kept.add(token)
            mass += probs[token]
            if mass >= top_p:
                break
        probs = [prob if token in kept else 0.0 for token, prob in enumerate(probs)]
        total = math.fsum(probs)
        probs = [prob / total for prob in probs]
    return probs


class Draws:
    """A stand-in for `Noise` that hands out chosen numbers, and fails on any that was not foreseen."""

    def __init__(self, accept=(), target=None, start=0):
        self._numbers = {(start + index, Purpose.ACCEPT): draw for index, draw in enumerate(accept)}
        self._target = target

    def uniform(self, position, purpose, place=0):
        assert place == 0, "a chain has one test at each position"
        if purpose is Purpose.TARGET and self._target is not None:
            return self._target
        return self._numbers[position, purpose]

    def draw(self, law, position, purpose):
        return law.draw(self.uniform(position, purpose))


def preimages(outcome: Callable[[float], object], halvings: int = 48) -> dict:
    """How much of [0, 1) a step function sends to each of its values, each sent from an interval."""
    lengths = defaultdict(float)

    def split(low: float, high: float, at_low: object, at_high: object) -> None:
        if at_low == at_high or high - low < 2.0**-halvings:
            lengths[at_low] += high - low
            return
        middle = (low + high) / 2
        at_middle = outcome(middle)
        split(low, middle, at_low, at_middle)
        split(middle, high, at_middle, at_high)

    for eighth in range(8):  # a few looks, so that an outcome that comes back is not passed over
        high = (eighth + 1) / 8
        split(eighth / 8, high, outcome(eighth / 8), outcome(min(high, BELOW_ONE)))
    return lengths


def output_law(rule, target_logits, draft_law, sampling, *, length, vocab_size, start=5):
    """The law of the first `length` + 1 tokens when one step is followed by plain sampling.

    `target_logits` and `draft_law` are functions of the tokens drafted so far. Returns an array of
    `length` + 1 axes.
    """
    law_of_output = np.zeros((vocab_size,) * (length + 1))

    def emit(tokens, weight):
        """Add the weight of `tokens`, continued by the target's own law up to the full length."""
        if len(tokens) == length + 1:
            law_of_output[tokens] += weight
            return
        for token, prob in enumerate(target_law(target_logits(tokens), sampling)):
            if prob:
                emit((*tokens, token), weight * prob)

    for tokens in product(range(vocab_size), repeat=length):
        laws = tuple(draft_law(tokens[:index]) for index in range(length))
        weight = math.prod(law.prob(token) for law, token in zip(laws, tokens, strict=True))
        if not weight:
            continue  # never drafted
        draft = Draft(tokens, laws)
        rows = Rows(np.array([target_logits(tokens[:index]) for index in range(length + 1)]), sampling)

        def judge(accept, target, draft=draft, rows=rows):
            return rule.judge(draft, rows, noise=Draws(accept, target, start), start=start)

        for index in range(length):
            kept = (0.0,) * index  # a draw of 0 keeps whatever can be kept
            fate = preimages(
                lambda draw, kept=kept, index=index: judge((*kept, draw, *[0.0] * length), 0.5).tested[index].accepted
            )
            if fate.get(False):
                recovered = preimages(lambda draw, kept=kept: judge((*kept, BELOW_ONE), draw).token)
                for token, share in recovered.items():
                    emit((*tokens[:index], token), weight * fate[False] * share)
            weight *= fate.get(True, 0.0)
            if not weight:
                break
        else:
            for token, share in preimages(lambda draw: judge((0.0,) * length, draw).token).items():
                emit((*tokens, token), weight * share)
    return law_of_output


def target_law(logits, sampling: Sampling):
    """The target's processed law as a list, at any temperature."""
    if sampling.temperature == 0:
        return [float(token == max(range(len(logits)), key=lambda t: (logits[t], -t))) for token in range(len(logits))]
    return slow_law(logits, temperature=sampling.temperature, top_k=sampling.top_k, top_p=sampling.top_p)


def plain_law(target_logits, sampling, *, length, vocab_size):
    """The law of the first `length` + 1 tokens of plain sampling from the target."""
    law = np.zeros((vocab_size,) * (length + 1))
    for tokens in product(range(vocab_size), repeat=length + 1):
        law[tokens] = math.prod(
            target_law(target_logits(tokens[:index]), sampling)[token] for index, token in enumerate(tokens)
        )
    return law


def total_variation(one, other):
    """Half the absolute difference."""
    return 0.5 * float(np.abs(np.asarray(one) - np.asarray(other)).sum())
