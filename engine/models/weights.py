"""The weights of a transformer as float32, laid out for the products that the forward pass does.

Matrices are (outputs, inputs).  Query, key and value matrices are joined into one, and so are
gate and up, because one large product is cheaper than several small ones.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelFileError
from engine.models.aligned import Block
from engine.models.architecture import Architecture
from engine.models.gguf import GGUFFile
from engine.models.rope import frequencies, in_halves

__all__ = ["Layer", "Source", "Weights", "load_weights", "memory_of_machine", "read_layer"]

Array = NDArray[np.float32]

MATRICES = ("qkv", "output", "gate_up", "down")  # of a layer


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """One layer; H query heads, G key-value heads of head_dim each, width W, feed-forward F."""

    attention_norm: Array  # (W,)
    qkv: Array  # ((H + G + G) * head_dim, W)
    qkv_bias: Array | None  # ((H + G + G) * head_dim,)
    query_norm: Array | None  # (head_dim,)
    key_norm: Array | None  # (head_dim,)
    output: Array  # (W, H * head_dim)
    ffn_norm: Array  # (W,)
    gate_up: Array  # (F + F, W)
    down: Array  # (W, F)


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """All of a model; `head` is `embedding` itself where the file ties them."""

    embedding: Array  # (vocab, W)
    layers: tuple[Layer, ...]
    final_norm: Array  # (W,)
    head: Array  # (vocab, W)
    rope: NDArray[np.float64]  # (n_dims / 2,) radians per position


def load_weights(file: GGUFFile, architecture: Architecture) -> Weights:
    """Read and de-quantise every tensor of `file`.

    Raises
    ------
    ModelFileError
        If a tensor is missing, wrong or left over: one that nothing reads would mean that the
        model is computed differently from what we do.  Also if the memory of this machine
        cannot hold the weights as float32.
    """
    _check_memory(file)
    source = Source(file)
    vocab, width = architecture.vocab_size, architecture.width
    factors = source.optional("rope_freqs.weight", architecture.rope.n_dims // 2)
    block = Block(sum(tensor.n_elements for tensor in file.tensors.values()), len(file.tensors))
    embedding = block.keep(source.take("token_embd.weight", vocab, width))
    head = block.keep(source.take("output.weight", vocab, width)) if "output.weight" in source else None
    layers = (read_layer(source, architecture, index) for index in range(architecture.n_layers))
    weights = Weights(
        embedding=embedding,
        layers=tuple(
            replace(layer, **{name: block.keep(getattr(layer, name)) for name in MATRICES}) for layer in layers
        ),
        final_norm=source.take("output_norm.weight", width),
        head=embedding if head is None else head,
        rope=frequencies(architecture.rope, factors),
    )
    source.check_all_taken(architecture.family)
    return weights


class Source:
    """The tensors of a file, and the names of those already taken."""

    def __init__(self, file: GGUFFile) -> None:
        self._file = file
        self.taken: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._file.tensors

    def take(self, name: str, *shape: int) -> Array:
        """The tensor of that name; see `GGUFFile.tensor`."""
        self.taken.add(name)
        return self._file.tensor(name, *shape)

    def optional(self, name: str, *shape: int) -> Array | None:
        """The tensor of that name, or None."""
        return self.take(name, *shape) if name in self else None

    def check_all_taken(self, family: str) -> None:
        """Refuse a file with tensors that nothing has read: the model would be computed wrongly."""
        left_over = sorted(self._file.tensors.keys() - self.taken)
        if left_over:
            raise ModelFileError(
                f"{self._file.path} has {len(left_over)} tensors that a {family} model as Draftscope runs it does "
                f"not have, {left_over[0]} among them; leaving them out would give wrong results"
            )


def read_layer(source: Source, architecture: Architecture, index: int) -> Layer:
    """Layer `index`, read and de-quantised.

    Raises
    ------
    ModelFileError
        If a tensor is missing or wrong.
    """
    width, ffn_width, head_dim = architecture.width, architecture.ffn_width, architecture.head_dim
    n_rows = architecture.n_heads * head_dim
    family, name = architecture.family, f"blk.{index}."
    with_bias = family == "qwen2" or f"{name}attn_q.bias" in source
    with_norm = family == "qwen3"
    return Layer(
        attention_norm=source.take(f"{name}attn_norm.weight", width),
        qkv=_joined(source, architecture, name, "weight", width),
        qkv_bias=_joined(source, architecture, name, "bias") if with_bias else None,
        query_norm=source.take(f"{name}attn_q_norm.weight", head_dim) if with_norm else None,
        key_norm=source.take(f"{name}attn_k_norm.weight", head_dim) if with_norm else None,
        output=source.take(f"{name}attn_output.weight", width, n_rows),
        ffn_norm=source.take(f"{name}ffn_norm.weight", width),
        gate_up=np.concatenate([source.take(f"{name}ffn_{part}.weight", ffn_width, width) for part in ("gate", "up")]),
        down=source.take(f"{name}ffn_down.weight", width, ffn_width),
    )


def _joined(source: Source, architecture: Architecture, name: str, kind: str, *columns: int) -> Array:
    """Queries, keys and values on top of each other, queries and keys in the order that `rotate` wants."""
    head_dim, rope = architecture.head_dim, architecture.rope
    n_heads, n_kv_heads = architecture.n_heads, architecture.n_kv_heads
    query = source.take(f"{name}attn_q.{kind}", n_heads * head_dim, *columns)
    key = source.take(f"{name}attn_k.{kind}", n_kv_heads * head_dim, *columns)
    value = source.take(f"{name}attn_v.{kind}", n_kv_heads * head_dim, *columns)
    return np.concatenate([in_halves(query, n_heads, rope), in_halves(key, n_kv_heads, rope), value])


def memory_of_machine() -> int | None:
    """Bytes; None where it cannot be found out (Windows: there an allocation itself will tell)."""
    if not hasattr(os, "sysconf"):
        return None
    present = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return present if present > 0 else None


def _check_memory(file: GGUFFile) -> None:
    needed, present = sum(4 * tensor.n_elements for tensor in file.tensors.values()), memory_of_machine()
    if present is not None and needed > present:
        raise ModelFileError(
            f"{file.path} needs {needed / 1e9:.1f} GB as float32, this machine has {present / 1e9:.1f} GB of memory; "
            "use a smaller model"
        )
