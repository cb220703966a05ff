"""Medians, and how sure a ratio of speeds is: a bootstrap over prompts and repeats.

After Efron and Tibshirani, *An Introduction to the Bootstrap* (1993), chapter 13: the percentile
interval. Prompts are drawn with replacement, and within each prompt its repeats; two
configurations are always drawn on the same prompts and repeats, because they were measured so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Estimate", "Timing", "Timings", "median", "speed", "speed_ratio"]

N_DRAWS = 2000
COVERAGE = 0.95

Cell = tuple[str, int]  # prompt, repeat
Timing = tuple[int, float]  # tokens, seconds
Timings = Mapping[Cell, Timing]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and its 95 % interval; `low` and `high` are None where one sample cannot tell."""

    value: float
    low: float | None
    high: float | None


def median(values: list[float]) -> float | None:
    """The median, or None of nothing.

    Examples
    --------
    >>> median([3.0, 1.0, 2.0]), median([])
    (2.0, None)
    """
    return float(np.median(values)) if values else None


def speed(timings: Timings) -> float | None:
    """Tokens per second: the sums over prompts, of each prompt's medians over its repeats.

    Examples
    --------
    >>> speed({("a", 0): (10, 1.0), ("a", 1): (10, 9.0), ("a", 2): (10, 2.0), ("b", 0): (10, 3.0)})
    4.0
    """
    table, counts = _table([timings], list(timings))
    rates = _rates(_medians(table, counts))
    return None if rates is None else float(rates[0])


def speed_ratio(of: Timings, to: Timings, *, seed: int = 0, n_draws: int = N_DRAWS) -> Estimate | None:
    """How many times the speed `to` the speed `of` is, over what both have measured.

    Parameters
    ----------
    of, to : mapping of (prompt, repeat) to (tokens, seconds)
    seed : int, default 0
        Of the bootstrap.
    n_draws : int, default 2000
        Of the bootstrap.

    Returns
    -------
    Estimate or None
        None if there is nothing that both measured, or it took no time.

    Examples
    --------
    >>> plain = {("a", 0): (10, 2.0), ("b", 0): (10, 2.0)}
    >>> speed_ratio({("a", 0): (10, 1.0), ("b", 0): (10, 1.0)}, plain)
    Estimate(value=2.0, low=2.0, high=2.0)
    """
    shared = [cell for cell in of if cell in to]
    table, counts = _table([of, to], shared)
    rates = _rates(_medians(table, counts))
    if rates is None:
        return None
    value = float(rates[0] / rates[1])
    if len(shared) < 2:
        return Estimate(value, None, None)
    ratios = _bootstrap(table, counts, n_draws, np.random.default_rng(seed))
    low, high = np.quantile(ratios, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    return Estimate(value, float(low), float(high))


def _table(series: list[Timings], cells: list[Cell]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Tokens and seconds, (series, 2, prompts, repeats), a prompt's repeats first and NaN behind; their counts."""
    by_prompt: dict[str, list[Cell]] = {}
    for cell in cells:
        by_prompt.setdefault(cell[0], []).append(cell)
    counts = np.array([len(group) for group in by_prompt.values()], dtype=np.int64)
    table = np.full((len(series), 2, len(by_prompt), int(counts.max(initial=0))), np.nan)
    for place, group in enumerate(by_prompt.values()):
        for index, timings in enumerate(series):
            table[index, :, place, : len(group)] = np.transpose([timings[cell] for cell in group])
    return table, counts


def _medians(table: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Every prompt's median over its repeats, (series, 2, prompts)."""
    return np.stack([np.median(table[:, :, place, :count], axis=-1) for place, count in enumerate(counts)] or
                    [np.zeros(table.shape[:2])], axis=-1)  # fmt: skip


def _rates(medians: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Tokens per second of every series, from sums over prompts; None if one has no tokens or no time."""
    tokens, seconds = medians[:, 0].sum(axis=-1), medians[:, 1].sum(axis=-1)
    if not (tokens > 0).all() or not (seconds > 0).all():
        return None
    rates: NDArray[np.float64] = tokens / seconds
    return rates


def _bootstrap(
    table: NDArray[np.float64], counts: NDArray[np.int64], n_draws: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """The ratio of the first series' speed to the second's, (draws,)."""
    n_prompts, n_repeats = table.shape[2:]
    prompts = generator.integers(n_prompts, size=(n_draws, n_prompts))
    repeats = (generator.random((n_draws, n_prompts, n_repeats)) * counts[prompts][:, :, None]).astype(np.int64)
    drawn = np.median(table[:, :, prompts[:, :, None], repeats], axis=-1)  # series, 2, draws, prompts
    tokens, seconds = drawn.sum(axis=-1)[:, 0], drawn.sum(axis=-1)[:, 1]
    rates = tokens / seconds
    ratios: NDArray[np.float64] = rates[0] / rates[1]
    return ratios[np.isfinite(ratios)]
