"""How far the compiling of a program is: its functions that are done, of all that it is made of.

numba tells when it begins and ends with a function (`numba.core.event`), and of one that it takes from
where it keeps them it tells nothing. A function calls others, which are compiled within it; where it
could be taken, those behind it are done with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

from numba.core import event
from numba.core.dispatcher import Dispatcher

from engine.models.base import LoadProgress

__all__ = ["COMPILING", "functions_of", "told_of_compiling"]

COMPILING = "compiling for this processor, once, about half a minute"


@contextmanager
def told_of_compiling(progress: LoadProgress | None, *program: Any) -> Iterator[None]:
    """While it is open, `progress` is told of functions of a program that are compiled; else it is not called.

    Parameters
    ----------
    progress : callable or None
        Told `COMPILING` and (functions done, functions in all).
    *program
        The compiled functions that others call.
    """
    if progress is None:
        yield
        return
    listener = _Listener(progress, program)
    with event.install_listener("numba:compile", listener):
        yield
    listener.on_end(None)


def functions_of(program: Iterable[Any], *, undone: bool = False) -> set[Any]:
    """The functions of a program and all those that they call, as far as they are compiled by numba.

    Parameters
    ----------
    program : iterable
    undone : bool, default False
        Leave out what is compiled or taken from where it is kept, and what is called by such functions alone.
    """
    found: set[Any] = set()
    waiting = list(program)
    while waiting:
        function = waiting.pop()
        if function in found or (undone and function.overloads):
            continue
        found.add(function)
        waiting.extend(_called_by(function.py_func))
    return found


def _called_by(function: Any) -> list[Any]:
    code: CodeType = function.__code__
    named = (function.__globals__.get(name) for name in code.co_names)
    return [one for one in named if isinstance(one, Dispatcher)]


class _Listener(event.Listener):  # type: ignore[misc]  # numba has no types
    def __init__(self, progress: LoadProgress, program: tuple[Any, ...]) -> None:
        self._progress = progress
        self._program = program
        self._all = functions_of(program)
        self._n_done = -1

    def on_start(self, event: Any) -> None:
        if self._n_done < 0 and event.data["dispatcher"] in self._all:
            self._tell()

    def on_end(self, event: Any) -> None:
        if self._n_done >= 0:
            self._tell()

    def _tell(self) -> None:
        n_done = len(self._all) - len(functions_of(self._program, undone=True))
        if n_done != self._n_done:  # a function may be compiled twice, or have failed
            self._n_done = n_done
            self._progress(COMPILING, n_done, len(self._all))
