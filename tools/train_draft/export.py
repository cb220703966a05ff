"""A trained head to the file that the engine reads, and back to go on with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine.drafters.head_file import FORMAT, MATRICES, read_head
from tools.train_draft.head import EPSILON, ROPE_BASE, Head

__all__ = ["load_into", "screen_maps", "write_head"]

RANK = 96
BLOCK = 32  # numbers of a row that share a scale, as in the compiled graphs


def screen_maps(head_rows: Tensor, hidden: Tensor, rank: int = RANK) -> tuple[Tensor, Tensor]:
    """The maps (rank, W) and (W, rank) that keep most of `head_rows @ hidden.T` for hidden rows like these.

    The best approximation of the logits by a product of this rank (Eckart and Young), with errors
    counted over hidden rows as they occur.
    """
    covariance = (hidden.double().T @ hidden.double()) / len(hidden)
    values, vectors = torch.linalg.eigh(covariance)
    root = vectors * values.clamp_min(1e-8).sqrt() @ vectors.T
    weighed = head_rows.double() @ root
    _, directions = torch.linalg.eigh(weighed.T @ weighed)
    best = directions[:, -rank:]
    return (best.T @ torch.linalg.inv(root)).float(), (root @ best).float()


def write_head(
    path: Path,
    head: Head,
    *,
    target_sha256: str,
    taps: tuple[int, ...],
    tokens: Tensor,
    head_rows: Tensor,
    hidden: Tensor,
) -> None:
    """Write `head` with int8 matrices, one scale for each block of a row.

    Parameters
    ----------
    tokens : Tensor, shape (V,)
        Ids that may be proposed, in rising order.
    head_rows : Tensor, shape (V, W)
        The target's head rows of these.
    hidden : Tensor, shape (n, W)
        Final hidden rows of the target as they occur.
    """
    arrays: dict[str, np.ndarray] = {}
    for name in MATRICES:
        matrix = getattr(head, name).detach()
        blocks = matrix.reshape(len(matrix), -1, BLOCK)  # (outputs, blocks, 32)
        scales = (blocks.abs().amax(2) / 127).clamp_min(1e-12)
        arrays[f"{name}.int8"] = (blocks / scales[..., None]).round().to(torch.int8).reshape(matrix.shape).numpy()
        arrays[f"{name}.scale"] = scales.numpy()
    for name in (
        "feature_mean",
        "feature_scale",
        "token_scale",
        "attention_norm",
        "ffn_norm",
        "output_scale",
        "output_bias",
    ):
        arrays[name] = getattr(head, name).detach().numpy()
    down, up = screen_maps(head_rows, hidden)
    np.savez(
        path,
        format=np.int64(FORMAT),
        target_sha256=np.array(target_sha256),
        n_heads=np.int64(head.n_heads),
        n_kv_heads=np.int64(head.n_kv_heads),
        rope_base=np.float64(ROPE_BASE),
        norm_epsilon=np.float64(EPSILON),
        taps=np.array(taps, np.int64),
        tokens=tokens.numpy().astype(np.int32),
        screen_down=down.numpy(),
        screen_up=up.numpy(),
        **arrays,
    )


def load_into(head: Head, path: Path) -> Tensor:
    """Set `head` to the weights in the file; the tokens it may propose."""
    weights = read_head(path)
    with torch.no_grad():
        for name, value in [*head.named_parameters(), *head.named_buffers()]:
            value.copy_(torch.from_numpy(np.asarray(getattr(weights, name))))
    return torch.from_numpy(weights.tokens)
