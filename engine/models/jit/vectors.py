"""Words for writing in LLVM's language: vectors of 256 bits, addresses, loops.

Addresses are whole numbers: `array.ctypes.data` and what is added to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import llvmlite.ir as ir
from numba.core import cgutils

__all__ = [
    "BYTE", "BYTES", "FLOAT", "FLOATS", "INT", "INTS", "LONG", "SHORTS", "VECTOR_BYTES",
    "constant", "counted", "every", "function", "load", "pointer", "spread",
]  # fmt: skip

BYTE, SHORT, INT, LONG, FLOAT = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.IntType(64), ir.FloatType()
BYTES, SHORTS = ir.VectorType(BYTE, 32), ir.VectorType(SHORT, 16)
INTS, FLOATS = ir.VectorType(INT, 8), ir.VectorType(FLOAT, 8)
VECTOR_BYTES = 32


def constant(value: int) -> ir.Constant:
    """A whole number of 64 bits."""
    return ir.Constant(LONG, value)


def every(kind: ir.VectorType, value: float) -> ir.Constant:
    """A vector of one value."""
    return ir.Constant(kind, [value] * kind.count)


def function(builder: ir.IRBuilder, name: str, result: ir.Type, *given: ir.Type) -> ir.Function:
    """An instruction or a function of the system, by its name."""
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, given), name)


def pointer(builder: ir.IRBuilder, address: ir.Value, kind: ir.Type) -> ir.Value:
    """What stands at an address."""
    return builder.inttoptr(address, kind.as_pointer())


def load(builder: ir.IRBuilder, address: ir.Value, kind: ir.Type, align: int = 4) -> ir.Value:
    """The value at an address."""
    return builder.load(pointer(builder, address, kind), align=align)


@contextmanager
def counted(builder: ir.IRBuilder, stop: ir.Value, step: int) -> Iterator[ir.Value]:
    """A loop from 0 by `step` to below `stop`."""
    with cgutils.for_range_slice(builder, constant(0), stop, constant(step), LONG) as (index, _):
        yield index


def spread(builder: ir.IRBuilder, value: ir.Value, kind: ir.VectorType) -> ir.Value:
    """The value in every part of a vector."""
    nothing = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(nothing, value, ir.Constant(INT, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(INT, kind.count), [0] * kind.count))
