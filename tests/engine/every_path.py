"""The exact law of what `decode` emits: every path of the whole loop, with its probability.

Random numbers are replaced by numbers that are not decided yet. Where the code compares one, or draws a
token with it, the path splits, and the number is narrowed to the part of [0, 1) that leads there; what is
asked later under the same key gets the same, narrowed number. So nothing is known here of any rule,
drafter or policy, and a number that is used twice shows as what it is.
"""

from collections import defaultdict
from unittest import mock

import numpy as np

from engine.decode import decode
from engine.sampling import Noise

SMALLEST = 1e-14  # of the unit: an edge that rounding made


class Undecided:
    """A uniform number of which nothing is known but that it lies in [low, high), times `scale`."""

    def __init__(self, path, low=0.0, high=1.0):
        self.path, self.low, self.high, self.scale = path, low, high, 1.0
        self.whole = self

    def __mul__(self, factor):
        product = Undecided(self.path)
        product.whole, product.scale = self.whole, self.scale * factor
        return product

    __rmul__ = __mul__

    def __lt__(self, value):
        """Whether it is below `value`: one of two branches, by their lengths."""
        whole = self.whole
        edge = whole.high if self.scale == 0 and value > 0 else float(value) / self.scale if self.scale else whole.low
        return whole.split([whole.low, min(max(edge, whole.low), whole.high), whole.high]) == 0

    def __ge__(self, value):
        return not self < value

    def split(self, edges):
        """Which stretch between these edges it lies in."""
        lengths = np.diff(edges)
        lengths[lengths < SMALLEST] = 0.0
        place = self.path.branch(lengths / lengths.sum())
        self.low, self.high = edges[place], edges[place + 1]
        return place


class Path:
    """One way through the loop: it follows `choices`, then takes the first branch everywhere."""

    def __init__(self, choices):
        self.choices, self.taken, self.weight, self.open = choices, [], 1.0, []

    def branch(self, probs):
        possible = [place for place, prob in enumerate(probs) if prob > 0]
        n_taken = len(self.taken)
        place = self.choices[n_taken] if n_taken < len(self.choices) else possible[0]
        if n_taken >= len(self.choices):
            self.open += [[*self.taken, other] for other in possible[1:]]
        self.taken.append(place)
        self.weight *= float(probs[place])
        return place


class Branching(Noise):
    """Noise whose numbers are not decided yet, by the same keys as the real one's."""

    def uniform(self, position, purpose, place=0):
        key = (position, purpose, self.in_step(position, purpose), place)
        return self.numbers.setdefault(key, Undecided(self.path))

    def draw(self, law, position, purpose, place=0):
        number = self.uniform(position, purpose, place)
        probs = law.dense(self.vocab_size)
        edges = np.append(0.0, np.cumsum(probs) / probs.sum())
        edges[-1] = 1.0
        return number.split(np.clip(edges, number.low, number.high))


def law_of_loop(target, drafter_for, policy_for, *, n_tokens, rule=None, noise=Branching, clock_for=None, **settings):
    """The law of the first `n_tokens` tokens that `decode` emits, an array of so many axes."""
    law = defaultdict(float)
    waiting = [[]]
    while waiting:
        path = Path(waiting.pop())
        with (
            mock.patch.object(noise, "path", path, create=True),
            mock.patch.object(noise, "numbers", {}, create=True),
            mock.patch.object(noise, "vocab_size", target.vocab_size, create=True),
            mock.patch("engine.decode.Noise", noise),
        ):
            *_, finished = decode(
                target, drafter_for(), [0], lengths=policy_for(), max_tokens=n_tokens, rule=rule,
                **({"clock": clock_for()} if clock_for else {}), **settings,
            )  # fmt: skip
        assert not finished.error, finished.error
        law[finished.ids] += path.weight
        waiting += path.open
    table = np.zeros((target.vocab_size,) * n_tokens)
    for ids, prob in law.items():
        table[ids] = prob
    return table
