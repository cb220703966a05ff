"""Room for what the stages of a pass leave to each other."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from engine.models.jit.attention import ATTENTION_UNIT
from engine.models.jit.dot_products import BLOCK, GROUP
from engine.models.jit.product import Matrix
from engine.models.jit.stages import Shape, address

__all__ = ["Memory", "room_of_head"]


class Memory:
    """Room for `n_rows` rows.

    Parameters
    ----------
    n_rows : int
    width : int
        Of the residual stream.
    shape : Shape
    matrices : iterable of Matrix
        All that rows are multiplied with; the outputs of those of one layer must have room too.
    """

    def __init__(self, n_rows: int, width: int, shape: Shape, matrices: Iterable[Matrix]) -> None:
        matrices = list(matrices)
        n_blocks = max(matrix.n_blocks for matrix in matrices)
        n_outputs = max(matrix.blocks.shape[1] * GROUP for matrix in matrices)
        heads = n_rows, shape.n_heads, room_of_head(shape.head_dim)
        self.n_rows = n_rows
        self.hidden = np.empty((n_rows, width), np.float32)
        self.normed = np.empty((n_rows, width), np.float32)
        self._numbers = np.empty((n_rows, n_blocks * BLOCK), np.int8)
        self._factors = np.empty((n_rows, 2 * n_blocks), np.float32)
        self._outputs = np.empty((n_rows, n_outputs), np.float32)
        self._queries = np.zeros(heads, np.float32)
        self._gathered = np.empty(heads, np.float32)
        self._gated = np.empty((n_rows, shape.ffn_width), np.float32)
        self.addresses = {
            "width": width,
            "ffn_width": shape.ffn_width,
            "n_heads": shape.n_heads,
            "n_kv_heads": shape.n_kv_heads,
            "head_dim": shape.head_dim,
            "room_of_head": heads[2],
            "epsilon": shape.epsilon,
            "hidden": address(self.hidden),
            "normed": address(self.normed),
            "numbers": address(self._numbers),
            "row_bytes": self._numbers.shape[1],
            "factors": address(self._factors),
            "row_factors": self._factors.shape[1],
            "outputs": address(self._outputs),
            "row_outputs": n_outputs,
            "queries": address(self._queries),
            "gathered": address(self._gathered),
            "gated": address(self._gated),
        }


def room_of_head(head_dim: int) -> int:
    """Numbers that a key or value takes, filled up with zeros."""
    return -(-head_dim // ATTENTION_UNIT) * ATTENTION_UNIT
