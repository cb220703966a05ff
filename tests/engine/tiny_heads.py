"""Draft heads with random weights for the tiny models, written to files like the real one."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from engine.drafters.head_file import MATRICES
from tests.engine.models.tiny_files import TOKENS, Tiny

FFN_WIDTH = 16
RANK = 8


def arrays(target_sha256: str, tiny: Tiny, *, taps: tuple[int, ...] = (0,), n_candidates: int = 40) -> dict[str, Any]:
    """What the file of a random head holds; always the same."""
    rng = np.random.default_rng(11)
    width, n_rows = tiny.width, tiny.n_heads * tiny.head_dim
    depth = 1 + len(taps)
    shapes = {
        "feature": (width, depth * width), "feature_token": (width, width), "state": (width, width),
        "token": (width, width), "qkv": (n_rows + 2 * tiny.n_kv_heads * tiny.head_dim, width),
        "output": (width, n_rows), "gate_up": (2 * FFN_WIDTH, width), "down": (width, FFN_WIDTH),
    }  # fmt: skip
    assert set(shapes) == set(MATRICES)
    content: dict[str, Any] = {}
    for name, shape in shapes.items():
        content[f"{name}.int8"] = rng.integers(-127, 128, shape, dtype=np.int8)
        content[f"{name}.scale"] = rng.uniform(0.5, 1.5, shape[0]).astype(np.float32) / (64 * np.sqrt(shape[1]))
    vectors = {
        "feature_mean": (depth, width), "feature_scale": (depth, width), "token_scale": (), "attention_norm": (width,),
        "ffn_norm": (width,), "output_scale": (width,), "output_bias": (width,),
    }  # fmt: skip
    content |= {name: rng.uniform(0.5, 1.5, shape).astype(np.float32) for name, shape in vectors.items()}
    tokens = np.sort(rng.permutation(len(TOKENS))[:n_candidates])
    return content | {
        "format": np.int64(1), "target_sha256": np.array(target_sha256), "n_heads": np.int64(tiny.n_heads),
        "n_kv_heads": np.int64(tiny.n_kv_heads), "rope_base": np.float64(100.0), "norm_epsilon": np.float64(1e-5),
        "taps": np.array(taps), "tokens": tokens.astype(np.int32),
        "screen_down": rng.normal(size=(RANK, width)).astype(np.float32),
        "screen_up": rng.normal(size=(width, RANK)).astype(np.float32),
    }  # fmt: skip


def write_head(path: Path, target: Path, tiny: Tiny, **changed: Any) -> Path:
    """A head for the file `target`; what is in `changed` replaces the content, None removes it."""
    content = arrays(hashlib.sha256(target.read_bytes()).hexdigest(), tiny) | changed
    with path.open("wb") as file:
        np.savez(file, **{name: value for name, value in content.items() if value is not None})
    return path
