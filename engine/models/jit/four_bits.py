"""Blocks of numbers rounded to 4 bits, with the scale and the minimum that come nearest to them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["nearest_of_4_bits"]

Array = NDArray[np.float32]

LARGEST = 15
RANGES = (14.0, 15.25, 16.5)  # steps that a block is cut into at first: above 15 its ends are cut off
ROWS_AT_ONCE = 1024  # so that what is needed meanwhile stays in the processor's cache


def nearest_of_4_bits(blocks: Array) -> tuple[NDArray[np.uint8], Array, Array]:
    """Whole numbers from 0 to 15, shape (outputs, blocks, 32), and the scale and minimum of each block.

    From each of some ranges on, numbers and factors are fitted to each other in turn; that with the least squares of
    what is left over is taken. So do the quantisers of llama.cpp (`make_qkx2_quants`).

    Examples
    --------
    >>> numbers, scales, minima = nearest_of_4_bits(np.linspace(-1, 6.75, 32, dtype=np.float32).reshape(1, 1, 32))
    >>> int(numbers.min()), int(numbers.max()), round(float(scales[0, 0]), 2)
    (0, 15, 0.5)
    """
    numbers = np.empty(blocks.shape, np.uint8)
    scales, minima = np.empty((2, *blocks.shape[:2]), np.float32)
    for first in range(0, len(blocks), ROWS_AT_ONCE):
        here = slice(first, first + ROWS_AT_ONCE)
        numbers[here], scales[here], minima[here] = _nearest(blocks[here])
    return numbers, scales, minima


def _nearest(blocks: Array) -> tuple[Array, Array, Array]:
    low, high = blocks.min(axis=-1), blocks.max(axis=-1)
    middle = (low + high) / np.float32(2)
    extent: Array = np.where(high > low, high - low, np.float32(1))
    least = np.full(low.shape, np.inf, np.float32)
    best, best_scales, best_minima = np.zeros_like(blocks), np.zeros_like(low), low
    for steps in RANGES:
        scales: Array = extent / np.float32(steps)
        numbers = _numbers(blocks, scales, middle - np.float32(LARGEST / 2) * scales)
        numbers = _numbers(blocks, *_factors(blocks, numbers))
        scales, minima = _factors(blocks, numbers)
        rest = blocks - (numbers * scales[..., None] + minima[..., None])
        squares = np.vecdot(rest, rest)
        better = squares < least
        least = np.where(better, squares, least)
        best = np.where(better[..., None], numbers, best)
        best_scales, best_minima = np.where(better, scales, best_scales), np.where(better, minima, best_minima)
    return best, best_scales, best_minima


def _numbers(blocks: Array, scales: Array, minima: Array) -> Array:
    divisors = np.where(scales > 0, scales, np.float32(1))[..., None]
    numbers: Array = np.clip(np.rint((blocks - minima[..., None]) / divisors), 0, LARGEST)
    return numbers


def _factors(blocks: Array, numbers: Array) -> tuple[Array, Array]:
    """Scale and minimum of least squares for given numbers: a line through pairs of a number and what it stands for."""
    mean, mean_number = blocks.mean(axis=-1), numbers.mean(axis=-1)
    off = numbers - mean_number[..., None]
    spread = np.vecdot(off, off)
    scales = np.vecdot(off, blocks) / np.where(spread > 0, spread, np.float32(1))  # 0 if the numbers are all the same
    return scales, mean - scales * mean_number
