"""The draft head in torch: the network of `engine/drafters/head_network.py`, all anchors of a text at once.

An anchor is a token t that the target has read. At depth 0 it predicts what follows token t + 1,
from true features; at depth k, what follows t + 1 + k, from its own output. Its query sees the
entries of depth 0 of all anchors up to t, and its own of depths 1 to k.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["Head"]

HEAD_DIM = 64
ROPE_BASE = 10_000.0
EPSILON = 1e-5
FAR = -1e9


class Head(nn.Module):
    """One decoder layer between features and a guessed hidden row; names as in the file of a head.

    Parameters
    ----------
    width : int
        Of the target.
    n_features : int
        1 + number of taps.
    n_heads, n_kv_heads, ffn_width : int
    """

    def __init__(
        self, width: int, n_features: int, n_heads: int = 9, n_kv_heads: int = 3, ffn_width: int = 1152
    ) -> None:
        super().__init__()
        self.n_heads, self.n_kv_heads, self.width = n_heads, n_kv_heads, width

        def matrix(n_outputs: int, n_inputs: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(n_outputs, n_inputs) / math.sqrt(3 * n_inputs))

        self.feature = matrix(width, n_features * width)
        self.feature_token = matrix(width, width)
        self.state = matrix(width, width)
        self.token = matrix(width, width)
        self.qkv = matrix((n_heads + 2 * n_kv_heads) * HEAD_DIM, width)
        self.output = nn.Parameter(torch.zeros(width, n_heads * HEAD_DIM))  # at the start the layer changes nothing
        self.gate_up = matrix(2 * ffn_width, width)
        self.down = nn.Parameter(torch.zeros(width, ffn_width))
        self.attention_norm = nn.Parameter(torch.ones(width))
        self.ffn_norm = nn.Parameter(torch.ones(width))
        self.output_bias = nn.Parameter(torch.zeros(width))
        self.register_buffer("output_scale", torch.ones(width))
        self.register_buffer("feature_mean", torch.zeros(n_features, width))
        self.register_buffer("feature_scale", torch.ones(n_features, width))
        self.register_buffer("token_scale", torch.tensor(1.0))

    def forward(self, features: Tensor, embeddings: Tensor, wanted: list[Tensor]) -> list[Tensor]:
        """Guessed hidden rows of the wanted anchors, depth by depth.

        Parameters
        ----------
        features : Tensor, shape (B, T, D, W)
            True features of tokens 0 to T - 1.
        embeddings : Tensor, shape (B, T + depths - 1, W)
            Of tokens 1 to T + depths - 1.
        wanted : list of Tensor, bool, shape (B_k, T)
            For each depth the anchors to unroll; B_k may fall, a deeper one is part of the one before.

        Returns
        -------
        list of Tensor, each of shape (number wanted, W)
        """
        n_texts, n, *_ = features.shape
        scaled = embeddings * self.token_scale
        standard = ((features - self.feature_mean) * self.feature_scale).flatten(2)
        cache: list[tuple[Tensor, Tensor]] = []
        guesses: list[Tensor] = []
        state = standard
        for depth, anchors in enumerate(wanted):
            n_texts = len(anchors)
            state, cache = state[:n_texts], [(key[:n_texts], value[:n_texts]) for key, value in cache]
            beside = scaled[:n_texts, depth : depth + n]
            if depth == 0:
                inputs = functional.linear(state, self.feature) + functional.linear(beside, self.feature_token)
            else:
                inputs = functional.linear(state, self.state) + functional.linear(beside, self.token)
            mixed = self._attention(inputs, depth, cache)
            flat = inputs[anchors] + functional.linear(mixed[anchors], self.output)  # the rest is of no use
            gate, up = functional.linear(self._norm(flat, self.ffn_norm), self.gate_up).chunk(2, -1)
            flat = flat + functional.linear(functional.silu(gate) * up, self.down)
            guesses.append(flat * self.output_scale + self.output_bias)
            state = torch.zeros(n_texts, n, self.width).masked_scatter(anchors[..., None], flat)
        return guesses

    def _norm(self, rows: Tensor, weight: Tensor) -> Tensor:
        return functional.rms_norm(rows, (rows.shape[-1],), weight, EPSILON)

    def _attention(self, inputs: Tensor, depth: int, cache: list[tuple[Tensor, Tensor]]) -> Tensor:
        n_texts, n, _ = inputs.shape
        heads = functional.linear(self._norm(inputs, self.attention_norm), self.qkv).unflatten(-1, (-1, HEAD_DIM))
        query, key, value = heads.transpose(1, 2).split([self.n_heads, self.n_kv_heads, self.n_kv_heads], 1)
        query, key = (_rotate(part, depth) for part in (query, key))  # (B, heads, T, head_dim)
        cache.append((key, value))
        if depth == 0:
            mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
            return mixed.transpose(1, 2).flatten(2)
        group = self.n_heads // self.n_kv_heads
        grouped = query.reshape(n_texts, self.n_kv_heads, group, n, HEAD_DIM) / math.sqrt(HEAD_DIM)
        first_keys, first_values = cache[0]
        true = (grouped.flatten(2, 3) @ first_keys.transpose(2, 3)).unflatten(2, (group, n))  # (B, G, group, T, T)
        true = true + torch.full((n, n), FAR).triu(1)
        own = [(grouped * keys[:, :, None]).sum(-1, keepdim=True) for keys, _ in cache[1:]]
        weights = torch.cat([true, *own], -1).softmax(-1)
        mixed = (weights[..., :n].flatten(2, 3) @ first_values).unflatten(2, (group, n))
        for place, (_, values) in enumerate(cache[1:]):
            mixed = mixed + weights[..., n + place, None] * values[:, :, None]
        return mixed.flatten(1, 2).transpose(1, 2).flatten(2)


def _rotate(heads: Tensor, depth: int) -> Tensor:
    half = HEAD_DIM // 2
    angles = torch.arange(depth, depth + heads.shape[2])[:, None] * ROPE_BASE ** (-torch.arange(half) / half)
    cosines, sines = angles.cos(), angles.sin()
    left, right = heads[..., :half], heads[..., half:]
    return torch.cat([left * cosines - right * sines, left * sines + right * cosines], -1)
