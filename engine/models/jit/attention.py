"""Attention over chosen places of a cache, as instructions: scores of a query, and a weighted sum of values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llvmlite.ir as ir
from numba import types
from numba.core import cgutils

from engine.models.jit.decorators import instruction
from engine.models.jit.vectors import (
    FLOAT,
    FLOATS,
    INT,
    LONG,
    VECTOR_BYTES,
    constant,
    counted,
    every,
    function,
    load,
    pointer,
    spread,
)  # fmt: skip

__all__ = ["ATTENTION_UNIT", "MORE_SLOTS", "dot_with_slots", "sum_of_slots"]

AT_ONCE = 8  # slots whose dot products come out as one vector; and vectors of a weighted sum
ATTENTION_UNIT = 8 * AT_ONCE  # keys and values are a multiple of so many numbers long
MORE_SLOTS = AT_ONCE - 1  # behind the last slot: they are read, and have results, that nobody looks at

N_NEAR = 16  # slots whose rows are read for all queries before the next

Vectors = list[ir.Value]


@instruction
def dot_with_slots(
    _: Any, queries: Any, n_queries: Any, rows: Any, slots: Any, n_slots: Any, length: Any, results: Any,
    row_results: Any,
) -> Any:  # fmt: skip
    """The dot products of some queries with some of the rows behind an address.

    Given are addresses of float32, of int32 slots and of float32 results, of which those of two queries are
    `row_results` apart; all rows are `length` long, a multiple of `ATTENTION_UNIT`. Slots and the results of a query
    have room for `MORE_SLOTS` more.
    """

    def write(context: Any, builder: ir.IRBuilder, signature: Any, given: Sequence[ir.Value]) -> Any:
        queries, n_queries, rows, slots, n_slots, length, results, row_results = given
        width, distance = builder.mul(length, constant(4)), builder.mul(row_results, constant(4))
        sums = _Sums(builder)
        with counted(builder, n_slots, AT_ONCE) as place:
            offset = builder.mul(place, constant(4))
            own = [_row(builder, rows, builder.add(slots, offset), ahead, width) for ahead in range(AT_ONCE)]
            with counted(builder, n_queries, 1) as number:
                query = builder.add(queries, builder.mul(number, width))
                sums.clear()
                with counted(builder, width, VECTOR_BYTES) as part:
                    numbers = load(builder, builder.add(query, part), FLOATS)
                    for slot, row in enumerate(own):
                        sums.add(slot, numbers, load(builder, builder.add(row, part), FLOATS))
                at = builder.add(builder.add(results, builder.mul(number, distance)), offset)
                builder.store(_totals(builder, sums.values()), pointer(builder, at, FLOATS), align=4)
        return context.get_dummy_value()

    address, size = types.uintp, types.intp
    return types.void(address, size, address, address, size, size, address, size), write


@instruction
def sum_of_slots(
    _: Any, weights: Any, row_weights: Any, n_queries: Any, rows: Any, slots: Any, n_slots: Any, length: Any,
    results: Any,
) -> Any:  # fmt: skip
    """Add some of the rows behind an address, each times its weight, to what stands for each query; see above.

    The slots are added one after the other; some at a time for all queries, as long as their rows are near.
    """

    def write(context: Any, builder: ir.IRBuilder, signature: Any, given: Sequence[ir.Value]) -> Any:
        weights, row_weights, n_queries, rows, slots, n_slots, length, results = given
        width, distance = builder.mul(length, constant(4)), builder.mul(row_weights, constant(4))
        sums = _Sums(builder)
        with counted(builder, n_slots, N_NEAR) as first:
            behind = builder.sub(n_slots, first)
            n_own = builder.select(builder.icmp_signed("<", behind, constant(N_NEAR)), behind, constant(N_NEAR))
            near = builder.add(slots, builder.mul(first, constant(4)))
            with counted(builder, n_queries, 1) as number:
                own = builder.add(weights, builder.add(builder.mul(number, distance), builder.mul(first, constant(4))))
                result = builder.add(results, builder.mul(number, width))
                with counted(builder, width, 4 * ATTENTION_UNIT) as offset:
                    places = [
                        builder.add(builder.add(result, offset), constant(VECTOR_BYTES * part))
                        for part in range(AT_ONCE)
                    ]
                    sums.read(places)
                    with counted(builder, n_own, 1) as place:
                        at = builder.mul(place, constant(4))
                        row = builder.add(_row(builder, rows, builder.add(near, at), 0, width), offset)
                        weight = spread(builder, load(builder, builder.add(own, at), FLOAT), FLOATS)
                        for part in range(AT_ONCE):
                            numbers = load(builder, builder.add(row, constant(VECTOR_BYTES * part)), FLOATS)
                            sums.add(part, weight, numbers)
                    for at, total in zip(places, sums.values(), strict=True):
                        builder.store(total, pointer(builder, at, FLOATS), align=4)
        return context.get_dummy_value()

    address, size = types.uintp, types.intp
    return types.void(address, size, size, address, address, size, size, address), write


class _Sums:
    """Vectors that products are added to, enough of them that none waits for the one before it."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        self._builder = builder
        self._places = [cgutils.alloca_once(builder, FLOATS) for _ in range(AT_ONCE)]
        self._multiply_add = function(builder, "llvm.fma.v8f32", FLOATS, FLOATS, FLOATS, FLOATS)

    def clear(self) -> None:
        for place in self._places:
            self._builder.store(every(FLOATS, 0.0), place)

    def read(self, addresses: Sequence[ir.Value]) -> None:
        for place, address in zip(self._places, addresses, strict=True):
            self._builder.store(load(self._builder, address, FLOATS), place)

    def add(self, part: int, left: ir.Value, right: ir.Value) -> None:
        total = self._builder.load(self._places[part])
        self._builder.store(self._builder.call(self._multiply_add, [left, right, total]), self._places[part])

    def values(self) -> Vectors:
        return [self._builder.load(place) for place in self._places]


def _row(builder: ir.IRBuilder, rows: ir.Value, slots: ir.Value, ahead: int, width: ir.Value) -> ir.Value:
    """The address of the row that one of the slots names."""
    slot = builder.sext(load(builder, builder.add(slots, constant(4 * ahead)), INT), LONG)
    return builder.add(rows, builder.mul(slot, width))


def _totals(builder: ir.IRBuilder, vectors: Vectors) -> ir.Value:
    """The sums of the eight parts of eight vectors, as one vector: neighbours are added, then pairs, then halves."""
    for size in (1, 2, 4):
        vectors = [_added(builder, vectors[place], vectors[place + 1], size) for place in range(0, len(vectors), 2)]
    return vectors[0]


def _added(builder: ir.IRBuilder, left: ir.Value, right: ir.Value, size: int) -> ir.Value:
    """Runs of `size` parts, each added to the one behind it: first of the left, then of the right, in turn."""
    firsts = [place for place in range(8) if place // size % 2 == 0]
    runs = [firsts[place : place + size] for place in range(0, 4, size)]
    order = [place for run in runs for place in (*run, *(8 + part for part in run))]
    first, second = (
        builder.shuffle_vector(left, right, ir.Constant(ir.VectorType(INT, 8), [place + behind for place in order]))
        for behind in (0, size)
    )
    return builder.fadd(first, second)
