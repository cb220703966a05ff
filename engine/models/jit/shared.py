"""What threads that share work say to each other, and what else numba has no word for, as instructions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.ir as ir
from numba import types

from engine.models.jit.decorators import instruction
from engine.models.jit.vectors import FLOAT, INT, LONG, function, pointer

__all__ = ["bits_as_float", "fetch_and_add", "load_acquire", "relax", "stay_apart", "store_release", "yield_core"]


@instruction
def bits_as_float(_: Any, bits: Any) -> Any:
    """The float32 that has the bits of an int32."""
    return types.float32(types.int32), lambda context, builder, signature, given: builder.bitcast(given[0], FLOAT)


@instruction
def fetch_and_add(_: Any, address: Any, amount: Any) -> Any:
    """What stood at the address of an int64 before `amount` was added to it, in one step for all threads."""

    def write(context: Any, builder: ir.IRBuilder, signature: Any, given: Sequence[ir.Value]) -> ir.Value:
        return builder.atomic_rmw("add", pointer(builder, given[0], LONG), given[1], "acq_rel")

    return types.int64(types.uintp, types.int64), write


@instruction
def load_acquire(_: Any, address: Any) -> Any:
    """The int64 at an address; what was written before it was stored there is seen from then on."""

    def write(context: Any, builder: ir.IRBuilder, signature: Any, given: Sequence[ir.Value]) -> ir.Value:
        return builder.load_atomic(pointer(builder, given[0], LONG), "acquire", 8)

    return types.int64(types.uintp), write


@instruction
def store_release(_: Any, address: Any, value: Any) -> Any:
    """Store an int64 at an address, for other threads to see with all that was written before."""

    def write(context: Any, builder: ir.IRBuilder, signature: Any, given: Sequence[ir.Value]) -> Any:
        builder.store_atomic(given[1], pointer(builder, given[0], LONG), "release", 8)
        return context.get_dummy_value()

    return types.void(types.uintp, types.int64), write


def _calls(name: str, result: ir.Type) -> Callable[..., Any]:
    def write(context: Any, builder: ir.IRBuilder, signature: Any, given: Sequence[ir.Value]) -> Any:
        builder.call(function(builder, name, result), ())
        return context.get_dummy_value()

    return write


@instruction
def relax(_: Any) -> Any:
    """Tell the processor that this thread waits for another in a loop."""
    return types.void(), _calls("llvm.x86.sse2.pause", ir.VoidType())


@instruction
def yield_core(_: Any) -> Any:
    """Let another thread have the core, where the system has a call for it (not on Windows)."""
    if sys.platform == "win32":
        return types.void(), _calls("llvm.x86.sse2.pause", ir.VoidType())
    return types.void(), _calls("sched_yield", INT)


@instruction
def stay_apart(_: Any) -> Any:
    """Keep the function that this stands in from being copied into its callers, which takes long to compile."""

    def write(context: Any, builder: ir.IRBuilder, signature: Any, given: Sequence[ir.Value]) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), write
