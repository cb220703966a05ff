"""The hidden rows of cached tokens, kept for drafters that read them (`HiddenModel`).

Nothing is kept until it is asked for once; from then on every forward pass writes here what it
computes anyway, and reading costs no further pass.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.errors import SettingError

__all__ = ["FINAL", "HiddenRows"]

Array = NDArray[np.float32]

FINAL = -1
"""The place of the final hidden row among the taps: what the head reads."""


class HiddenRows:
    """Rows by token position, for the final hidden row and for the layers that were asked for.

    Parameters
    ----------
    n_layers, width : int
    limit : int
        Tokens that it may ever hold.

    Examples
    --------
    >>> rows = HiddenRows(n_layers=2, width=1, limit=8)
    >>> rows.keep((1,)), rows.keep((1,))
    (True, False)
    >>> rows.write(FINAL, 0, np.array([[1.0], [2.0]]))
    >>> rows.write(1, 0, np.array([[3.0], [4.0]]))
    >>> rows.read(1, 2, (1,)).tolist()
    [[[2.0], [4.0]]]
    """

    def __init__(self, n_layers: int, width: int, limit: int) -> None:
        self._n_layers = n_layers
        self._width = width
        self._limit = limit
        self._rows: dict[int, Array] = {}  # per tap, (room, width)

    @property
    def taps(self) -> tuple[int, ...]:
        """What is kept: `FINAL` and layer indices; empty until something was asked for."""
        return tuple(self._rows)

    def keep(self, taps: tuple[int, ...]) -> bool:
        """Keep these from now on; True if one is new, so that rows of tokens in the cache are missing.

        Raises
        ------
        SettingError
            If a tap is not the index of a layer.
        """
        for tap in taps:
            if not 0 <= tap < self._n_layers:
                raise SettingError(f"there is no layer {tap}; the layers go from 0 to {self._n_layers - 1}")
        missing = [tap for tap in (FINAL, *taps) if tap not in self._rows]
        for tap in missing:
            self._rows[tap] = np.empty((0, self._width), np.float32)
        return bool(missing)

    def write(self, tap: int, start: int, rows: Array) -> None:
        """Keep `rows`, shape (n, width), as those of the tokens from position `start` on."""
        stop = start + len(rows)
        held = self._rows[tap]
        if stop > len(held):
            room = min(self._limit, max(stop, 2 * len(held), 64))
            self._rows[tap] = np.empty((room, self._width), np.float32)
            self._rows[tap][:start] = held[:start]
        self._rows[tap][start:stop] = rows

    def read(self, start: int, stop: int, taps: tuple[int, ...]) -> Array:
        """A copy of the rows of tokens start to stop - 1, shape (n, 1 + len(taps), width)."""
        return np.stack([self._rows[tap][start:stop] for tap in (FINAL, *taps)], axis=1)
