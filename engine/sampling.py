"""From logits to a law, from a law to a token, and the random numbers in between.

`law` is the one place where temperature, top-k and top-p are applied: the target's rows, the
draft's rows, log-probabilities and the tests all go through it, so that both sides of every
acceptance test speak of the same processed distribution.  Temperature 0 gives a one-hot law
and pays for no softmax.

Order of processing: temperature, top-k, top-p (as in vLLM and Hugging Face transformers).
Random numbers are keyed by (seed, position, purpose), and those of a draft by its step as well, with
numpy's counter-based Philox, after Salmon et al., *Parallel Random Numbers: As Easy as 1, 2, 3*
(SC 2011); no stream is shared, so a draw does not depend on what happened before it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from numbers import Integral
from typing import Self

import numpy as np
from numpy.typing import NDArray

from engine.errors import SettingError

__all__ = ["Dense", "Law", "Noise", "OneHot", "Purpose", "Rows", "Sampling", "Sparse", "law"]

Array = NDArray[np.float64]

BLOCK = 256  # ids whose probabilities are summed first when a token is drawn
PLACES = 2**32  # a step is shorter, so that no two places of a tree share a number
LOWEST_FOR_FLOAT32 = 0.01  # temperature from which float32 scores are exponentiated as they are


@dataclass(frozen=True, slots=True)
class Sampling:
    """How logits become a law.

    Parameters
    ----------
    temperature : float, default 0.7
        Logits are divided by it; 0 means the argmax (lowest id on a tie). Finite, not negative.
    top_k : int, default 0
        Keep the k most probable tokens, and all that tie with the k-th; 0 keeps every token.
    top_p : float, default 1.0
        Keep the smallest set of most probable tokens whose mass reaches top_p; in (0, 1].

    Raises
    ------
    SettingError
        If a value is outside its range.

    Examples
    --------
    >>> Sampling(temperature=0).greedy
    True
    """

    temperature: float = 0.7
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise SettingError(
                f"temperature is {self.temperature}; it must be a number from 0 up "
                "(0 takes the most probable token, 1 leaves the model's law as it is)"
            )
        if not isinstance(self.top_k, Integral) or self.top_k < 0:
            raise SettingError(f"top_k is {self.top_k}; it must be a whole number from 0 up (0 keeps every token)")
        if not 0 < self.top_p <= 1:
            raise SettingError(f"top_p is {self.top_p}; it must be above 0 and at most 1 (1 keeps every token)")

    @property
    def greedy(self) -> bool:
        """Whether the law is one-hot at the argmax."""
        return self.temperature == 0


@dataclass(frozen=True, slots=True)
class OneHot:
    """The law of a deterministic choice: all mass on one token, no row of vocabulary size."""

    token: int

    def prob(self, token: int) -> float:
        """Probability of `token`."""
        return 1.0 if token == self.token else 0.0

    def draw(self, uniform: float) -> int:
        """The token; `uniform` is not needed."""
        return self.token

    def dense(self, vocab_size: int) -> Array:
        """The row, shape (vocab_size,)."""
        row = np.zeros(vocab_size)
        row[self.token] = 1.0
        return row


@dataclass(frozen=True, slots=True, eq=False)
class Dense:
    """A law given by its row of probabilities, float64, shape (vocab,)."""

    probs: Array

    def prob(self, token: int) -> float:
        """Probability of `token`; 0 for an id behind the end of the row."""
        return float(self.probs[token]) if token < len(self.probs) else 0.0

    def draw(self, uniform: float) -> int:
        """The token at `uniform` in [0, 1) of the cumulative law; never one of probability 0."""
        return _place(self.probs, uniform)

    def dense(self, vocab_size: int) -> Array:
        """The row, shape (vocab_size,)."""
        return self.probs


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """A law over a few tokens; all others have probability 0, and nothing of vocabulary size is built.

    Parameters
    ----------
    tokens : array of int, shape (n,)
        Distinct ids, in rising order.
    probs : array of float64, shape (n,)
        Their probabilities, which sum to 1.

    Examples
    --------
    >>> some = Sparse(np.array([2, 5]), np.array([0.25, 0.75]))
    >>> some.prob(5), some.prob(3), some.draw(0.1)
    (0.75, 0.0, 2)
    """

    tokens: NDArray[np.int64]
    probs: Array

    @classmethod
    def over(cls, tokens: NDArray[np.int64], of_places: Law) -> Law:
        """The law of `tokens[i]`, where `of_places` is the law of i."""
        if isinstance(of_places, OneHot):
            return OneHot(int(tokens[of_places.token]))
        return cls(tokens, of_places.dense(len(tokens)))

    def prob(self, token: int) -> float:
        """Probability of `token`; 0 for one that is not among the few."""
        place = int(np.searchsorted(self.tokens, token))
        return float(self.probs[place]) if place < len(self.tokens) and self.tokens[place] == token else 0.0

    def draw(self, uniform: float) -> int:
        """The token at `uniform` in [0, 1) of the cumulative law; never one of probability 0."""
        return int(self.tokens[_place(self.probs, uniform)])

    def dense(self, vocab_size: int) -> Array:
        """The row, shape (vocab_size,)."""
        row = np.zeros(vocab_size)
        row[self.tokens] = self.probs
        return row


Law = OneHot | Dense | Sparse


def _place(probs: Array, uniform: float) -> int:
    """The index at `uniform` in [0, 1) of the cumulative law; never one of probability 0."""
    ends = np.cumsum(np.add.reduceat(probs, np.arange(0, len(probs), BLOCK)))  # of each block of ids
    aim = uniform * ends[-1]
    block = int(np.searchsorted(ends, aim, side="right"))
    if block == len(ends):  # uniform * total was rounded up to the total
        return int(np.flatnonzero(probs)[-1])
    inside = probs[block * BLOCK : (block + 1) * BLOCK]
    before = ends[block - 1] if block else 0.0
    place = int(np.searchsorted(np.cumsum(inside), aim - before, side="right"))
    if place == len(inside):  # the block's sum was rounded up
        place = int(np.flatnonzero(inside)[-1])
    return block * BLOCK + place


def law(logits: NDArray[np.floating], sampling: Sampling) -> Law:
    """The processed law of one row of logits.

    Parameters
    ----------
    logits : array, shape (vocab,)
        Natural-log scores up to a constant; -inf bans a token. At least one must be finite.
    sampling : Sampling

    Returns
    -------
    Law
        `OneHot` at temperature 0, else `Dense` with a float64 row that sums to 1. Scores in float32
        are exponentiated in float32, which is several times as fast: each probability is then good
        to about six digits, and both sides of an acceptance test use the same.

    Examples
    --------
    >>> law(np.log([0.5, 0.3, 0.2]), Sampling(temperature=1, top_k=2)).dense(3).round(3).tolist()
    [0.625, 0.375, 0.0]
    >>> law(np.array([1.0, 3.0, 3.0]), Sampling(temperature=0))
    OneHot(token=1)
    """
    if sampling.greedy:
        return OneHot(int(np.argmax(logits)))
    scores = np.asarray(logits)
    if scores.dtype != np.float32 or sampling.temperature < LOWEST_FOR_FLOAT32:
        scores = scores.astype(np.float64)
    if 0 < sampling.top_k < len(scores):
        kth = np.partition(scores, -sampling.top_k)[-sampling.top_k]
        scores = np.where(scores >= kth, scores, -np.inf)
    with np.errstate(over="ignore"):  # a score too far below the best becomes -inf, and its probability 0
        scores = (scores - scores.max()) / sampling.temperature
    probs = np.exp(scores).astype(np.float64, copy=False)
    probs /= probs.sum()
    if sampling.top_p < 1:
        probs = _nucleus(probs, sampling.top_p)
    return Dense(probs)


def _nucleus(probs: Array, top_p: float) -> Array:
    """The smallest set of most probable tokens whose mass reaches top_p, normalised; lowest ids first on a tie."""
    # Tokens below this have less than (1 - top_p) / 2 together, so that the set is among the others.
    likely = np.flatnonzero(probs >= (1 - top_p) / (2 * len(probs)))
    order = likely[np.argsort(-probs[likely], kind="stable")]
    n_kept = int(np.searchsorted(np.cumsum(probs[order]), top_p)) + 1
    kept = order[:n_kept]
    nucleus = np.zeros_like(probs)
    nucleus[kept] = probs[kept] / probs[kept].sum()
    return nucleus


class Rows:
    """The target's rows of one step, each processed only when a rule asks for it.

    Parameters
    ----------
    logits : array, shape (n, vocab)
        Row i belongs to position i of the step; the last one is the row behind the draft.
    sampling : Sampling
    """

    def __init__(self, logits: NDArray[np.floating], sampling: Sampling) -> None:
        self._logits = logits
        self._sampling = sampling
        self._laws: dict[int, Law] = {}

    def law(self, index: int) -> Law:
        """The processed law at position `index` of the step."""
        if index not in self._laws:
            self._laws[index] = law(self._logits[index], self._sampling)
        return self._laws[index]

    def row(self, index: int) -> NDArray[np.floating]:
        """The raw logits at position `index` of the step, shape (vocab,)."""
        row: NDArray[np.floating] = self._logits[index]
        return row

    def logit(self, index: int, token: int) -> float:
        """The raw logit of `token` at position `index` of the step."""
        return float(self._logits[index, token])

    def margin(self, index: int, token: int) -> float | None:
        """How far the logit of `token` is ahead of the best other one at temperature 0, where rounding may flip two.

        None at other temperatures, and where no other token is possible.
        """
        if not self._sampling.greedy:
            return None
        row = self._logits[index]
        best_other = max(row[:token].max(initial=-np.inf), row[token + 1 :].max(initial=-np.inf))
        return float(row[token] - best_other) if np.isfinite(best_other) else None


class Purpose(IntEnum):
    """What a random number is for: no two purposes at one position share a draw."""

    DRAFT = 0
    ACCEPT = 1
    TARGET = 2


@dataclass(frozen=True, slots=True)
class Noise:
    """Uniform numbers in [0, 1) keyed by (seed, position, purpose), and those of a draft by its step as well.

    A position may be drafted several times, until a step gets to judge it. Its numbers for drafting and
    for accepting are new at every step (`of_step`), so that whoever has seen what became of an earlier
    guess, such as a length policy, knows nothing of the next. The target's number is the position's own.

    Parameters
    ----------
    seed : int
        A whole number from 0 to 2**64 - 1.
    step_start : int, optional
        The position at which the step begins; see `of_step`.

    Raises
    ------
    SettingError
        If the seed is out of range.

    Examples
    --------
    >>> noise = Noise(7)
    >>> noise.uniform(12, Purpose.DRAFT) == noise.of_step(12).uniform(12, Purpose.DRAFT)
    True
    >>> noise.of_step(12).uniform(13, Purpose.DRAFT) == noise.of_step(13).uniform(13, Purpose.DRAFT)
    False
    """

    seed: int
    step_start: int | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.seed, Integral) and 0 <= self.seed < 2**64):
            raise SettingError(f"seed is {self.seed}; it must be a whole number from 0 to 2**64 - 1")

    def of_step(self, start: int) -> Self:
        """The numbers of the step that begins at absolute position `start`."""
        return replace(self, step_start=start)

    def uniform(self, position: int, purpose: Purpose, place: int = 0) -> float:
        """The number for the token at absolute `position` (prompt included); in a tree, for one place of that depth."""
        return float(self._generator(position, purpose, place).random())

    def uniforms(self, n: int, position: int, purpose: Purpose, place: int = 0) -> Array:
        """As many numbers as asked for, the first of them that of `uniform`; shape (n,)."""
        return self._generator(position, purpose, place).random(n)

    def in_step(self, position: int, purpose: Purpose) -> int:
        """What tells the numbers of different steps for one position apart: the token's place in its step."""
        return 0 if self.step_start is None or purpose is Purpose.TARGET else position - self.step_start

    def draw(self, law: Law, position: int, purpose: Purpose, place: int = 0) -> int:
        """A token drawn from `law` with the number for that position, purpose and place."""
        return law.draw(self.uniform(position, purpose, place))

    def _generator(self, position: int, purpose: Purpose, place: int) -> np.random.Generator:
        counter: Sequence[int] = (0, position, int(purpose), self.in_step(position, purpose) + place * PLACES)
        return np.random.Generator(np.random.Philox(key=self.seed, counter=counter))
