"""The slots of a cache that the rows of a pass see, in the order in which attention adds them up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.models.jit.attention import MORE_SLOTS

__all__ = ["along_branches", "one_after_the_other"]


def one_after_the_other(start: int, n_rows: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """For rows from slot `start` on: one list of slots, and how many of them each row sees."""
    slots = np.arange(start + n_rows + MORE_SLOTS, dtype=np.int32)
    slots[start + n_rows :] = 0
    return slots, np.arange(start + 1, start + n_rows + 1)


def along_branches(start: int, ways: Sequence[Sequence[int]]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """For the rows of a tree: all slots before `start` and a row's way through the tree, in a list for each row."""
    slots = np.zeros((len(ways), start + len(ways) + MORE_SLOTS), np.int32)
    slots[:, :start] = np.arange(start)
    for row, way in enumerate(ways):
        slots[row, start : start + len(way)] = start + np.array(way)
    return slots, np.array([start + len(way) for way in ways], np.int64)
