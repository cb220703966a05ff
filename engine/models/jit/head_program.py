"""A draft head as stages of a pass; see `engine.drafters.head_network`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.models.jit.product import Matrix
from engine.models.jit.stages import (
    ADD,
    CHOOSE,
    GATE,
    GUESS,
    HEAD,
    NORM,
    PLACE,
    ROUND_GATHERED,
    ROUND_INPUTS,
    ROUND_OUTPUTS,
    SCORE,
    SET,
    Shape,
    Stage,
    address,
    attention,
    of_rows,
    product,
    table,
)

__all__ = ["Network", "head_stages"]

Array = NDArray[np.float32]


class Network(NamedTuple):
    """A draft head, packed."""

    shape: Shape
    qkv: Matrix
    output: Matrix
    gate_up: Matrix
    down: Matrix
    screen_down: Matrix
    rough: Matrix
    attention_norm: Array  # (W,)
    ffn_norm: Array  # (W,)
    output_scale: Array  # (W,)
    output_bias: Array  # (W,)


def head_stages(
    network: Network, entry: Matrix, n_rows: int, rank: int, n_parts: int, choice: int
) -> NDArray[np.int64]:
    """The table of a pass that writes keys and values of some rows, and makes a guess of the last.

    `entry` makes the layer's input of the inputs, of which each has a row; `rank` is that of the screen; `choice` is
    the address of a `candidates.Candidates`. The last row of `hidden` is then the layer's output, that of `normed` the
    guess of the target's hidden row; what tokens that means is where the choice says.
    """
    last = n_rows - 1
    return table(
        [
            of_rows(ROUND_INPUTS, 0, n_rows),
            product(entry, 0, 0, n_parts),
            of_rows(NORM, 0, n_rows, change=SET, scale=address(network.attention_norm)),
            product(network.qkv, 0, 0, n_parts),
            of_rows(PLACE, 0, n_rows),
            attention(network.shape, last, n_rows),
            of_rows(ROUND_GATHERED, last, n_rows),
            product(network.output, 0, last, n_parts),
            of_rows(NORM, last, n_rows, change=ADD, scale=address(network.ffn_norm)),
            product(network.gate_up, 0, last, n_parts),
            of_rows(GATE, last, n_rows),
            product(network.down, 0, last, n_parts),
            of_rows(GUESS, last, n_rows, scale=address(network.output_scale), bias=address(network.output_bias)),
            product(network.screen_down, 0, last, 1),
            of_rows(ROUND_OUTPUTS, last, n_rows, n_values=rank),
            product(network.rough, 0, last, n_parts, kind=HEAD),
            Stage(CHOOSE, 1, last, choice=choice),
            Stage(SCORE, n_parts, last, choice=choice),
        ]
    )
