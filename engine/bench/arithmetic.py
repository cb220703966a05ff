"""The arithmetics of the sampler against each other: their time, and how far their laws are from the exact one."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from engine.models.base import Clock, Progress
from engine.sampling import ARITHMETICS, Arithmetic, Sampling, law, log_probability
from engine.sampling.integer import error_bound

__all__ = ["SIZES", "ArithmeticRow", "compare_arithmetics"]

SIZES = (256, 49_152, 151_936)
"""The candidates of a draft head, the vocabulary of SmolLM2, that of Qwen 2.5."""

SPREAD = 3.0
"""Standard deviation of the made-up logits."""

N_ROWS = 8
KINDS = (np.float32, np.float64)


@dataclass(frozen=True, slots=True)
class ArithmeticRow:
    """One arithmetic on rows of one size and type.

    Attributes
    ----------
    arithmetic : {"float", "integer"}
    scores : str
        What the rows of logits are kept in: "float32" or "float64".
    n_scores : int
        Length of a row.
    law_seconds : float
        Median time of `engine.sampling.law` at temperature 0.7.
    log_probability_seconds : float
        Median time of `engine.sampling.log_probability`.
    total_variation : float
        Largest distance of the law from the one that float64 gives.
    bound : float or None
        What that distance may be (`engine.sampling.integer.error_bound`); None for float.
    """

    arithmetic: Arithmetic
    scores: str
    n_scores: int
    law_seconds: float
    log_probability_seconds: float
    total_variation: float
    bound: float | None


def compare_arithmetics(
    repeats: int = 40,
    sizes: Sequence[int] = SIZES,
    *,
    progress: Progress | None = None,
    clock: Clock = time.perf_counter,
) -> list[ArithmeticRow]:
    """Time every arithmetic on the same made-up rows, in turns, so that a busy moment strikes all alike.

    Parameters
    ----------
    repeats : int, default 40
        Turns that the medians are taken of.
    sizes : sequence of int, default `SIZES`
        Lengths of rows.
    progress : callable, optional
        Told (turns done, turns in all).
    clock : callable, default `time.perf_counter`

    Examples
    --------
    >>> rows = compare_arithmetics(1, sizes=[300])
    >>> [(row.arithmetic, row.scores) for row in rows][:2]
    [('float', 'float32'), ('float', 'float64')]
    >>> all(row.total_variation <= row.bound for row in rows if row.bound)
    True
    """
    found = []
    for n_before, size in enumerate(sizes):
        logits = np.random.default_rng(size).normal(0, SPREAD, (N_ROWS, size)).astype(np.float32)
        ways = [(arithmetic, logits.astype(kind)) for arithmetic in ARITHMETICS for kind in KINDS]
        laws: list[list[float]] = [[] for _ in ways]
        logs: list[list[float]] = [[] for _ in ways]
        for turn in range(repeats):
            for way, (arithmetic, rows) in enumerate(ways):
                row = rows[turn % N_ROWS]
                laws[way].append(_seconds(partial(law, row, Sampling(arithmetic=arithmetic)), clock))
                logs[way].append(_seconds(partial(log_probability, row, 0, arithmetic), clock))
            if progress:
                progress(n_before * repeats + turn + 1, len(sizes) * repeats)
        for way, (arithmetic, rows) in enumerate(ways):
            distance = max(_distance(row, Sampling(arithmetic=arithmetic)) for row in rows)
            bound = error_bound(size) if arithmetic == "integer" else None
            times = statistics.median(laws[way]), statistics.median(logs[way])
            found.append(ArithmeticRow(arithmetic, rows.dtype.name, size, *times, distance, bound))
    return found


def _seconds(work: Callable[[], object], clock: Clock) -> float:
    begin = clock()
    work()
    return clock() - begin


def _distance(logits: NDArray[np.floating], sampling: Sampling) -> float:
    exact = law(logits.astype(np.float64), Sampling(sampling.temperature)).dense(len(logits))
    return 0.5 * float(np.abs(law(logits, sampling).dense(len(logits)) - exact).sum())
