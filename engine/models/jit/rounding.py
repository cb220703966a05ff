"""Rounding of float32 to 8 bits, as instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llvmlite.ir as ir
from numba import types

from engine.models.jit.decorators import instruction
from engine.models.jit.vectors import (
    BYTE,
    FLOATS,
    INT,
    INTS,
    VECTOR_BYTES,
    constant,
    every,
    function,
    load,
    pointer,
    spread,
)  # fmt: skip

__all__ = ["largest_of_block", "round_block"]

N_VECTORS = 4  # of a block of 32
EIGHT_BYTES = ir.VectorType(BYTE, 8)


@instruction
def largest_of_block(_: Any, values: Any) -> Any:
    """The largest absolute value of the 32 float32 at an address; any, if one is not a number."""

    def write(context: Any, builder: ir.IRBuilder, signature: Any, given: Sequence[ir.Value]) -> ir.Value:
        largest = function(builder, "llvm.x86.avx.max.ps.256", FLOATS, FLOATS, FLOATS)
        without_sign = every(INTS, 0x7FFFFFFF)
        sizes = [
            builder.bitcast(builder.and_(builder.bitcast(part, INTS), without_sign), FLOATS)
            for part in _parts(builder, given[0])
        ]
        pairs = [builder.call(largest, sizes[:2]), builder.call(largest, sizes[2:])]
        return _folded(builder, builder.call(largest, pairs), lambda left, right: builder.call(largest, [left, right]))

    return types.float32(types.uintp), write


@instruction
def round_block(_: Any, values: Any, inverse: Any, numbers: Any) -> Any:
    """Multiply the 32 float32 at an address, round to whole numbers, ties to even, and store them in 8 bits each.

    They must be from -128 to 127 then; their sum comes back.
    """

    def write(context: Any, builder: ir.IRBuilder, signature: Any, given: Sequence[ir.Value]) -> ir.Value:
        values, inverse, numbers = given
        nearest = function(builder, "llvm.x86.avx.cvt.ps2dq.256", INTS, FLOATS)
        factor, total = spread(builder, inverse, FLOATS), None
        for place, part in enumerate(_parts(builder, values)):
            whole = builder.call(nearest, [builder.fmul(part, factor)])
            total = whole if total is None else builder.add(total, whole)
            at = pointer(builder, builder.add(numbers, constant(8 * place)), EIGHT_BYTES)
            builder.store(builder.trunc(whole, EIGHT_BYTES), at, align=1)
        return _folded(builder, total, builder.add)

    return types.int32(types.uintp, types.float32, types.uintp), write


def _parts(builder: ir.IRBuilder, address: ir.Value) -> list[ir.Value]:
    places = (builder.add(address, constant(VECTOR_BYTES * place)) for place in range(N_VECTORS))
    return [load(builder, place, FLOATS) for place in places]


def _folded(builder: ir.IRBuilder, vector: ir.Value, together: Any) -> ir.Value:
    """What is made of all eight parts of a vector, halves first."""
    nothing = ir.Constant(vector.type, ir.Undefined)
    for distance in (4, 2, 1):
        order = ir.Constant(ir.VectorType(INT, 8), [(part + distance) % 8 for part in range(8)])
        vector = together(vector, builder.shuffle_vector(vector, nothing, order))
    return builder.extract_element(vector, ir.Constant(INT, 0))
