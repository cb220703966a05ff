"""A draft head as ONNX graphs, for ONNX Runtime to run beside a compiled target.

The formulas are those of `head_network`, with matrices packed to 8 bits (`engine.models.packed`).
Two small graphs make the layer's input, one from true features (depth 0) and one from the head's
own output; a third is the layer itself, so that its weights are still in the processor's cache at
the next depth. It writes keys and values into its cache in place and ends in the best rough scores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engine.drafters.head_file import HeadWeights
from engine.models.packed import BLOCK, pack

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto, ValueInfoProto

__all__ = ["input_graph", "layer_graph"]

OPSET = 21
CONTRIB = "com.microsoft"


def input_graph(weights: HeadWeights, *, first: bool) -> bytes:
    """The layer's input `x` (1, n, W) at depth 0 (`first`) or further on.

    Inputs: `given`, the features (1, n, D * W) at depth 0, else the state (1, n, W); and
    `embeddings` (1, n, W).
    """
    graph = _Graph()
    given = "given"
    if first:
        graph.node("Sub", ["given", graph.array("mean", weights.feature_mean.ravel())], "centred")
        given = graph.node("Mul", ["centred", graph.array("scale", weights.feature_scale.ravel())], "standard")
    from_given = graph.product(given, "given_map", weights.feature if first else weights.state)
    graph.node("Mul", ["embeddings", graph.array("token_scale", weights.token_scale.reshape(1))], "scaled")
    from_token = graph.product("scaled", "token_map", weights.feature_token if first else weights.token)
    graph.node("Add", [from_given, from_token], "x")
    width = weights.width
    n_given = width * (1 + len(weights.taps)) if first else width
    return graph.model(
        [_whole("given", 1, "n", n_given), _whole("embeddings", 1, "n", width)], [_whole("x", 1, "n", width)]
    )


def layer_graph(weights: HeadWeights, rough: NDArray[np.float32], n_candidates: int) -> bytes:
    """The layer, and the screen behind it.

    Inputs: `x` (1, n, W); `seqlens_k`, `total`, `cosines`, `sines`, `past.key` and `past.value` as
    the attention wants them. Outputs, of the last row: `state` (1, 1, W), `guess` (1, 1, W),
    `places` (1, 1, n_candidates) of the best rough scores; and the cache again.

    Parameters
    ----------
    weights : HeadWeights
    rough : array, shape (V, rank)
        The squeezed head rows; see `Screen`.
    n_candidates : int
    """
    from onnx import TensorProto

    graph = _Graph()
    normed = graph.norm("x", "attention_norm", weights.attention_norm, weights.norm_epsilon)
    qkv = graph.product(normed, "qkv", weights.qkv)
    graph.node(
        "GroupQueryAttention",
        [qkv, "", "", "past.key", "past.value", "seqlens_k", "total", "cosines", "sines"],
        ["mixed", "present.key", "present.value"],
        CONTRIB,
        num_heads=weights.n_heads,
        kv_num_heads=weights.n_kv_heads,
        do_rotary=1,
        rotary_interleaved=0,
    )
    for name, number in (("minus_one", -1), ("end", 2**62), ("rows", 1)):
        graph.array(name, np.array([number], np.int64))
    graph.node("Slice", ["mixed", "minus_one", "end", "rows"], "last_mixed")
    graph.node("Slice", ["x", "minus_one", "end", "rows"], "last_x")
    graph.node("Add", ["last_x", graph.product("last_mixed", "output", weights.output)], "hidden")
    normed = graph.norm("hidden", "ffn_norm", weights.ffn_norm, weights.norm_epsilon)
    both = graph.product(normed, "gate_up", weights.gate_up)
    graph.node("Split", [both], ["gate", "up"], axis=-1, num_outputs=2)
    graph.node("Sigmoid", ["gate"], "sigmoid")
    graph.node("Mul", ["gate", "sigmoid"], "silu")
    graph.node("Mul", ["silu", "up"], "gated")
    graph.node("Add", ["hidden", graph.product("gated", "down", weights.down)], "state")
    graph.node("Mul", ["state", graph.array("output_scale", weights.output_scale)], "unbiased")
    graph.node("Add", ["unbiased", graph.array("output_bias", weights.output_bias)], "guess")
    squeezed = graph.product("guess", "screen_down", weights.screen_down)
    scores = graph.product(squeezed, "rough", rough)
    graph.array("n_candidates", np.array([n_candidates], np.int64))
    graph.node("TopK", [scores, "n_candidates"], ["best", "places"], axis=-1, largest=1, sorted=0)
    width, kept = weights.width, (1, weights.n_kv_heads, "room", weights.head_dim)
    inputs = [
        _whole("x", 1, "n", width),
        _whole("seqlens_k", 1, kind=TensorProto.INT32),
        _whole("total", kind=TensorProto.INT32),
        *(_whole(name, "places_before", weights.head_dim // 2) for name in ("cosines", "sines")),
        *(_whole(f"past.{part}", *kept) for part in ("key", "value")),
    ]
    outputs = [
        *(_whole(name, 1, 1, width) for name in ("state", "guess")),
        _whole("places", 1, 1, n_candidates, kind=TensorProto.INT64),
        *(_whole(f"present.{part}", *kept) for part in ("key", "value")),
    ]
    return graph.model(inputs, outputs)


def _whole(name: str, *dims: str | int, kind: int = 1) -> ValueInfoProto:
    """What a graph takes or gives; kind 1 is float32."""
    from onnx import helper

    return helper.make_tensor_value_info(name, kind, dims)


class _Graph:
    def __init__(self) -> None:
        self._nodes: list[NodeProto] = []
        self._arrays: list[TensorProto] = []

    def array(self, name: str, array: NDArray[Any]) -> str:
        from onnx import numpy_helper

        self._arrays.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(self, kind: str, inputs: list[str], outputs: str | list[str], domain: str = "", **settings: Any) -> str:
        from onnx import helper

        outputs = [outputs] if isinstance(outputs, str) else outputs
        self._nodes.append(helper.make_node(kind, inputs, outputs, domain=domain, **settings))
        return outputs[0]

    def product(self, x: str, name: str, matrix: NDArray[np.float32]) -> str:
        """`x @ matrix.T`."""
        numbers, scales = pack(matrix)
        inputs = [x, self.array(f"{name}.numbers", numbers), self.array(f"{name}.scales", scales)]
        return self.node("MatMulNBits", inputs, f"{name}.product", CONTRIB,
                         N=matrix.shape[0], K=matrix.shape[1], bits=8, block_size=BLOCK, accuracy_level=4)  # fmt: skip

    def norm(self, x: str, name: str, weight: NDArray[np.float32], epsilon: float) -> str:
        return self.node("SimplifiedLayerNormalization", [x, self.array(name, weight)], f"{name}.normed",
                         axis=-1, epsilon=epsilon, stash_type=1)  # fmt: skip

    def model(self, inputs: list[ValueInfoProto], outputs: list[ValueInfoProto]) -> bytes:
        from onnx import helper

        graph = helper.make_graph(self._nodes, "head", inputs, outputs, self._arrays)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
        made = helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name="draftscope")
        content: bytes = made.SerializeToString()
        return content
