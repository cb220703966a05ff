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
    sum_of,
)  # fmt: skip

__all__ = ["ATTENTION_UNIT", "dot_with_slots", "sum_of_slots"]

N_SUMS = 4
ATTENTION_UNIT = 8 * N_SUMS  # keys and values are a multiple of so many numbers long


@instruction
def dot_with_slots(_: Any, query: Any, rows: Any, slots: Any, n_slots: Any, length: Any, results: Any) -> Any:
    """The dot products of a query with some of the rows behind an address.

    Given are addresses of float32, of int32 slots and of float32 results; all rows are `length` long, a multiple of
    `ATTENTION_UNIT`.
    """

    def write(context: Any, builder: ir.IRBuilder, signature: Any, given: Sequence[ir.Value]) -> Any:
        query, rows, slots, n_slots, length, results = given
        width = builder.mul(length, constant(4))
        sums = _Sums(builder)
        with counted(builder, n_slots, 1) as place:
            row = builder.add(rows, builder.mul(_slot(builder, slots, place), width))
            sums.clear()
            with counted(builder, width, 4 * ATTENTION_UNIT) as offset:
                for part in range(N_SUMS):
                    at = builder.add(offset, constant(VECTOR_BYTES * part))
                    left = load(builder, builder.add(query, at), FLOATS)
                    right = load(builder, builder.add(row, at), FLOATS)
                    sums.add(part, left, right)
            first, second, third, fourth = sums.values()
            total = builder.fadd(builder.fadd(first, second), builder.fadd(third, fourth))
            at = pointer(builder, builder.add(results, builder.mul(place, constant(4))), FLOAT)
            builder.store(sum_of(builder, total), at, align=4)
        return context.get_dummy_value()

    address, size = types.uintp, types.intp
    return types.void(address, address, address, size, size, address), write


@instruction
def sum_of_slots(_: Any, weights: Any, rows: Any, slots: Any, n_slots: Any, length: Any, results: Any) -> Any:
    """The sum of some of the rows behind an address, each times its weight; see `dot_with_slots`."""

    def write(context: Any, builder: ir.IRBuilder, signature: Any, given: Sequence[ir.Value]) -> Any:
        weights, rows, slots, n_slots, length, results = given
        width = builder.mul(length, constant(4))
        sums = _Sums(builder)
        with counted(builder, width, 4 * ATTENTION_UNIT) as offset:
            sums.clear()
            with counted(builder, n_slots, 1) as place:
                row = builder.add(rows, builder.mul(_slot(builder, slots, place), width))
                weight = load(builder, builder.add(weights, builder.mul(place, constant(4))), FLOAT)
                weight = spread(builder, weight, FLOATS)
                for part in range(N_SUMS):
                    at = builder.add(offset, constant(VECTOR_BYTES * part))
                    sums.add(part, weight, load(builder, builder.add(row, at), FLOATS))
            for part, total in enumerate(sums.values()):
                at = builder.add(offset, constant(VECTOR_BYTES * part))
                builder.store(total, pointer(builder, builder.add(results, at), FLOATS), align=4)
        return context.get_dummy_value()

    address, size = types.uintp, types.intp
    return types.void(address, address, address, size, size, address), write


class _Sums:
    """Vectors that products are added to, enough of them that none waits for the one before it."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        self._builder = builder
        self._places = [cgutils.alloca_once(builder, FLOATS) for _ in range(N_SUMS)]
        self._multiply_add = function(builder, "llvm.fma.v8f32", FLOATS, FLOATS, FLOATS, FLOATS)

    def clear(self) -> None:
        for place in self._places:
            self._builder.store(every(FLOATS, 0.0), place)

    def add(self, part: int, left: ir.Value, right: ir.Value) -> None:
        total = self._builder.load(self._places[part])
        self._builder.store(self._builder.call(self._multiply_add, [left, right, total]), self._places[part])

    def values(self) -> list[ir.Value]:
        return [self._builder.load(place) for place in self._places]


def _slot(builder: ir.IRBuilder, slots: ir.Value, place: ir.Value) -> ir.Value:
    return builder.sext(load(builder, builder.add(slots, builder.mul(place, constant(4))), INT), LONG)
