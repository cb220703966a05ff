"""A progress bar on the error stream, where it is a terminal; of loading and long measuring, lines where it is none."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from engine.models.base import Clock, LoadProgress, Progress

if TYPE_CHECKING:
    from engine.bench.run import Progress as RunsProgress

__all__ = ["loading_bar", "loading_lines", "progress_bar", "progress_lines", "runs_bar"]

LINE_SECONDS = 10.0
"""How long it says nothing where there is no terminal."""

BAR = "{desc} |{bar}| {n_fmt}/{total_fmt} [{elapsed}]"
BAR_WITHOUT_END = "{desc} [{elapsed}]"
SHORT_SECONDS = 0.5
"""What of loading takes no longer is not worth a word."""


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
def loading_bar() -> Iterator[LoadProgress]:
    """Gives the callback that moves a bar for each thing that is done while a model is loaded, or writes a line of it.

    What is over in a moment has neither. A bar ends as soon as its thing is done, so that what comes after the loading
    stands below it; the same thing done again, as for a second model, has a bar of its own.
    """
    if not sys.stderr.isatty():
        yield loading_lines()
        return
    from tqdm import tqdm

    with ExitStack() as stack:
        bar: Any = None

        def told(doing: str, done: int, total: int) -> None:
            nonlocal bar
            over = 0 < total == done
            if bar is None or (bar.desc, bar.total) != (doing, total or None) or done < bar.n:
                stack.close()
                bar = None
                if over:  # its end alone, or once more: whoever waits for another's loading is told of it again
                    return
                form = BAR if total else BAR_WITHOUT_END
                bar = tqdm(desc=doing, total=total or None, bar_format=form, miniters=0, delay=SHORT_SECONDS)
                stack.enter_context(bar)
            bar.update(done - bar.n)
            if over:
                stack.close()
                bar = None

        yield told


def loading_lines(clock: Clock = time.monotonic) -> LoadProgress:
    """A callback that writes one line of each thing that is done, as soon as it takes longer than a moment.

    The same thing done again, as for a second model, has a line of its own.
    """
    begun: dict[str, float] = {}
    written: set[str] = set()

    def told(doing: str, done: int, total: int) -> None:
        since = begun.setdefault(doing, clock())
        if doing not in written and clock() - since > SHORT_SECONDS:
            written.add(doing)
            with suppress(OSError):  # nobody reads it: no reason not to load
                print(doing, file=sys.stderr, flush=True)
        if 0 < total == done:
            del begun[doing]
            written.discard(doing)

    return told


@contextmanager
def runs_bar() -> Iterator[RunsProgress]:
    """Gives the callback that moves a bar of runs done, of all that there are, or writes lines of them."""
    if not sys.stderr.isatty():
        yield progress_lines()
        return
    from tqdm import tqdm

    with tqdm(unit="run", disable=None) as bar:

        def told(doing: str, done: int, total: int) -> None:
            bar.total = total or None
            bar.set_description(doing)
            bar.update(done - bar.n)

        yield told


def progress_lines(clock: Clock = time.monotonic) -> RunsProgress:
    """A callback that writes what comes before the runs, the first and the last run, and another one now and then.

    What comes before is written once, without the parts of it that are counted behind a colon.
    """
    written, before = clock(), ""

    def told(doing: str, done: int, total: int) -> None:
        nonlocal written, before
        if done:
            if 1 < done < total and clock() - written < LINE_SECONDS:
                return
            written, line = clock(), f"{done} of {total} runs: {doing}"
        else:
            line = doing.partition(": ")[0]
            if line == before:
                return
            before = line
        print(line, file=sys.stderr, flush=True)

    return told
