"""A pass as a program of stages that several threads share, compiled.

The thread that was asked for the pass opens a stage, and every thread takes the next part that nobody
has taken, until none is left. So a helper that the system runs late, or not at all, costs speed and
nothing else; nobody waits but for parts that are being computed.

A ticket is the number of the stage, shifted, plus the part: one counter says both, so that a part can
never be taken for one of another stage.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.models.jit.candidates import choose, score_part
from engine.models.jit.decorators import compiled
from engine.models.jit.peaks import peaks_of_row
from engine.models.jit.product import multiply
from engine.models.jit.rows import (
    attend_part,
    embed_row,
    finish_guess,
    gate_row,
    norm_row,
    place_row,
    round_gathered,
    round_of,
)
from engine.models.jit.shared import (
    fetch_and_add,
    load_acquire,
    relax,
    stay_apart,
    store_release,
    yield_core,
)
from engine.models.jit.stages import (
    ATTEND,
    CHOOSE,
    EMBED,
    GATE,
    GUESS,
    HEAD,
    MULTIPLY,
    NORM,
    PEAKS,
    PLACE,
    ROUND_GATHERED,
    ROUND_INPUTS,
    ROUND_OUTPUTS,
    SCORE,
    columns,
    number,
)
from engine.models.jit.views import floats_at
from engine.models.jit.work import Work, column, work_at

__all__ = ["assist", "end", "run"]

SHIFT = 24
PART = (1 << SHIFT) - 1
PATIENCE = 4000  # looks at a counter before the core is offered to others
TICKET, DONE, HELPERS = 0, 64, 128  # bytes from the first counter: each has a cache line of its own

KIND, N_PARTS, FIRST_ROW = columns("kind", "n_parts", "first_row")
WEIGHTS, BITS, N_BLOCKS, N_PAIRS = columns("weights", "bits", "n_blocks", "n_pairs")
N_VALUES = columns("n_values")[0]
FIRST = number(0)  # part of a stage; and the thread that all others help


@compiled
def _compute(work: Work, stage: int, part: int, thread: int) -> None:
    """One part of a stage."""
    stay_apart()
    kind, row = column(work, stage, KIND), column(work, stage, FIRST_ROW) + part
    if kind in (MULTIPLY, HEAD):
        _multiply(work, stage, part)
    elif kind == ATTEND:
        attend_part(work, stage, part, thread)
    elif kind == NORM:
        norm_row(work, stage, row)
    elif kind == PLACE:
        place_row(work, stage, row)
    elif kind == ROUND_GATHERED:
        round_gathered(work, row)
    elif kind == GATE:
        gate_row(work, row)
    elif kind == GUESS:
        finish_guess(work, stage, row)
    elif kind == EMBED:
        embed_row(work, stage, row)
    elif kind == PEAKS:
        peaks_of_row(work, stage, part)
    elif kind == CHOOSE:
        choose(work, stage)
    elif kind == SCORE:
        score_part(work, stage, part)
    elif kind == ROUND_INPUTS:
        round_of(work, row, floats_at(work.inputs + 4 * row * work.n_inputs, work.n_inputs))
    elif kind == ROUND_OUTPUTS:
        n_values = column(work, stage, N_VALUES)
        round_of(work, row, floats_at(work.outputs + 4 * row * work.row_outputs, n_values))


@compiled
def _multiply(work: Work, stage: int, part: int) -> None:
    first_row, n_pairs = column(work, stage, FIRST_ROW), column(work, stage, N_PAIRS)
    results, row_results = work.outputs + 4 * first_row * work.row_outputs, work.row_outputs
    if column(work, stage, KIND) == HEAD:
        results, row_results = work.results, work.row_results
    behind = column(work, stage, N_PARTS) - part
    multiply(
        column(work, stage, WEIGHTS),
        column(work, stage, BITS),
        column(work, stage, N_BLOCKS),
        _first_pair(n_pairs, behind, behind + part),
        _first_pair(n_pairs, behind - 1, behind + part),
        work.n_rows - first_row,
        work.numbers + first_row * work.row_bytes,
        work.row_bytes,
        work.factors + 4 * first_row * work.row_factors,
        work.row_factors,
        results,
        row_results,
    )


@compiled
def _first_pair(n_pairs: int, behind: int, n_parts: int) -> int:
    """The first pair of groups of a part: parts become smaller, so that no thread waits long for another."""
    return n_pairs - n_pairs * behind * behind // (n_parts * n_parts)


@compiled
def _take_part(work: Work, thread: int) -> bool:
    """Compute the next part of the stage that is open; whether there was one.

    The stage may have changed between the look at the counter and the taking: the ticket says which it is.
    """
    ticket = load_acquire(work.counters + TICKET)
    if ticket & PART >= column(work, ticket >> SHIFT, N_PARTS):
        return False
    ticket = fetch_and_add(work.counters + TICKET, 1)
    if ticket & PART >= column(work, ticket >> SHIFT, N_PARTS):
        return False
    _compute(work, ticket >> SHIFT, ticket & PART, thread)
    fetch_and_add(work.counters + DONE, 1)
    return True


@compiled
def _share(work: Work, stage: int, n_parts: int) -> None:
    """Open a stage, work on it with whoever helps, and come back when it is done."""
    stay_apart()
    store_release(work.counters + DONE, 0)
    store_release(work.counters + TICKET, stage << SHIFT)
    while _take_part(work, FIRST):
        pass
    looks = FIRST
    while load_acquire(work.counters + DONE) < n_parts:
        looks = _wait(looks)


@compiled
def _wait(looks: int) -> int:
    if looks < PATIENCE:
        relax()
    else:
        yield_core()
    return looks + 1


@compiled
def assist(numbers: NDArray[np.int64], stages: NDArray[np.int64]) -> None:
    """What a helper does: take parts of every stage until the pass is over.

    The stages are given once more as an array, to be there for a helper that comes when all others are gone.
    """
    work = work_at(numbers.ctypes.data)
    thread = fetch_and_add(work.counters + HELPERS, 1) + 1
    looks = FIRST
    while load_acquire(work.counters + TICKET) >> SHIFT != work.over:
        looks = FIRST if _take_part(work, thread) else _wait(looks)


def end(numbers: NDArray[np.int64], stages: NDArray[np.int64]) -> None:
    """Tell the helpers that the pass is over."""
    numbers[TICKET // 8] = len(stages) - 1 << SHIFT


@compiled
def run(numbers: NDArray[np.int64]) -> None:
    """All stages of a pass, one after the other; what has one part is not worth a helper."""
    work = work_at(numbers.ctypes.data)
    for stage in range(1, work.over):
        n_parts = column(work, stage, N_PARTS)
        if n_parts == 1:
            _compute(work, stage, FIRST, FIRST)
        else:
            _share(work, stage, n_parts)
    store_release(work.counters + TICKET, work.over << SHIFT)
