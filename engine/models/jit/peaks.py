"""The best token of a row of logits, and the highest of its others, found where the row is made."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.models.jit.decorators import compiled
from engine.models.jit.numbers import highest, nothing
from engine.models.jit.shared import stay_apart
from engine.models.jit.stages import columns
from engine.models.jit.views import floats_at, integers_at
from engine.models.jit.work import Work, column

__all__ = ["find_peaks", "peaks_of_row"]

Array = NDArray[np.float32]

RUN = 256  # logits that are looked at in one go
N_VALUES = columns("n_values")[0]


@compiled
def peaks_of_row(work: Work, stage: int, row: int) -> None:
    """Of the results of the product before: those of one row."""
    stay_apart()
    logits = floats_at(work.results + 4 * row * work.row_results, column(work, stage, N_VALUES))
    integers_at(work.best_tokens, row + 1)[row] = find_peaks(logits, floats_at(work.best_logits + 8 * row, 2))


@compiled
def find_peaks(row: Array, two: Array) -> int:
    """The place of the highest number, the lowest on a tie; that number and the highest of the others into `two`.

    If a number of the row is none or without bounds, what is found means nothing, and `two` begins with none.
    """
    best, second, none = np.float32(-np.inf), np.float32(-np.inf), np.float32(0)
    best_block = 0
    for block in range(0, len(row), RUN):
        some = row[block : block + RUN]
        none += nothing(some)
        of_block = highest(some)
        if of_block > best:
            best, second, best_block = of_block, best, block
        else:
            second = max(second, of_block)
    found = best_block
    while row[found] != best and found < len(row) - 1:
        found += 1
    for place in range(best_block, min(best_block + RUN, len(row))):
        if place != found:
            second = max(second, row[place])
    two[0], two[1] = best + none, second
    return found
