"""A model as it is packed for compiled code, and the stages that run it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.models.jit.product import Matrix
from engine.models.jit.stages import (
    ADD,
    EMBED,
    GATE,
    HEAD,
    KEEP,
    NORM,
    PEAKS,
    PLACE,
    ROUND_GATHERED,
    Shape,
    address,
    attention,
    of_rows,
    product,
    table,
)

__all__ = ["Weights", "stages_of"]

Array = NDArray[np.float32]


class Weights(NamedTuple):
    """A model, packed."""

    embedding: Matrix  # the head's, where the file ties them
    qkv: Matrix
    output: Matrix
    gate_up: Matrix
    down: Matrix
    head: Matrix
    attention_norm: Array  # (layers, width)
    ffn_norm: Array  # (layers, width)
    final_norm: Array  # (width,)
    query_norm: Array  # (layers, head_dim), or no columns
    key_norm: Array


def stages_of(
    weights: Weights, shape: Shape, n_rows: int, n_layers: int, first_asked: int, n_parts: int, n_tokens: int
) -> NDArray[np.int64]:
    """The table of a pass of some rows through layers, and norm and head for those from `first_asked` on.

    A product is cut into about `n_parts`; `n_tokens` is the size of the vocabulary.
    """
    embedding = weights.embedding
    stages = [
        of_rows(
            EMBED,
            0,
            n_rows,
            weights=address(embedding.blocks),
            bits=embedding.bits,
            n_blocks=embedding.n_blocks,
        )
    ]
    for layer in range(n_layers):
        change, tap = (ADD, layer) if layer else (KEEP, 0)
        scale = address(weights.attention_norm[layer])
        stages += [
            of_rows(NORM, 0, n_rows, change=change, tap=tap, scale=scale),
            product(weights.qkv, layer, 0, n_parts),
            of_rows(
                PLACE,
                0,
                n_rows,
                layer,
                bias=address(weights.qkv.bias[layer]),
                n_biased=weights.qkv.bias.shape[1],
                query_norm=address(weights.query_norm[layer]),
                key_norm=address(weights.key_norm[layer]),
            ),
            attention(shape, 0, n_rows, layer),
            of_rows(ROUND_GATHERED, 0, n_rows),
            product(weights.output, layer, 0, n_parts),
            of_rows(NORM, 0, n_rows, change=ADD, scale=address(weights.ffn_norm[layer])),
            product(weights.gate_up, layer, 0, n_parts),
            of_rows(GATE, 0, n_rows),
            product(weights.down, layer, 0, n_parts),
        ]
    change = ADD if n_layers else KEEP
    stages.append(of_rows(NORM, 0, n_rows, change=change, tap=n_layers, scale=address(weights.final_norm)))
    if first_asked < n_rows:
        stages.append(product(weights.head, 0, first_asked, n_parts, kind=HEAD))
        stages.append(of_rows(PEAKS, first_asked, n_rows, n_values=n_tokens))
    return table(stages)
