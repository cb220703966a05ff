"""A progress bar on the error stream, where it is a terminal; of long measuring, lines where it is none."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from engine.models.base import Clock, Progress

if TYPE_CHECKING:
    from engine.bench.run import Progress as RunsProgress

__all__ = ["progress_bar", "progress_lines", "runs_bar"]

LINE_SECONDS = 10.0
"""How long it says nothing where there is no terminal."""


@contextmanager
def progress_bar(what: str, **settings: Any) -> Iterator[Progress]:
    """Gives the callback that moves the bar; without a call of it, there is no bar.

    Parameters
    ----------
    what : str
        Stands in front of the bar.
    **settings
        Of `tqdm`, such as its unit.
    """
    from tqdm import tqdm  # type: ignore[import-untyped]  # the package ships no types

    with ExitStack() as stack:
        bar: Any = None

        def progress(done: int, total: int) -> None:
            nonlocal bar
            if bar is None:
                bar = stack.enter_context(tqdm(desc=what, disable=None, **settings))
            bar.total = total
            bar.update(done - bar.n)

        yield progress


@contextmanager
def runs_bar() -> Iterator[RunsProgress]:
    """Gives the callback that moves a bar of runs done, of all that there are, or writes lines of them."""
    from tqdm import tqdm

    if not sys.stderr.isatty():
        yield progress_lines()
        return
    with tqdm(unit="run", disable=None) as bar:

        def told(doing: str, done: int, total: int) -> None:
            bar.total = total or None
            bar.set_description(doing)
            bar.update(done - bar.n)

        yield told


def progress_lines(clock: Clock = time.monotonic) -> RunsProgress:
    """A callback that writes what comes before the runs, the first and the last run, and another one now and then."""
    written = clock()

    def told(doing: str, done: int, total: int) -> None:
        nonlocal written
        if 1 < done < total and clock() - written < LINE_SECONDS:
            return
        written = clock()
        print(f"{done} of {total} runs: {doing}" if done else doing, file=sys.stderr, flush=True)

    return told
