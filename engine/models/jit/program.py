"""The forward pass as a program of stages that several threads share, compiled.

A stage is one product of a layer or its attention, cut into parts. The thread that was asked for the
pass opens a stage, and every thread takes the next part that nobody has taken, until none is left.
So a helper that the system runs late, or not at all, costs speed and nothing else; nobody waits but for
parts that are being computed. Between two stages the first thread alone does what is small.

A ticket is the number of the stage, shifted, plus the part: one counter says both, so that a part can
never be taken for one of another stage.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.models.jit.decorators import compiled
from engine.models.jit.numbers import attend_head, gate, norm, rotate
from engine.models.jit.product import Matrix, multiply, round_into
from engine.models.jit.shared import (
    fetch_and_add,
    load_acquire,
    relax,
    stay_apart,
    store_release,
    yield_core,
)

__all__ = ["N_COUNTERS", "Memory", "Pass", "Shape", "Weights", "Work", "assist", "end", "forward", "plan"]

Array = NDArray[np.float32]
Plan = tuple[NDArray[np.int64], NDArray[np.int64]]

QKV, ATTENTION, OUTPUT, GATE_UP, DOWN, HEAD = range(6)
N_STAGES = 5  # of a layer: all but the head
SHIFT = 24
PART = (1 << SHIFT) - 1
PATIENCE = 4000  # looks at a counter before the core is offered to others
N_COUNTERS = 16  # int64: two, each in a cache line of its own
TICKET, DONE = 0, 64  # bytes from the first counter


class Shape(NamedTuple):
    """The numbers of an architecture."""

    n_heads: int
    n_kv_heads: int
    head_dim: int
    ffn_width: int
    epsilon: np.float32


class Weights(NamedTuple):
    """A model, packed."""

    qkv: Matrix
    output: Matrix
    gate_up: Matrix
    down: Matrix
    head: Matrix
    attention_norm: Array  # (layers, width)
    ffn_norm: Array  # (layers, width)
    final_norm: Array  # (width,)
    query_norm: Array  # (layers, head_dim), or no columns
    key_norm: Array


class Memory(NamedTuple):
    """What the threads write to during a pass of n rows."""

    counters: NDArray[np.int64]
    numbers: NDArray[np.int8]  # (n, inputs of the widest matrix)
    factors: Array  # (n, 2 * blocks of it)
    outputs: Array  # (n, outputs of the widest matrix of a layer)
    gathered: Array  # (n, n_heads * head_dim)


class Pass(NamedTuple):
    """What is asked for."""

    start: int
    n_layers: int
    first_asked: int
    ways: NDArray[np.int32]  # (n, n): places of the block that a row sees, itself last
    n_ways: NDArray[np.int32]  # (n,)
    cosines: Array  # (n, n_dims / 2)
    sines: Array
    part_sizes: NDArray[np.int64]  # (6,): groups of outputs in a part of a product, by kind
    n_parts: NDArray[np.int64]  # (stages + 2,): of each stage; none before the first and behind the last


class Work(NamedTuple):
    """A pass, and all that it reads and writes."""

    shape: Shape
    weights: Weights
    memory: Memory
    asked: Pass
    keys: Array  # (layers, n_kv_heads, room, head_dim, filled up with zeros)
    values: Array
    logits: Array  # (rows asked for, vocabulary)


def plan(weights: Weights, n_heads: int, n_rows: int, n_layers: int, n_parts: int, *, with_head: bool) -> Plan:
    """The sizes of the parts of a stage by its kind, and how many parts each stage has; see `Pass`.

    A product is cut into about `n_parts`, attention into one for each row and query head.
    """
    matrices = {QKV: weights.qkv, OUTPUT: weights.output, GATE_UP: weights.gate_up, DOWN: weights.down}
    sizes = np.ones(N_STAGES + 1, np.int64)
    counts = np.full(N_STAGES + 1, n_rows * n_heads, np.int64)
    for kind, matrix in {**matrices, HEAD: weights.head}.items():
        n_groups = matrix.blocks.shape[1]
        sizes[kind] = -(-n_groups // n_parts)
        counts[kind] = -(-n_groups // sizes[kind])
    last = [counts[HEAD]] if with_head else []
    return sizes, np.array([0, *np.tile(counts[:N_STAGES], n_layers), *last, 0], np.int64)


@compiled
def _attention_part(work: Work, layer: int, part: int) -> None:
    shape, memory, asked = work.shape, work.memory, work.asked
    row, head = part // shape.n_heads, part % shape.n_heads
    first, size = head * shape.head_dim, shape.head_dim
    source = head // (shape.n_heads // shape.n_kv_heads)
    n_before, n_own = asked.start, asked.n_ways[row]
    slots = np.empty(n_before + n_own, np.int32)
    for place in range(n_before):
        slots[place] = place
    for place in range(n_own):
        slots[n_before + place] = n_before + asked.ways[row, place]
    keys, values = work.keys[layer, source], work.values[layer, source]
    attend_head(memory.outputs[row], first, size, keys, values, slots, memory.gathered[row])


@compiled
def _compute(stage: int, part: int, work: Work) -> None:
    """One part of a stage."""
    stay_apart()
    weights, memory, asked = work.weights, work.memory, work.asked
    layer, kind = (stage - 1) // N_STAGES, (stage - 1) % N_STAGES
    if kind == ATTENTION:
        _attention_part(work, layer, part)
        return
    first_row, results = 0, memory.outputs
    if layer == asked.n_layers:
        matrix, layer, kind, first_row, results = weights.head, 0, HEAD, asked.first_asked, work.logits
    elif kind == QKV:
        matrix = weights.qkv
    elif kind == OUTPUT:
        matrix = weights.output
    elif kind == GATE_UP:
        matrix = weights.gate_up
    else:
        matrix = weights.down
    size = asked.part_sizes[kind]
    multiply(matrix, layer, memory.numbers, memory.factors, first_row, results, part * size, size)


@compiled
def _take_part(work: Work) -> bool:
    """Compute the next part of the stage that is open; whether there was one.

    The stage may have changed between the look at the counter and the taking: the ticket says which it is.
    """
    counters = work.memory.counters.ctypes.data
    ticket = load_acquire(counters + TICKET)
    if ticket & PART >= work.asked.n_parts[ticket >> SHIFT]:
        return False
    ticket = fetch_and_add(counters + TICKET, 1)
    if ticket & PART >= work.asked.n_parts[ticket >> SHIFT]:
        return False
    _compute(ticket >> SHIFT, ticket & PART, work)
    fetch_and_add(counters + DONE, 1)
    return True


@compiled
def _share(stage: int, work: Work) -> None:
    """Open a stage, work on it with whoever helps, and come back when it is done."""
    stay_apart()
    counters = work.memory.counters.ctypes.data
    store_release(counters + DONE, 0)
    store_release(counters + TICKET, stage << SHIFT)
    while _take_part(work):
        pass
    looks = 0
    while load_acquire(counters + DONE) < work.asked.n_parts[stage]:
        looks = _wait(looks)


@compiled
def _wait(looks: int) -> int:
    if looks < PATIENCE:
        relax()
    else:
        yield_core()
    return looks + 1


@compiled
def assist(work: Work) -> None:
    """What a helper does: take parts of every stage until the pass is over."""
    counters = work.memory.counters.ctypes.data
    looks = 0
    over = len(work.asked.n_parts) - 1
    while load_acquire(counters + TICKET) >> SHIFT != over:
        looks = 0 if _take_part(work) else _wait(looks)


@compiled
def end(work: Work) -> None:
    """Tell the helpers that the pass is over."""
    store_release(work.memory.counters.ctypes.data + TICKET, (len(work.asked.n_parts) - 1) << SHIFT)


@compiled
def _place(work: Work, layer: int, row: int) -> None:
    """Finish the queries, keys and values of a row, and put keys and values where they belong."""
    shape, weights, asked = work.shape, work.weights, work.asked
    outputs, slot, heads, dim = work.memory.outputs[row], asked.start + row, shape.n_heads, shape.head_dim
    for place in range(weights.qkv.bias.shape[1]):
        outputs[place] += weights.qkv.bias[layer, place]
    for head in range(heads + shape.n_kv_heads):
        part = outputs[head * dim : (head + 1) * dim]
        if weights.query_norm.shape[1]:
            weight = weights.query_norm[layer] if head < heads else weights.key_norm[layer]
            norm(part, weight, shape.epsilon, part)
        rotate(part, asked.cosines[row], asked.sines[row])
    for head in range(shape.n_kv_heads):
        first = (heads + head) * dim
        work.keys[layer, head, slot, :dim] = outputs[first : first + dim]
        first += shape.n_kv_heads * dim
        work.values[layer, head, slot, :dim] = outputs[first : first + dim]


@compiled
def _add(outputs: Array, stream: Array) -> None:
    for place in range(len(stream)):
        stream[place] += outputs[place]


@compiled
def forward(work: Work, hidden: Array, taps: NDArray[np.int64], streams: Array, final: Array) -> None:
    """Run rows through layers, norm and head.

    `hidden`, shape (n, width), holds the embeddings and then the residual stream; `taps[layer]` is the place in
    `streams`, shape (taps, n, width), for the stream behind a layer, or -1; `final`, shape (n, width), gets the
    normed rows. The rows' own keys and values are added to those of the context.
    """
    shape, weights, memory, asked = work.shape, work.weights, work.memory, work.asked
    n_rows, width = hidden.shape
    normed = np.empty(width, np.float32)
    gated = np.empty(shape.ffn_width, np.float32)
    stage = 1  # nothing is open before
    for layer in range(asked.n_layers):
        for row in range(n_rows):
            norm(hidden[row], weights.attention_norm[layer], shape.epsilon, normed)
            round_into(normed, row, memory.numbers, memory.factors)
        _share(stage, work)
        for row in range(n_rows):
            _place(work, layer, row)
        _share(stage + 1, work)
        for row in range(n_rows):
            round_into(memory.gathered[row], row, memory.numbers, memory.factors)
        _share(stage + 2, work)
        for row in range(n_rows):
            _add(memory.outputs[row], hidden[row])
            norm(hidden[row], weights.ffn_norm[layer], shape.epsilon, normed)
            round_into(normed, row, memory.numbers, memory.factors)
        _share(stage + 3, work)
        for row in range(n_rows):
            gate(memory.outputs[row], gated)
            round_into(gated, row, memory.numbers, memory.factors)
        _share(stage + 4, work)
        for row in range(n_rows):
            _add(memory.outputs[row], hidden[row])
        if taps[layer] >= 0:
            streams[taps[layer]] = hidden
        stage += N_STAGES
    for row in range(n_rows):
        norm(hidden[row], weights.final_norm, shape.epsilon, final[row])
        round_into(final[row], row, memory.numbers, memory.factors)
    if asked.first_asked < n_rows:
        _share(stage, work)
    end(work)
