"""The forward pass of a GGUF file as an ONNX graph, for ONNX Runtime to run.

The same layers as in `transformer`, as nodes.  Matrices are packed to 8 bits (`packed`) and
multiplied by `MatMulNBits` with activations rounded to 8 bits too; attention is
`GroupQueryAttention`, which rotates queries and keys and writes keys and values into the cache in
place (both operators: ONNX Runtime, "Contrib Operators").  The head is applied from row
`first_asked` on.

One row alone, or left over from a tile of rows, takes another path through attention than several
rows, and its numbers would differ in the last bits.  So the graph can append a copy of the last
row to the queries, keys and values in front of the attention (from `first_repeated` on) and cut it
off behind: with a copy beside it, a single row is one of several.  The copy's key and value land
one place past the end of the cached text, where the next call overwrites them.

Not here: packing to 4 bits, 16-bit floats, other processors than the CPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engine.models.architecture import Architecture
from engine.models.base import LoadProgress
from engine.models.gguf import GGUFFile
from engine.models.packed import BLOCK, DataFile, pack
from engine.models.weights import Layer, Source, read_layer

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto

__all__ = ["BUILDING", "FORMAT", "build_graph", "residual", "why_not"]

FORMAT = 1
"""Counted up when the graph changes, so that graphs built before are built anew."""

BUILDING = "building the graph of the model, once"
OPSET = 21
CONTRIB = "com.microsoft"

Array = NDArray[np.float32]


def why_not(architecture: Architecture) -> str:
    """Why the graph cannot be built for this architecture; empty if it can."""
    if architecture.head_dim % 16 or architecture.rope.n_dims % 16:
        return (
            f"its heads are {architecture.head_dim} numbers wide and {architecture.rope.n_dims} of them rotate; "
            "the compiled attention takes multiples of 16"
        )
    return ""


def residual(layer: int) -> str:
    """The name of the output with the residual stream behind a layer, shape (1, n, width)."""
    return f"residual.{layer}"


def build_graph(file: GGUFFile, architecture: Architecture, data: DataFile, progress: LoadProgress) -> ModelProto:
    """The graph, whose arrays are written to `data`.

    Inputs: `ids` (1, n), `first_asked` (1,), `first_repeated` (1,), `n_rows` (1,), `seqlens_k` (1,)
    and `total` () as the attention wants them, `cosines` and `sines` (places, n_dims / 2), and per
    layer `past.key.I` and `past.value.I` (1, n_kv_heads, room, head_dim).  Outputs: `logits`
    (1, n asked, vocab), `final` (1, n, width), `residual.I` (1, n, width), and the cache again.

    Parameters
    ----------
    file : GGUFFile
    architecture : Architecture
    data : DataFile
    progress : callable
        Told `BUILDING` and (layers packed, layers in all), the head and the embedding counted as one.

    Raises
    ------
    ModelFileError
        If a tensor is missing, wrong or left over; see `load_weights`.
    """
    source = Source(file)
    n_steps = architecture.n_layers + 1
    progress(BUILDING, 0, n_steps)
    source.optional("rope_freqs.weight", architecture.rope.n_dims // 2)  # goes into the cosines and sines
    graph = _Graph(architecture, data)
    graph.embed(source.take("token_embd.weight", architecture.vocab_size, architecture.width))
    head = source.optional("output.weight", architecture.vocab_size, architecture.width)
    if head is not None:
        graph.pack("head", head)
    del head
    progress(BUILDING, 1, n_steps)
    for index in range(architecture.n_layers):
        graph.layer(index, read_layer(source, architecture, index))
        progress(BUILDING, index + 2, n_steps)
    graph.finish(source.take("output_norm.weight", architecture.width), tied="output.weight" not in source)
    source.check_all_taken(architecture.family)
    return graph.model()


class _Graph:
    """Nodes in the order in which they run; `x` is the residual stream, `branch` what is to be added to it."""

    def __init__(self, architecture: Architecture, data: DataFile) -> None:
        self._shape = architecture
        self._data = data
        self._nodes: list[NodeProto] = []
        self._arrays: list[TensorProto] = []
        self._inputs: list[ValueInfoProto] = []
        self._outputs: list[ValueInfoProto] = []
        self._x = "embedded"
        self._branch = ""
        for name, number in (("zero", 0), ("one", 1), ("end", 2**62), ("minus_one", -1)):
            self._array(name, np.array([number], np.int64))

    def _array(self, name: str, array: NDArray[Any]) -> str:
        self._arrays.append(self._data.add(name, array))
        return name

    def _node(self, kind: str, inputs: list[str], outputs: str | list[str], domain: str = "", **settings: Any) -> str:
        from onnx import helper

        outputs = [outputs] if isinstance(outputs, str) else outputs
        self._nodes.append(helper.make_node(kind, inputs, outputs, domain=domain, **settings))
        return outputs[0]

    def pack(self, name: str, matrix: Array) -> None:
        """Keep a matrix, shape (outputs, inputs)."""
        numbers, scales = pack(matrix)
        self._array(f"{name}.numbers", numbers)
        self._array(f"{name}.scales", scales)

    def _product(self, x: str, name: str, shape: tuple[int, ...], result: str) -> str:
        n_outputs, n_inputs = shape
        inputs = [x, f"{name}.numbers", f"{name}.scales"]
        return self._node("MatMulNBits", inputs, result, CONTRIB,
                          N=n_outputs, K=n_inputs, bits=8, block_size=BLOCK, accuracy_level=4)  # fmt: skip

    def _norm(self, x: str, weight: Array, result: str) -> str:
        inputs = [x, self._array(f"{result}.weight", weight)]
        return self._node("SimplifiedLayerNormalization", inputs, result,
                          axis=-1, epsilon=self._shape.norm_epsilon, stash_type=1)  # fmt: skip

    def _add_and_norm(self, weight: Array, result: str, total: str) -> str:
        """The normed residual stream, after what the last part computed has been added to it as `total`."""
        if not self._branch:
            return self._norm(self._x, weight, result)
        inputs = [self._x, self._branch, self._array(f"{result}.weight", weight)]
        self._node("SkipSimplifiedLayerNormalization", inputs, [result, "", "", total], CONTRIB,
                   epsilon=self._shape.norm_epsilon)  # fmt: skip
        self._x = total
        return result

    def embed(self, matrix: Array) -> None:
        """The rows of `ids`, unpacked from the packed embedding."""
        self.pack("embedding", matrix)
        width = self._shape.width
        self._array("middle", np.array(128, np.float32))
        self._array("row_shape", np.array([1, -1, -(-width // BLOCK) * BLOCK], np.int64))
        self._node("Gather", ["embedding.numbers", "ids"], "row_numbers")  # (1, n, blocks, 32)
        self._node("Gather", ["embedding.scales", "ids"], "row_scales")  # (1, n, blocks)
        self._node("Unsqueeze", ["row_scales", "minus_one"], "row_scales_4")
        self._node("Cast", ["row_numbers"], "row_floats", to=1)
        self._node("Sub", ["row_floats", "middle"], "row_centred")
        self._node("Mul", ["row_centred", "row_scales_4"], "row_blocks")
        if width % BLOCK:
            self._array("width", np.array([width], np.int64))
            self._node("Reshape", ["row_blocks", "row_shape"], "padded")
            self._node("Slice", ["padded", "zero", "width", "minus_one"], "embedded")
        else:
            self._node("Reshape", ["row_blocks", "row_shape"], "embedded")  # (1, n, width)

    def layer(self, index: int, layer: Layer) -> None:
        """Attention and feed-forward."""
        name = f"layer.{index}"
        before = residual(index - 1)
        x = self._add_and_norm(layer.attention_norm, f"{name}.attention_norm", before)
        mixed = self._attention(f"{name}.attention", index, layer, x)
        self.pack(f"{name}.output", layer.output)
        self._branch = self._product(mixed, f"{name}.output", layer.output.shape, f"{name}.attended")
        x = self._add_and_norm(layer.ffn_norm, f"{name}.ffn_norm", f"{name}.middle")
        self.pack(f"{name}.gate_up", layer.gate_up)
        self.pack(f"{name}.down", layer.down)
        both = self._product(x, f"{name}.gate_up", layer.gate_up.shape, f"{name}.both")
        gate, up = f"{name}.gate", f"{name}.up"
        self._node("Split", [both], [gate, up], axis=-1, num_outputs=2)
        self._node("Sigmoid", [gate], f"{name}.sigmoid")
        self._node("Mul", [gate, f"{name}.sigmoid"], f"{name}.silu")
        self._node("Mul", [f"{name}.silu", up], f"{name}.gated")
        self._branch = self._product(f"{name}.gated", f"{name}.down", layer.down.shape, f"{name}.fed")

    def _attention(self, name: str, index: int, layer: Layer, x: str) -> str:
        shape = self._shape
        self.pack(name, layer.qkv)
        qkv = self._product(x, name, layer.qkv.shape, f"{name}.qkv")
        if layer.qkv_bias is not None:
            qkv = self._node("Add", [qkv, self._array(f"{name}.bias", layer.qkv_bias)], f"{name}.biased")
        repeated = self._node("Slice", [qkv, "first_repeated", "end", "one"], f"{name}.repeated")
        rows = self._node("Concat", [qkv, repeated], f"{name}.rows", axis=1)
        packed = [rows, "", ""]
        if layer.query_norm is not None and layer.key_norm is not None:
            packed = self._normed(name, rows, layer.query_norm, layer.key_norm)
        past, present = [[f"{side}.{part}.{index}" for part in ("key", "value")] for side in ("past", "present")]
        self._node(
            "GroupQueryAttention",
            [*packed, *past, "seqlens_k", "total", "cosines", "sines"],
            [f"{name}.mixed", *present],
            CONTRIB,
            num_heads=shape.n_heads,
            kv_num_heads=shape.n_kv_heads,
            do_rotary=1,
            rotary_interleaved=0,  # `in_halves` has seen to that
        )
        self._inputs += [self._float(part, 1, shape.n_kv_heads, "room", shape.head_dim) for part in past]
        self._outputs += [self._float(part, 1, shape.n_kv_heads, "room_after", shape.head_dim) for part in present]
        return self._node("Slice", [f"{name}.mixed", "zero", "n_rows", "one"], f"{name}.own")

    def _normed(self, name: str, rows: str, query_norm: Array, key_norm: Array) -> list[str]:
        """Queries, keys and values apart, each head of the first two normed."""
        shape = self._shape
        sizes = np.array([shape.n_heads, shape.n_kv_heads, shape.n_kv_heads]) * shape.head_dim
        parts = [f"{name}.query", f"{name}.key", f"{name}.value"]
        self._node("Split", [rows, self._array(f"{name}.sizes", sizes.astype(np.int64))], parts, axis=-1)
        for place, (part, weight) in enumerate(zip(parts[:2], (query_norm, key_norm), strict=True)):
            heads = self._array(f"{part}.heads", np.array([0, 0, -1, shape.head_dim], np.int64))
            flat = self._array(f"{part}.flat", np.array([0, 0, -1], np.int64))
            apart = self._node("Reshape", [part, heads], f"{part}.apart")
            normed = self._norm(apart, weight, f"{part}.normed")
            parts[place] = self._node("Reshape", [normed, flat], f"{part}.joined")
        return parts

    def finish(self, final_norm: Array, *, tied: bool) -> None:
        """The head, over the rows from `first_asked` on."""
        shape = self._shape
        final = self._add_and_norm(final_norm, "final", residual(shape.n_layers - 1))
        self._node("Slice", [final, "first_asked", "end", "one"], "asked")
        self._product("asked", "embedding" if tied else "head", (shape.vocab_size, shape.width), "logits")

    def model(self) -> ModelProto:
        """The whole graph."""
        from onnx import TensorProto, helper

        def whole(name: str, *dims: str | int, kind: int = TensorProto.INT64) -> ValueInfoProto:
            return helper.make_tensor_value_info(name, kind, dims)

        shape = self._shape
        inputs = [
            whole("ids", 1, "n"),
            *(whole(name, 1) for name in ("first_asked", "first_repeated", "n_rows")),
            whole("seqlens_k", 1, kind=TensorProto.INT32),
            whole("total", kind=TensorProto.INT32),
            *(self._float(name, "places", shape.rope.n_dims // 2) for name in ("cosines", "sines")),
            *self._inputs,
        ]
        outputs = [
            self._float("logits", 1, "n_asked", shape.vocab_size),
            self._float("final", 1, "n", shape.width),
            *(self._float(residual(layer), 1, "n", shape.width) for layer in range(shape.n_layers)),
            *self._outputs,
        ]
        graph = helper.make_graph(self._nodes, "forward", inputs, outputs, self._arrays)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name="draftscope")

    @staticmethod
    def _float(name: str, *dims: str | int) -> ValueInfoProto:
        from onnx import TensorProto, helper

        return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
