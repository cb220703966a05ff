"""Slow and independent counterparts of the engine: a law by loops, and the output law of a rule by bisection.

`judged_chances` knows no formula of speculative decoding. It hands numbers to the rule's own `judge` and
measures, by bisection, how much of [0, 1) leads to each outcome. `output_law` adds up what comes of it.
A `Sampling` with penalties is a law of the tokens so far: `context` is what stands before the first token.
"""

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict
from itertools import product

import numpy as np

from engine.sampling import Purpose, Rows, Sampling
from engine.values import Draft

BELOW_ONE = 1 - 2**-53


def slow_penalised(logits, context, *, repetition_penalty, frequency_penalty, presence_penalty, prompt_length):
    """The logits behind the penalties, token by token."""
    output = list(context)[prompt_length:]
    scores = []
    for token, logit in enumerate(logits):
        score = float(logit)
        if token in context:
            score = score / repetition_penalty if score > 0 else score * repetition_penalty
        for _ in range(output.count(token)):
            score -= frequency_penalty
        if token in output:
            score -= presence_penalty
        scores.append(score)
    return scores


def slow_integer_weights(logits, temperature):
    """Exponentials in units of 2**-31, each in Python's whole numbers."""
    weights = []
    for logit in logits:
        depth = (max(logits) - logit) / temperature * 4096 / math.log(2)
        octaves, rest = divmod(round(depth) if depth < 2**17 else 2**17 - 1, 4096)
        weights.append(round(2 ** (31 - rest / 4096)) >> octaves)
    return weights


def slow_law(
    logits, *, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, repetition_penalty=1.0, frequency_penalty=0.0,
    presence_penalty=0.0, arithmetic="float", prompt_length=0, context=(),
):  # fmt: skip
    """Penalties, temperature, min-p, top-k with ties, top-p, one loop each, in exact sums; temperature 0 as well."""
    penalties = {"frequency_penalty": frequency_penalty, "presence_penalty": presence_penalty}
    logits = slow_penalised(
        logits, context, repetition_penalty=repetition_penalty, **penalties, prompt_length=prompt_length
    )
    if temperature == 0:
        best = max(range(len(logits)), key=lambda token: (logits[token], -token))
        return [float(token == best) for token in range(len(logits))]
    scores = [logit / temperature for logit in logits]
    best = max(scores)
    weights = [math.exp(score - best) for score in scores]
    if arithmetic == "integer":
        weights = [float(weight) for weight in slow_integer_weights(logits, temperature)]
    least = min_p * max(weights)
    weights = [weight if weight >= least else 0.0 for weight in weights]
    if 0 < top_k < len(weights):
        alive = sorted((score for score, weight in zip(scores, weights, strict=True) if weight), reverse=True)
        kth = alive[min(top_k, len(alive)) - 1]
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
        if purpose == Purpose.TARGET and self._target is not None:
            return self._target
        return self._numbers[position, purpose]

    def draw(self, law, position, purpose):
        return law.draw(self.uniform(position, purpose))


class Chosen:
    """A stand-in for `Noise` with a number for every position and purpose; it notes for which it had none."""

    def __init__(self, numbers, other):
        self._numbers, self._other = numbers, other
        self.missing = []

    def uniform(self, position, purpose, place=0):
        if (position, purpose) not in self._numbers:
            self.missing.append((position, purpose))
        return self._numbers.get((position, purpose), self._other)

    def draw(self, law, position, purpose):
        return law.draw(self.uniform(position, purpose))


def cells(outcome: Callable[[float], object], halvings: int = 48):
    """The intervals of [0, 1) on which a step function is constant: (low, high, value), in rising order."""
    found = []

    def split(low: float, high: float, at_low: object, at_high: object) -> None:
        if at_low == at_high or high - low < 2.0**-halvings:
            if found and found[-1][2] == at_low:
                low = found.pop()[0]
            found.append((low, high, at_low))
            return
        middle = (low + high) / 2
        at_middle = outcome(middle)
        split(low, middle, at_low, at_middle)
        split(middle, high, at_middle, at_high)

    looks = [outcome(min(eighth / 8, BELOW_ONE)) for eighth in range(9)]
    for eighth in range(8):  # a few looks, so that an outcome that comes back is not passed over
        split(eighth / 8, (eighth + 1) / 8, looks[eighth], looks[eighth + 1])
    return found


