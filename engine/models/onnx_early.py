"""A compiled graph that ends behind its first layers.

It is a part of the whole graph: its first nodes, the output norm moved forward, and the head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.models.onnx_graph import residual

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["early_graph"]


def early_graph(whole: ModelProto, n_layers: int) -> ModelProto:
    """The part of a graph of `engine.models.onnx_graph` that ends behind the first `n_layers` layers.

    Its inputs and outputs are those of the whole graph, without the keys and values of later layers and
    without hidden rows.
    """
    from onnx import helper

    nodes = list(whole.graph.node)
    # the next layer begins where the branch of the last one is added to the residual stream, and is normed
    place = next(i for i, node in enumerate(nodes) if residual(n_layers - 1) in node.output)
    stream, branch, _ = nodes[place].input
    epsilon = next(setting.f for setting in nodes[place].attribute if setting.name == "epsilon")
    norm = helper.make_node(
        nodes[place].op_type,
        [stream, branch, "final.weight"],
        ["final"],
        domain=nodes[place].domain,
        epsilon=epsilon,
    )
    nodes = [*nodes[:place], norm, *nodes[-2:]]  # the last two take the rows that are asked for through the head
    used = {name for node in nodes for name in node.input}
    made = {name for node in nodes for name in node.output}
    graph = helper.make_graph(
        nodes,
        whole.graph.name,
        [value for value in whole.graph.input if value.name in used],
        [value for value in whole.graph.output if value.name in made and value.name != "final"],
        [array for array in whole.graph.initializer if array.name in used],
    )
    return helper.make_model(
        graph, opset_imports=whole.opset_import, ir_version=whole.ir_version, producer_name=whole.producer_name
    )
