"""Rows of the shards as batches: texts of like length together, padded on the right."""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch
from torch import Tensor

from tools.train_draft.shards import Row

__all__ = ["Batch", "cut", "padded"]


@dataclass(frozen=True, slots=True)
class Batch:
    """Some texts, padded.

    Attributes
    ----------
    ids : Tensor, shape (B, T + depths)
    features : Tensor, float32, shape (B, T, D, W)
    n_ids, n_features, n_prompt : Tensor, shape (B,)
    """

    ids: Tensor
    features: Tensor
    n_ids: Tensor
    n_features: Tensor
    n_prompt: Tensor


def cut(rows: list[Row], n_tokens: int, rng: random.Random) -> list[list[Row]]:
    """All rows in batches of at most `n_tokens` tokens with padding, in random order."""
    ordered = sorted(rows, key=lambda row: len(row.ids) + rng.uniform(-8, 8))
    batches: list[list[Row]] = []
    batch: list[Row] = []
    longest = 0
    for row in ordered:
        if batch and max(longest, len(row.ids)) * (len(batch) + 1) > n_tokens:
            batches.append(batch)
            batch, longest = [], 0
        batch.append(row)
        longest = max(longest, len(row.ids))
    if batch:
        batches.append(batch)
    rng.shuffle(batches)
    for batch in batches:
        rng.shuffle(batch)  # the first half is unrolled further
    return batches


def padded(rows: list[Row], depths: int) -> Batch:
    """The rows as one batch."""
    longest = max(len(row.ids) for row in rows)
    ids = torch.zeros(len(rows), longest + depths, dtype=torch.long)
    features = torch.zeros(len(rows), longest, *rows[0].features.shape[1:])
    for place, row in enumerate(rows):
        ids[place, : len(row.ids)] = row.ids
        features[place, : len(row.features)] = row.features[: len(row.ids)]
    return Batch(
        ids,
        features,
        torch.tensor([len(row.ids) for row in rows]),
        torch.tensor([min(len(row.features), len(row.ids)) for row in rows]),
        torch.tensor([row.n_prompt for row in rows]),
    )
