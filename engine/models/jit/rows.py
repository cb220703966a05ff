"""What is done to a row between two products of a pass, compiled: see `stages` for the kinds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.models.jit.decorators import compiled
from engine.models.jit.dot_products import BLOCK
from engine.models.jit.numbers import attend, gate, norm, rotate, round_row
from engine.models.jit.shared import stay_apart
from engine.models.jit.stages import ADD, KEEP, columns
from engine.models.jit.unpacked import unpack_row
from engine.models.jit.views import bytes_at, floats_at, integer_at
from engine.models.jit.work import Work, column

__all__ = [
    "attend_part", "embed_row", "finish_guess", "gate_row", "norm_row", "place_row", "round_gathered", "round_of",
]  # fmt: skip

Array = NDArray[np.float32]

FIRST_ROW, LAYER, PART_SIZE = columns("first_row", "layer", "part_size")
WEIGHTS, BITS, N_BLOCKS = columns("weights", "bits", "n_blocks")
CHANGE, TAP, SCALE = columns("change", "tap", "scale")
BIAS, N_BIASED, QUERY_NORM, KEY_NORM = columns("bias", "n_biased", "query_norm", "key_norm")


@compiled
def round_of(work: Work, row: int, values: Array) -> None:
    """Round what stands for a row, to be the input of the next product."""
    n_blocks = -(-len(values) // BLOCK)
    numbers = bytes_at(work.numbers + row * work.row_bytes, n_blocks * BLOCK)
    round_row(values, numbers, floats_at(work.factors + 4 * row * work.row_factors, 2 * n_blocks))


@compiled
def embed_row(work: Work, stage: int, row: int) -> None:
    """The residual stream of a row begins with the embedding of its token."""
    weights, bits, n_blocks = column(work, stage, WEIGHTS), column(work, stage, BITS), column(work, stage, N_BLOCKS)
    stream = floats_at(work.hidden + 4 * row * work.width, work.width)
    unpack_row(weights, bits, n_blocks, integer_at(work.tokens + 8 * row), stream)


@compiled
def norm_row(work: Work, stage: int, row: int) -> None:
    """The residual stream, as the stage changes it before its norm; it is shown, if asked for, normed and rounded."""
    stay_apart()
    width, n_layers = work.width, column(work, stage, TAP)
    stream = floats_at(work.hidden + 4 * row * width, width)
    outputs = floats_at(work.outputs + 4 * row * work.row_outputs, width)
    change = column(work, stage, CHANGE)
    if change == ADD:
        for place in range(width):
            stream[place] += outputs[place]
    elif change != KEEP:
        for place in range(width):
            stream[place] = outputs[place]
    if n_layers:
        tap = integer_at(work.taps + 8 * (n_layers - 1))
        if tap >= 0:
            shown = floats_at(work.streams + 4 * (tap * work.n_rows + row) * width, width)
            for place in range(width):
                shown[place] = stream[place]
    normed = floats_at(work.normed + 4 * row * width, width)
    norm(stream, floats_at(column(work, stage, SCALE), width), work.epsilon, normed)
    round_of(work, row, normed)


@compiled
def place_row(work: Work, stage: int, row: int) -> None:
    """Finish queries, keys and values; the queries are left scaled, keys and values where they belong."""
    stay_apart()
    heads, kv_heads, dim, room = work.n_heads, work.n_kv_heads, work.head_dim, work.room_of_head
    outputs = floats_at(work.outputs + 4 * row * work.row_outputs, (heads + 2 * kv_heads) * dim)
    bias = floats_at(column(work, stage, BIAS), column(work, stage, N_BIASED))
    for place in range(len(bias)):
        outputs[place] += bias[place]
    cosines = floats_at(work.cosines + 4 * row * work.n_turned, work.n_turned)
    sines = floats_at(work.sines + 4 * row * work.n_turned, work.n_turned)
    factor = np.float32(1) / np.sqrt(np.float32(dim))
    slot = column(work, stage, LAYER) * kv_heads * work.n_room + work.start + row
    for head in range(heads + kv_heads):
        part = outputs[head * dim : (head + 1) * dim]
        weight = column(work, stage, QUERY_NORM if head < heads else KEY_NORM)
        if weight:
            norm(part, floats_at(weight, dim), work.epsilon, part)
        rotate(part, cosines, sines)
        if head < heads:
            query = floats_at(work.queries + 4 * (row * heads + head) * room, dim)
            for place in range(dim):
                query[place] = part[place] * factor
        else:
            _copy(part, work.keys + 4 * (slot + (head - heads) * work.n_room) * room)
    for head in range(kv_heads):
        part = outputs[(heads + kv_heads + head) * dim : (heads + kv_heads + head + 1) * dim]
        _copy(part, work.values + 4 * (slot + head * work.n_room) * room)


@compiled
def _copy(values: Array, address: int) -> None:
    places = floats_at(address, len(values))
    for place in range(len(values)):
        places[place] = values[place]


@compiled
def attend_part(work: Work, stage: int, part: int, thread: int) -> None:
    """What some heads of a row, which share keys and values, gather from the cache."""
    stay_apart()
    heads, room, n_together = work.n_heads, work.room_of_head, column(work, stage, PART_SIZE)
    parts_of_row = heads // n_together
    row, first = column(work, stage, FIRST_ROW) + part // parts_of_row, part % parts_of_row * n_together
    source = (column(work, stage, LAYER) * work.n_kv_heads + first // (heads // work.n_kv_heads)) * work.n_room
    place = 4 * (row * heads + first) * room
    attend(
        work.queries + place,
        n_together,
        room,
        work.keys + 4 * source * room,
        work.values + 4 * source * room,
        work.slots + 4 * row * work.row_slots,
        integer_at(work.n_slots + 8 * row),
        work.scores + 4 * thread * work.n_scores,
        work.row_scores,
        work.gathered + place,
    )


@compiled
def round_gathered(work: Work, row: int) -> None:
    """Round what all heads of a row have gathered, side by side."""
    heads, dim, room = work.n_heads, work.head_dim, work.room_of_head
    gathered = floats_at(work.gathered + 4 * row * heads * room, heads * room)
    if dim != room:
        for head in range(1, heads):
            for place in range(dim):
                gathered[head * dim + place] = gathered[head * room + place]
    round_of(work, row, gathered[: heads * dim])


@compiled
def gate_row(work: Work, row: int) -> None:
    """SiLU of half the outputs times the other half, rounded."""
    stay_apart()
    width = work.ffn_width
    gated = floats_at(work.gated + 4 * row * width, width)
    gate(floats_at(work.outputs + 4 * row * work.row_outputs, 2 * width), gated)
    round_of(work, row, gated)


@compiled
def finish_guess(work: Work, stage: int, row: int) -> None:
    """Of a draft head: its output, the guess that is made of it in `normed`, and that rounded."""
    width = work.width
    state = floats_at(work.hidden + 4 * row * width, width)
    outputs = floats_at(work.outputs + 4 * row * work.row_outputs, width)
    guess = floats_at(work.normed + 4 * row * width, width)
    scale, bias = floats_at(column(work, stage, SCALE), width), floats_at(column(work, stage, BIAS), width)
    for place in range(width):
        state[place] += outputs[place]
        guess[place] = state[place] * scale[place] + bias[place]
    round_of(work, row, guess)
