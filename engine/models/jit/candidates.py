"""Which tokens a draft head means, compiled: those of the highest rough scores, and their exact logits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.models.jit.decorators import compiled, compiled_for_finite
from engine.models.jit.numbers import dot
from engine.models.jit.shared import stay_apart
from engine.models.jit.stages import columns
from engine.models.jit.views import floats_at, integer_at, integers_at
from engine.models.jit.work import Work, column

__all__ = ["Candidates", "best_places", "choose", "least_score", "score_part"]

Array = NDArray[np.float32]

N_BINS = 2048  # that scores are sorted into
N_RUNS = 16  # that scores are cut into, to look at the highest of each place in a run first


class Candidates(NamedTuple):
    """What tokens are chosen from and where they are put, as numbers and addresses."""

    n_found: int  # written by a pass
    n_tokens: int
    n_wanted: int
    tokens: int  # int64 (n_tokens,): ids
    rows: int  # float32 (n_tokens, width): of the target's head
    places: int  # int64 (n_tokens,), written: of the tokens that were found, in rising order
    found: int  # int64 (n_tokens,), written: their ids
    logits: int  # float32 (n_tokens,), written


N_FIELDS = len(Candidates._fields)
N_FOUND, N_TOKENS, N_WANTED, TOKENS, ROWS, PLACES, FOUND, LOGITS = range(N_FIELDS)
FIRST_ROW, N_PARTS, CHOICE = columns("first_row", "n_parts", "choice")


@compiled
def choose(work: Work, stage: int) -> None:
    """The tokens of the highest scores, which the product before has left in `results`."""
    stay_apart()
    choice = integers_at(column(work, stage, CHOICE), N_FIELDS)
    n_tokens = choice[N_TOKENS]
    places = integers_at(choice[PLACES], n_tokens)
    choice[N_FOUND] = best_places(floats_at(work.results, n_tokens), choice[N_WANTED], places)


@compiled
def score_part(work: Work, stage: int, part: int) -> None:
    """The ids and logits of some of the tokens that were found."""
    stay_apart()
    choice = integers_at(column(work, stage, CHOICE), N_FIELDS)
    n_found, n_parts, width = choice[N_FOUND], column(work, stage, N_PARTS), work.width
    guess = floats_at(work.normed + 4 * column(work, stage, FIRST_ROW) * width, width)
    places, found = integers_at(choice[PLACES], n_found), integers_at(choice[FOUND], n_found)
    logits = floats_at(choice[LOGITS], n_found)
    for number in range(part * n_found // n_parts, (part + 1) * n_found // n_parts):
        place = places[number]
        found[number] = integer_at(choice[TOKENS] + 8 * place)
        logits[number] = dot(floats_at(choice[ROWS] + 4 * width * place, width), guess)


@compiled
def best_places(scores: Array, n_wanted: int, places: NDArray[np.int64]) -> int:
    """Write the places of the highest scores, in rising order; how many there are.

    They are `n_wanted` or a few more; all, if a score is not a number.
    """
    least = _low_score(scores, n_wanted)
    n_found = 0
    for place in range(len(scores)):
        if not scores[place] < least:
            places[n_found] = place
            n_found += 1
    chosen = np.empty(n_found, np.float32)
    for number in range(n_found):
        chosen[number] = scores[places[number]]
    least = least_score(chosen, n_wanted)
    n_kept = 0
    for number in range(n_found):
        if not chosen[number] < least:
            places[n_kept] = places[number]
            n_kept += 1
    return n_kept


@compiled
def _low_score(scores: Array, n_wanted: int) -> np.float32:
    """A score that at least `n_wanted` reach, found with few looks at them all."""
    length = len(scores) // N_RUNS
    if length < n_wanted or not dot(scores, scores) < np.inf:  # few, or not all finite
        return least_score(scores, n_wanted)
    highest = np.full(length, -np.inf, np.float32)
    for run in range(N_RUNS):
        _raise(highest, scores[run * length : (run + 1) * length])
    return least_score(highest, n_wanted)


@compiled_for_finite
def _raise(highest: Array, scores: Array) -> None:
    for place in range(len(highest)):
        highest[place] = max(highest[place], scores[place])


@compiled
def least_score(scores: Array, n_wanted: int) -> np.float32:
    """A score that at least `n_wanted` of them reach, and not many more: the foot of a bin of a histogram.

    If a score is not finite, that score.
    """
    lowest: np.float32 = scores[0]
    highest: np.float32 = scores[0]
    score: np.float32
    for score in scores:
        if not abs(score) < np.inf:
            return score
        lowest, highest = min(lowest, score), max(highest, score)
    bins = np.float32(N_BINS) / (highest - lowest)
    if n_wanted >= len(scores) or not 0 < bins < np.inf:  # too near to each other, or too far apart
        return lowest
    counts = np.zeros(N_BINS + 1, np.int32)
    for score in scores:
        counts[int((score - lowest) * bins)] += 1
    n_found, foot = 0, N_BINS + 1
    while n_found < n_wanted:
        foot -= 1
        n_found += counts[foot]
    least = highest
    for score in scores:
        if score < least and int((score - lowest) * bins) >= foot:
            least = score
    return least
