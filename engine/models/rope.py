"""Rotary position embedding: a token's place, written into its queries and keys as rotations.

After Su et al., *RoFormer* (arXiv 2104.09864).  Files store the two numbers that rotate together
either side by side ("interleaved", Llama) or half a head apart (Qwen).  `in_halves` reorders the
rows of an interleaved matrix once, when it is loaded, so that there is one rotation to compute:
query and key are reordered alike, and their dot product does not notice.

Not here: YaRN, LongRoPE and other scalings that change with the length of the context.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Rope", "frequencies", "in_halves", "rotate", "turns"]

Array = NDArray[np.float32]
Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Rope:
    """How a family rotates.

    Parameters
    ----------
    base : float
        Base of the geometric series of frequencies.
    n_dims : int
        How many leading numbers of each head rotate; even.
    interleaved : bool
        Whether the file stores partners side by side.
    scale : float, default 1.0
        Positions are divided by it ("linear" scaling).
    """

    base: float
    n_dims: int
    interleaved: bool
    scale: float = 1.0


def frequencies(rope: Rope, factors: Array | None = None) -> NDArray[np.float64]:
    """Radians per position of each pair, shape (n_dims / 2,).

    Parameters
    ----------
    rope : Rope
    factors : array, shape (n_dims / 2,), optional
        Divisors of the frequencies that came with the file (Llama 3.1 and later).

    Examples
    --------
    >>> frequencies(Rope(base=100.0, n_dims=4, interleaved=False)).tolist()
    [1.0, 0.1]
    """
    exponents = -np.arange(0, rope.n_dims, 2) / rope.n_dims
    series = rope.base**exponents / rope.scale
    return series if factors is None else series / factors


def in_halves(rows: NDArray[Number], n_heads: int, rope: Rope) -> NDArray[Number]:
    """The rows of a query or key matrix (or its bias), partners half a rotation apart in each head.

    Parameters
    ----------
    rows : array, shape (n_heads * head_dim, ...)
    n_heads : int
    rope : Rope

    Examples
    --------
    >>> in_halves(np.arange(6), 1, Rope(base=1.0, n_dims=4, interleaved=True)).tolist()
    [0, 2, 1, 3, 4, 5]
    """
    if not rope.interleaved:
        return rows
    heads = rows.reshape(n_heads, -1, *rows.shape[1:])  # (n_heads, head_dim, ...)
    left, right = np.arange(0, rope.n_dims, 2), np.arange(1, rope.n_dims, 2)
    order = np.concatenate([left, right, np.arange(rope.n_dims, heads.shape[1])])
    return heads[:, order].reshape(rows.shape)


def turns(series: NDArray[np.float64], start: int, stop: int) -> tuple[Array, Array]:
    """Cosines and sines for positions start to stop - 1, each of shape (n, 1, n_dims / 2)."""
    angles = np.arange(start, stop)[:, None, None] * series
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def rotate(heads: Array, cosines: Array, sines: Array) -> None:
    """Turn `heads`, shape (n, heads, head_dim), in place by the angles from `turns`."""
    half = cosines.shape[-1]
    left, right = heads[..., :half], heads[..., half : 2 * half]  # (n, heads, n_dims / 2)
    turned = left * cosines - right * sines
    heads[..., half : 2 * half] = left * sines + right * cosines
    heads[..., :half] = turned
