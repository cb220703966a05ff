"""What makes instructions and compiled functions: numba's decorators, with types and one set of options.

numba has no types for its decorators. A function that it compiles keeps the types that it is written with, which numba
does not read: it takes those of what a function is called with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit
from numba.extending import intrinsic

__all__ = ["compiled", "compiled_for_finite", "compiled_fused", "compiled_in_any_order", "instruction"]

Function = TypeVar("Function", bound=Callable[..., Any])

_options: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy"}
_any_order = {"reassoc", "nsz", "contract"}


def compiled(function: Function) -> Function:
    """Compile a function, or take it from where numba keeps it; it runs without the interpreter's lock."""
    made: Function = njit(**_options)(function)
    return made


def compiled_fused(function: Function) -> Function:
    """The same with products that are added in one instruction, which rounds once."""
    made: Function = njit(**_options, fastmath={"contract"})(function)
    return made


def compiled_in_any_order(function: Function) -> Function:
    """The same for sums whose order LLVM may choose: once for all calls."""
    made: Function = njit(**_options, fastmath=_any_order)(function)
    return made


def compiled_for_finite(function: Function) -> Function:
    """The same for what need not be right if a number is none."""
    made: Function = njit(**_options, fastmath={*_any_order, "nnan"})(function)
    return made


def instruction(write: Callable[..., Any]) -> Any:
    """Make a word for compiled code of a function that gives its signature, and a function that writes it for LLVM."""
    return intrinsic(write)
