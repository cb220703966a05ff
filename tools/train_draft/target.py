"""The target in torch, in batches: the engine's own weights and formulas, many contexts at once.

Weights, tokenizer and chat template come from the engine's loader, so the teacher is the model
that Draftscope runs; a batch differs from it by rounding only. Prompts of different lengths are
padded on the left: rotary positions are relative, so a shift of a whole row changes nothing.
Float32 throughout: without AVX-512 a CPU gains nothing from bfloat16.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from engine.models.architecture import architecture_of
from engine.models.gguf import read_gguf
from engine.models.tokenizer import GGUFTokenizer
from engine.models.weights import load_weights

__all__ = ["Target"]

ROWS_AT_ONCE = 16  # prompts that are read together; bounds the memory
FAR = -1e9  # the score of a place that must not be looked at


class Target:
    """A batch of contexts that grow by one token at a time.

    Parameters
    ----------
    path : str or Path
        The GGUF file.
    taps : tuple of int
        Layers (0-based) whose output is handed out beside the final hidden state.
    """

    def __init__(self, path: str | Path, taps: tuple[int, ...]) -> None:
        file = read_gguf(path)
        self.shape = architecture_of(file)
        self.tokenizer = GGUFTokenizer(file)
        self.taps = taps
        weights = load_weights(file, self.shape)
        self.embedding = torch.from_numpy(weights.embedding)  # (vocab, W)
        self.head = torch.from_numpy(weights.head)  # (vocab, W)
        self._final_norm = torch.from_numpy(weights.final_norm)
        self._frequencies = torch.from_numpy(weights.rope)
        self._layers = [
            {
                field.name: torch.from_numpy(value)
                for field in fields(layer)
                if isinstance(value := getattr(layer, field.name), np.ndarray)
            }
            for layer in weights.layers
        ]
        if any(unhandled in self._layers[0] for unhandled in ("qkv_bias", "query_norm", "key_norm")):
            raise NotImplementedError("the batched target has no biases and no QK-norm; add them here for this family")
        self._padding = torch.zeros(0, dtype=torch.long)
        self._n = 0

    def start(self, contexts: list[list[int]], room: int) -> Tensor:
        """Read the prompts, with room for `room` tokens behind them; features (B, longest, 1 + taps, W)."""
        longest = max(map(len, contexts))
        self._padding = torch.tensor([longest - len(context) for context in contexts])  # (B,)
        n_rows, shape = len(contexts), self.shape
        size = (n_rows, shape.n_kv_heads, longest + room, shape.head_dim)
        self._keys = [torch.zeros(size) for _ in range(shape.n_layers)]
        self._values = [torch.zeros(size) for _ in range(shape.n_layers)]
        ids = torch.tensor([[0] * (longest - len(context)) + context for context in contexts])
        self._n = longest
        return torch.cat([
            self._read(ids[low : low + ROWS_AT_ONCE], low) for low in range(0, n_rows, ROWS_AT_ONCE)
        ])  # fmt: skip

    def feed(self, tokens: Tensor) -> Tensor:
        """One token for each context, shape (B,); features (B, 1 + taps, W)."""
        shape, n = self.shape, self._n
        n_rows, group = len(tokens), shape.n_heads // shape.n_kv_heads
        hidden, kept = self.embedding[tokens], []
        cosines, sines = self._turns(n, n + 1)
        mask = torch.where(torch.arange(n + 1) < self._padding[:, None], FAR, 0.0)[:, None, None]  # (B, 1, 1, n + 1)
        for index, layer in enumerate(self._layers):
            query, key, value = self._split(
                functional.linear(self._norm(hidden, layer["attention_norm"]), layer["qkv"])
            )
            self._keys[index][:, :, n] = _rotate(key, cosines, sines)
            self._values[index][:, :, n] = value
            grouped = _rotate(query, cosines, sines).reshape(n_rows * shape.n_kv_heads, group, shape.head_dim)
            keys, values = (
                self._keys[index][:, :, : n + 1].flatten(0, 1),
                self._values[index][:, :, : n + 1].flatten(0, 1),
            )
            scores = torch.bmm(grouped * shape.head_dim**-0.5, keys.transpose(1, 2))  # (B * G, group, n + 1)
            scores = (scores.view(n_rows, shape.n_kv_heads, group, n + 1) + mask).flatten(0, 1).softmax(-1)
            mixed = torch.bmm(scores, values).view(n_rows, -1)
            hidden = hidden + functional.linear(mixed, layer["output"])
            hidden = hidden + self._feed_forward(hidden, layer)
            if index in self.taps:
                kept.append(hidden)
        self._n += 1
        return torch.stack([self._norm(hidden, self._final_norm), *kept], 1)

    def keep(self, rows: Tensor) -> None:
        """Go on with these contexts only."""
        self._padding = self._padding[rows]
        for cache in (self._keys, self._values):
            for index, old in enumerate(cache):
                new = torch.empty(len(rows), *old.shape[1:])
                new[:, :, : self._n] = old[rows, :, : self._n]
                cache[index] = new

    def _read(self, ids: Tensor, first_row: int) -> Tensor:
        n_rows, n = ids.shape
        rows = slice(first_row, first_row + n_rows)
        hidden, kept = self.embedding[ids], []
        cosines, sines = self._turns(0, n)
        padded = torch.arange(n) < self._padding[rows, None]  # (B, n)
        mask = torch.where(padded, FAR, 0.0)[:, None, None] + torch.full((n, n), FAR).triu(1)  # (B, 1, n, n)
        for index, layer in enumerate(self._layers):
            query, key, value = self._split(
                functional.linear(self._norm(hidden, layer["attention_norm"]), layer["qkv"])
            )
            query, key = (_rotate(part, cosines, sines).transpose(1, 2) for part in (query, key))
            value = value.transpose(1, 2)  # (B, G, n, head_dim)
            self._keys[index][rows, :, :n] = key
            self._values[index][rows, :, :n] = value
            mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, enable_gqa=True)
            hidden = hidden + functional.linear(mixed.transpose(1, 2).reshape(n_rows, n, -1), layer["output"])
            hidden = hidden + self._feed_forward(hidden, layer)
            if index in self.taps:
                kept.append(hidden)
        return torch.stack([self._norm(hidden, self._final_norm), *kept], 2)

    def _split(self, qkv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values as heads: (..., heads, head_dim)."""
        shape = self.shape
        heads = qkv.unflatten(-1, (-1, shape.head_dim))
        query, key, value = heads.split([shape.n_heads, shape.n_kv_heads, shape.n_kv_heads], -2)
        return query, key, value

    def _norm(self, rows: Tensor, weight: Tensor) -> Tensor:
        return functional.rms_norm(rows, (rows.shape[-1],), weight, self.shape.norm_epsilon)

    def _feed_forward(self, hidden: Tensor, layer: dict[str, Tensor]) -> Tensor:
        gate, up = functional.linear(self._norm(hidden, layer["ffn_norm"]), layer["gate_up"]).chunk(2, -1)
        return functional.linear(functional.silu(gate) * up, layer["down"])

    def _turns(self, start: int, stop: int) -> tuple[Tensor, Tensor]:
        angles = torch.arange(start, stop)[:, None, None] * self._frequencies  # (n, 1, n_dims / 2)
        return angles.cos().float(), angles.sin().float()


def _rotate(heads: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Partners half a rotation apart, as `engine.models.rope.rotate`."""
    half = cosines.shape[-1]
    left, right, rest = heads[..., :half], heads[..., half : 2 * half], heads[..., 2 * half :]
    if heads.ndim == 3:  # one token for each context: (B, heads, head_dim)
        cosines, sines = cosines[0], sines[0]
    return torch.cat([left * cosines - right * sines, left * sines + right * cosines, rest], -1)
