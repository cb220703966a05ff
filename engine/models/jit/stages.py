"""The stages of a pass, as a table of whole numbers that compiled code reads.

A stage is what threads do together before the next begins, cut into parts. It handles some of the
rows of a pass: those from `first_row` on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from engine.models.jit.dot_products import TOGETHER
from engine.models.jit.product import Matrix

__all__ = [
    "ADD",
    "ATTEND",
    "CHOOSE",
    "EMBED",
    "GATE",
    "GUESS",
    "HEAD",
    "KEEP",
    "MULTIPLY",
    "NORM",
    "PEAKS",
    "PLACE",
    "ROUND_GATHERED",
    "ROUND_INPUTS",
    "ROUND_OUTPUTS",
    "SCORE",
    "SET",
    "Shape",
    "Stage",
    "address",
    "attention",
    "columns",
    "n_together",
    "number",
    "of_rows",
    "product",
    "table",
]  # fmt: skip

# Kinds. Each reads what the one before it has written, as `program` says.
MULTIPLY, HEAD, NORM, PLACE, ATTEND, GATE, GUESS, ROUND_INPUTS, ROUND_GATHERED, ROUND_OUTPUTS, EMBED = range(11)
CHOOSE, SCORE, PEAKS = range(11, 14)
# What becomes of the residual stream before a norm: it is kept, the outputs are added to it, or it is set to them.
KEEP, ADD, SET = range(3)


class Shape(NamedTuple):
    """The numbers of an architecture."""

    n_heads: int
    n_kv_heads: int
    head_dim: int
    ffn_width: int
    epsilon: np.float32


class Stage(NamedTuple):
    """A line of the table.

    A part is: of a product some pairs of groups of outputs, of attention `part_size` heads of a row, of all else a row.
    """

    kind: int
    n_parts: int
    first_row: int
    layer: int = 0
    weights: int = 0  # a product: the address of the layer's packed weights
    bits: int = 0
    n_blocks: int = 0
    n_pairs: int = 0
    part_size: int = 0
    change: int = KEEP  # a norm: what comes before it
    tap: int = 0  # behind so many layers the stream then stands, if it may be asked for
    scale: int = 0  # addresses, 0 for what an architecture does not have: what a row is multiplied with
    bias: int = 0
    n_biased: int = 0
    query_norm: int = 0
    key_norm: int = 0
    n_values: int = 0  # of the outputs, that count
    choice: int = 0  # the address of a `candidates.Candidates`


def number(value: int) -> int:
    """A whole number for calls in compiled code: for every plain one numba would compile the function anew."""
    return cast(int, np.int64(value))


def columns(*names: str) -> list[int]:
    """The places of some columns."""
    return [number(Stage._fields.index(name)) for name in names]


def product(matrix: Matrix, layer: int, first_row: int, n_parts: int, *, kind: int = MULTIPLY) -> Stage:
    """A product with a layer's matrix, in at most `n_parts` parts."""
    n_pairs = matrix.blocks.shape[1] // TOGETHER
    return Stage(
        kind,
        min(n_parts, n_pairs),
        first_row,
        weights=address(matrix.blocks[layer]),
        bits=matrix.bits,
        n_blocks=matrix.n_blocks,
        n_pairs=n_pairs,
    )


def attention(shape: Shape, first_row: int, n_rows: int, layer: int = 0) -> Stage:
    """Attention of the rows from `first_row` on: of one row a part is a head, else all heads that share keys."""
    size = 1 if n_rows - first_row == 1 else n_together(shape)
    n_parts = (n_rows - first_row) * shape.n_heads // size
    return Stage(ATTEND, n_parts, first_row, layer, part_size=size)


def n_together(shape: Shape) -> int:
    """Query heads that share keys and values."""
    return shape.n_heads // shape.n_kv_heads


def of_rows(kind: int, first_row: int, n_rows: int, layer: int = 0, **given: int) -> Stage:
    """What is done to each of the rows from `first_row` on by itself."""
    return Stage(kind, n_rows - first_row, first_row, layer, **given)


def table(stages: Sequence[Stage]) -> NDArray[np.int64]:
    """The table: an empty line before the first stage and behind the last, so that nothing is open there."""
    nothing = Stage(MULTIPLY, 0, 0)
    return np.array([nothing, *stages, nothing], np.int64)


def address(array: NDArray[np.generic]) -> int:
    """Where the numbers of an array are; 0 if it has none."""
    return int(array.ctypes.data) if array.size else 0
