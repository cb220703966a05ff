"""What a pass reads and writes, as numbers and addresses, for compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import llvmlite.ir as ir
import numpy as np
from numba import types
from numpy.typing import NDArray

from engine.models.jit.decorators import compiled, instruction
from engine.models.jit.stages import Stage
from engine.models.jit.vectors import FLOAT, LONG, constant, load
from engine.models.jit.views import integer_at

__all__ = ["N_COUNTERS", "Work", "column", "numbers_of", "place_of", "work_at"]

N_COLUMNS = len(Stage._fields)
N_COUNTERS = 24  # int64


class Work(NamedTuple):
    """A pass of `n_rows` rows; of numbers and addresses alone.

    Arrays would be counted by every function that holds them, in memory that all threads write to: that took longer
    than many a part. Whoever makes one of these keeps the arrays until the pass is over.
    """

    counters: int  # int64, all zero when the pass begins
    stages: int
    over: int  # the number of the line behind the last stage
    # the architecture
    width: int
    ffn_width: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    room_of_head: int  # numbers that a key or value takes in the cache, filled up with zeros
    epsilon: np.float32
    # the pass
    start: int  # the slot of the first row
    slots: int  # int32: those that a row sees, itself last
    row_slots: int  # how far apart those of two rows are
    n_slots: int  # int64, for each row
    cosines: int  # (n_rows, n_turned)
    sines: int
    n_turned: int
    keys: int  # (layers, n_kv_heads, n_room, room_of_head)
    values: int
    n_room: int
    tokens: int  # int64, for each row, if the first stage embeds them
    inputs: int  # (n_rows, n_inputs), if the first stage rounds them
    n_inputs: int
    taps: int  # int64, for each layer: the place of the stream behind it in `streams`, or -1
    streams: int  # (taps, n_rows, width)
    n_rows: int
    results: int  # of the last product, (rows of it, row_results)
    row_results: int
    best_tokens: int  # int64, for each row of results, if a stage looks for them
    best_logits: int  # (rows of results, 2): that of the token, and the highest of the others
    # memory for what stages leave to the next
    hidden: int  # (n_rows, width): the residual stream
    normed: int  # (n_rows, width)
    numbers: int  # int8 (n_rows, row_bytes)
    row_bytes: int
    factors: int  # (n_rows, row_factors)
    row_factors: int
    outputs: int  # (n_rows, row_outputs)
    row_outputs: int
    queries: int  # (n_rows, n_heads, room_of_head), filled up with zeros
    gathered: int  # the same
    gated: int  # (n_rows, ffn_width)
    scores: int  # (threads, n_scores / row_scores, row_scores)
    n_scores: int
    row_scores: int


@compiled
def column(work: Work, stage: int, place: int) -> int:
    """A number of a stage's line."""
    found: int = integer_at(work.stages + 8 * (stage * N_COLUMNS + place))
    return found


def numbers_of(**fields: Any) -> NDArray[np.int64]:
    """All fields of a `Work` but `counters`, behind zeros for these, as compiled code is handed them.

    A Python object for each number would take longer to hand over than some stages take.
    """
    epsilon = int(np.float32(fields["epsilon"]).view(np.int32))
    own = Work(**{**fields, "counters": 0, "epsilon": epsilon})
    return np.array([0] * N_COUNTERS + list(own[1:]), np.int64)


def place_of(field: str) -> int:
    """Where `numbers_of` has a field."""
    return N_COUNTERS - 1 + Work._fields.index(field)


@instruction
def work_at(_: Any, address: Any) -> Any:
    """The `Work` whose numbers are at an address, where its counters are, too."""
    kinds = [types.float32 if name == "epsilon" else types.int64 for name in Work._fields]
    whole = types.NamedTuple(kinds, Work)

    def write(context: Any, builder: ir.IRBuilder, signature: Any, given: Sequence[ir.Value]) -> Any:
        values = [given[0]]
        for name, kind in zip(Work._fields[1:], kinds[1:], strict=True):
            place = builder.add(given[0], constant(8 * place_of(name)))
            values.append(load(builder, place, FLOAT if kind == types.float32 else LONG, align=8))
        return context.make_tuple(builder, whole, values)

    return whole(types.uintp), write
