"""A transformer written once more, slowly and straight from the papers: no cache, one head at a time.

It shares no code with the engine and takes the tensors as the file names and orders them.
Rotations are products of complex numbers here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Shape:
    """What `logits` has to know besides the tensors."""

    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    n_rope_dims: int
    rope_base: float
    rope_scale: float
    interleaved: bool
    epsilon: float = 1e-5


def logits(tensors: Mapping[str, np.ndarray], shape: Shape, ids: Sequence[int]) -> np.ndarray:
    """A row for every token, shape (len(ids), vocab), in the precision of the tensors."""
    embedding = tensors["token_embd.weight"]
    x = embedding[list(ids)]
    for layer in range(shape.n_layers):
        own = {name.split(".", 2)[2]: array for name, array in tensors.items() if name.startswith(f"blk.{layer}.")}
        x = x + attention(own, shape, norm(x, own["attn_norm.weight"], shape.epsilon), tensors.get("rope_freqs.weight"))
        h = norm(x, own["ffn_norm.weight"], shape.epsilon)
        gate, up = h @ own["ffn_gate.weight"].T, h @ own["ffn_up.weight"].T
        x = x + (gate * (1 / (1 + np.exp(-gate))) * up) @ own["ffn_down.weight"].T
    return norm(x, tensors["output_norm.weight"], shape.epsilon) @ tensors.get("output.weight", embedding).T


def norm(x: np.ndarray, weight: np.ndarray, epsilon: float) -> np.ndarray:
    """Root-mean-square norm of each row."""
    return np.stack([row / np.sqrt(np.mean(row**2) + epsilon) * weight for row in x]).astype(x.dtype)


def attention(own: Mapping[str, np.ndarray], shape: Shape, h: np.ndarray, factors: np.ndarray | None) -> np.ndarray:
    """Causal attention, head after head."""
    n, dim = len(h), shape.head_dim
    q, k, v = (h @ own[f"attn_{part}.weight"].T + own.get(f"attn_{part}.bias", 0) for part in "qkv")
    mixed = np.empty_like(q)
    for head in range(shape.n_heads):
        shared = head // (shape.n_heads // shape.n_kv_heads)
        mine, theirs = slice(head * dim, (head + 1) * dim), slice(shared * dim, (shared + 1) * dim)
        query, key, value = q[:, mine], k[:, theirs], v[:, theirs]
        if "attn_q_norm.weight" in own:
            query = norm(query, own["attn_q_norm.weight"], shape.epsilon)
            key = norm(key, own["attn_k_norm.weight"], shape.epsilon)
        query, key = turned(query, shape, factors), turned(key, shape, factors)
        for place in range(n):
            scores = key[: place + 1] @ query[place] / np.sqrt(dim).astype(h.dtype)
            weights = np.exp(scores - scores.max())
            mixed[place, mine] = weights / weights.sum() @ value[: place + 1]
    return mixed @ own["attn_output.weight"].T


def turned(rows: np.ndarray, shape: Shape, factors: np.ndarray | None) -> np.ndarray:
    """Rotary positions: row p is turned by p times each pair's frequency."""
    half = shape.n_rope_dims // 2
    frequency = shape.rope_base ** (-np.arange(half) / half) / shape.rope_scale
    if factors is not None:
        frequency = frequency / factors
    if shape.interleaved:
        left, right = 2 * np.arange(half), 2 * np.arange(half) + 1
    else:
        left, right = np.arange(half), np.arange(half) + half
    out = rows.copy()
    for place, row in enumerate(rows):
        pairs = (row[left] + 1j * row[right]) * np.exp(1j * place * frequency)
        out[place, left], out[place, right] = pairs.real, pairs.imag
    return out
