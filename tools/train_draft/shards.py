"""What the target wrote, on disk: one file for each batch, complete or not there at all."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

__all__ = ["Row", "read_shards", "write_shard"]


@dataclass(frozen=True, slots=True)
class Row:
    """One text of the target.

    Attributes
    ----------
    category : str
    ids : Tensor, int32, shape (n,)
        Prompt and what the target wrote.
    n_prompt : int
    temperature : float
    features : Tensor, bfloat16, shape (n or n - 1, 3, width)
        Final hidden state and taps of each token that the target has read.
    """

    category: str
    ids: Tensor
    n_prompt: int
    temperature: float
    features: Tensor


def write_shard(path: Path, rows: list[Row]) -> None:
    """Write `rows`; nobody sees the file before it is whole."""
    half = path.with_suffix(".part")
    torch.save(
        [(row.category, row.ids.clone(), row.n_prompt, row.temperature, row.features.clone()) for row in rows], half
    )
    os.replace(half, path)


def read_shards(folder: Path, *, skip: set[Path] | None = None) -> list[Row]:
    """The rows of all shards below `folder`, in the order of their names; those in `skip` left out, the rest added."""
    rows = []
    for path in sorted(folder.rglob("*.pt")):
        if skip is not None and path in skip:
            continue
        rows += [Row(*fields) for fields in torch.load(path, weights_only=True)]
        if skip is not None:
            skip.add(path)
    return rows
