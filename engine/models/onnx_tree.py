"""A compiled graph that runs a tree: the same nodes over the same weights, with places and a mask for the attention.

A token of a tree stands at the position of its depth and sees the context and those that it follows, while
its keys and values lie behind the context in the order of the tokens.  `GroupQueryAttention` takes both as inputs,
`position_ids` and `attention_bias`, which plain decoding does without: so this is a graph of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engine.tree import branch, depths

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["places_and_mask", "tree_graph"]

UNSEEN = np.float32(-1e30)
"""Added to the score of a token that is not seen: its share becomes 0."""


def tree_graph(whole: ModelProto) -> ModelProto:
    """A graph of `engine.models.onnx_graph` whose attention takes `position_ids` and `attention_bias`.

    Shapes: (1, rows) whole numbers, and (1, 1, rows, rows + tokens before) in float32; a row is never
    repeated here.
    """
    from onnx import TensorProto, helper

    nodes: list[Any] = []
    for node in whole.graph.node:
        if node.op_type != "GroupQueryAttention":
            nodes.append(node)
            continue
        settings = {setting.name: helper.get_attribute_value(setting) for setting in node.attribute}
        inputs = [*node.input, "position_ids", "attention_bias"]
        nodes.append(helper.make_node(node.op_type, inputs, list(node.output), domain=node.domain, **settings))
    more = [
        helper.make_tensor_value_info("position_ids", TensorProto.INT64, (1, "rows")),
        helper.make_tensor_value_info("attention_bias", TensorProto.FLOAT, (1, 1, "rows", "seen")),
    ]
    graph = helper.make_graph(
        nodes, whole.graph.name, [*whole.graph.input, *more], whole.graph.output, whole.graph.initializer
    )
    return helper.make_model(
        graph, opset_imports=whole.opset_import, ir_version=whole.ir_version, producer_name=whole.producer_name
    )


def places_and_mask(links: tuple[int, ...], start: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Positions and mask of the last token of a context, at position `start`, and of a tree behind it.

    Parameters
    ----------
    links : tuple of int
        Of the tree's n tokens.
    start : int

    Returns
    -------
    positions : array, shape (1, 1 + n)
    mask : array, shape (1, 1, 1 + n, start + 1 + n)

    Examples
    --------
    >>> positions, mask = places_and_mask((-1, -1, 0), 1)
    >>> positions.tolist(), (mask[0, 0] == 0).astype(int).tolist()
    ([[1, 2, 2, 3]], [[1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 0, 1, 0], [1, 1, 1, 0, 1]])
    """
    positions = np.array([[start + depth for depth in (0, *depths(links))]], np.int64)
    mask = np.full((1 + len(links), start + 1 + len(links)), UNSEEN, np.float32)
    mask[:, : start + 1] = 0
    for place in range(len(links)):
        mask[1 + place, [start + 1 + seen for seen in branch(links, place)]] = 0
    return positions, mask[None, None]
