"""A progress bar on the error stream, shown only where there is progress to show and a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from engine.bench.run import Progress as RunsProgress
from engine.models.base import Progress

__all__ = ["progress_bar", "runs_bar"]


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
    """Gives the callback that moves a bar of runs done, of all that there are."""
    from tqdm import tqdm

    with tqdm(unit="run", disable=None) as bar:

        def told(doing: str, done: int, total: int) -> None:
            bar.total = total or None
            bar.set_description(doing)
            bar.update(done - bar.n)

        yield told
