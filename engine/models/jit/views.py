"""Arrays seen at an address, as instructions: nobody counts who refers to them, which threads would wait for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.ir as ir
from numba import types
from numba.np.arrayobj import make_array, populate_array

from engine.models.jit.decorators import instruction
from engine.models.jit.vectors import LONG, constant, load, pointer

__all__ = ["bytes_at", "floats_at", "integer_at", "integers_at"]


def _view(element: types.Type, size: int) -> Callable[..., Any]:
    """A word for the array of so many elements at an address, which somebody else keeps alive."""
    kind = types.Array(element, 1, "C")

    def write(context: Any, builder: ir.IRBuilder, signature: Any, given: Sequence[ir.Value]) -> Any:
        array = make_array(kind)(context, builder)
        data = pointer(builder, given[0], context.get_data_type(element))
        populate_array(array, data, [given[1]], [constant(size)], constant(size), None)
        return array._getvalue()

    def view(_: Any, address: Any, length: Any) -> Any:
        return kind(types.uintp, types.intp), write

    word: Callable[..., Any] = instruction(view)
    return word


floats_at = _view(types.float32, 4)
bytes_at = _view(types.int8, 1)
integers_at = _view(types.int64, 8)


@instruction
def integer_at(_: Any, address: Any) -> Any:
    """The int64 at an address."""

    def write(context: Any, builder: ir.IRBuilder, signature: Any, given: Sequence[ir.Value]) -> ir.Value:
        return load(builder, given[0], LONG, align=8)

    return types.int64(types.uintp), write