def preimages(outcome: Callable[[float], object]) -> dict:
    """How much of [0, 1) a step function sends to each of its values."""
    lengths = defaultdict(float)
    for low, high, value in cells(outcome):
        lengths[value] += high - low
    return lengths


def judged_chances(rule, draft, rows, *, start=5) -> dict:
    """How probable each (tokens kept, token of the target) is, by bisection of every number that `judge` asks for.

    One number after the other, in the order in which the rule asks, is cut into the intervals that make no
    difference, whichever of two values the numbers after it have; then the next one is, within each of them.
    """
    probable = defaultdict(float)

    def outcome(numbers, other):
        noise = Chosen(numbers, other)
        verdict = rule.judge(draft, rows, noise=noise, start=start)
        return (verdict.n_accepted, verdict.token), noise.missing

    def explore(numbers, weight):
        told, missing = outcome(numbers, BELOW_ONE)
        if not missing:
            probable[told] += weight
            return
        asked = missing[0]
        others = (0.0, BELOW_ONE) if len(missing) > 1 or asked[1] == Purpose.ACCEPT else (0.0,)
        fate = cells(lambda number: tuple(outcome({**numbers, asked: number}, other)[0] for other in others))
        for low, high, _ in fate:
            explore({**numbers, asked: (low + high) / 2}, weight * (high - low))

    explore({}, 1.0)
    return probable


def told_chances(rule, draft, rows, vocab_size) -> dict:
    """The same from the rule's own `chances`."""
    probable = defaultdict(float)
    for n_accepted, (chance, law) in enumerate(rule.chances(draft, rows)):
        for token in range(vocab_size):
            probable[n_accepted, token] += chance * law.prob(token)
    return probable


def rows_of(target_logits, tokens, sampling, context=()):
    """The target's rows at every position of a draft, and behind it."""
    logits = np.array([target_logits(tokens[:index]) for index in range(len(tokens) + 1)])
    return Rows(logits, sampling, lambda row: (*context, *tokens[:row]))


def output_law(rule, target_logits, draft_law, sampling, *, length, vocab_size, told=False, continued=None, context=()):
    """The law of the first `length` + 1 tokens when one step is followed by plain sampling.

    `target_logits` and `draft_law` are functions of the tokens drafted so far. The step is measured (`judged_chances`),
    or taken from the rule's own word (`told_chances`), which is much faster. `continued` gives another law than the
    target's to what follows the step. Returns an array of `length` + 1 axes.
    """
    law_of_output = np.zeros((vocab_size,) * (length + 1))
    start = len(context) or 5
    continued = continued or (lambda tokens: target_law(target_logits(tokens), sampling, (*context, *tokens)))

    def emit(tokens, weight):
        """Add the weight of `tokens`, continued up to the full length."""
        if len(tokens) == length + 1:
            law_of_output[tokens] += weight
            return
        for token, prob in enumerate(continued(tokens)):
            if prob:
                emit((*tokens, token), weight * prob)

    for tokens in product(range(vocab_size), repeat=length):
        laws = tuple(draft_law(tokens[:index]) for index in range(length))
        weight = math.prod(law.prob(token) for law, token in zip(laws, tokens, strict=True))
        if not weight:
            continue  # never drafted
        draft = Draft(tokens, laws)
        rows = rows_of(target_logits, tokens, sampling, context)
        fates = told_chances(rule, draft, rows, vocab_size) if told else judged_chances(rule, draft, rows, start=start)
        for (n_accepted, token), share in fates.items():
            emit((*tokens[:n_accepted], token), weight * share)
    return law_of_output


def target_law(logits, sampling: Sampling, context=()):
    """The target's processed law as a list, at any temperature."""
    settings = asdict(sampling)
    del settings["judged_at"]  # of no use to a law
    return slow_law(logits, **settings, context=context)


def plain_law(target_logits, sampling, *, length, vocab_size, context=()):
    """The law of the first `length` + 1 tokens of plain sampling from the target."""
    law = np.zeros((vocab_size,) * (length + 1))
    for tokens in product(range(vocab_size), repeat=length + 1):
        law[tokens] = math.prod(
            target_law(target_logits(tokens[:index]), sampling, (*context, *tokens[:index]))[token]
            for index, token in enumerate(tokens)
        )
    return law


def total_variation(one, other):
    """Half the absolute difference."""
    return 0.5 * float(np.abs(np.asarray(one) - np.asarray(other)).sum())
