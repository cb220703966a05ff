"""The file of a draft head: int8 matrices with their scales, and what ties it to its target.

A numpy archive (.npz) without pickled objects. A matrix `x` is stored as `x.int8` (outputs,
inputs) and `x.scale`, either (outputs,) or (outputs, blocks) with one scale for each block of a
row; everything else as it is. `tools/train_draft` writes it.
"""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelFileError, ModelNotFound

__all__ = ["FORMAT", "HeadWeights", "read_head"]

Array = NDArray[np.float32]

FORMAT = 1
MATRICES = ("feature", "feature_token", "state", "token", "qkv", "output", "gate_up", "down")
VECTORS = (
    "feature_mean", "feature_scale", "token_scale", "attention_norm", "ffn_norm", "output_scale", "output_bias",
    "screen_down", "screen_up",
)  # fmt: skip
DESCRIPTION = ("target_sha256", "n_heads", "n_kv_heads", "rope_base", "norm_epsilon", "taps", "tokens")


@dataclass(frozen=True, slots=True, eq=False)
class HeadWeights:
    """A draft head; W is the target's width, D = 1 + number of taps, F the feed-forward, V the candidate tokens.

    Attributes
    ----------
    target_sha256 : str
        Of the GGUF file that it was trained for.
    taps : tuple of int
        Layers of the target, from 0, whose output it reads beside the final hidden row.
    tokens : array, shape (V,)
        The ids that it can propose, in rising order.
    screen_down, screen_up : arrays, shape (rank, W) and (W, rank)
        A head row r scores about (r @ screen_up) @ (screen_down @ hidden).
    """

    target_sha256: str
    n_heads: int
    n_kv_heads: int
    rope_base: float
    norm_epsilon: float
    taps: tuple[int, ...]
    tokens: NDArray[np.int64]  # (V,)
    feature: Array  # (W, D * W) features to the layer's input
    feature_token: Array  # (W, W) embedding beside features
    state: Array  # (W, W) own output to the layer's input
    token: Array  # (W, W) embedding beside own output
    qkv: Array  # ((H + G + G) * head_dim, W)
    output: Array  # (W, H * head_dim)
    gate_up: Array  # (F + F, W)
    down: Array  # (W, F)
    feature_mean: Array  # (D, W)
    feature_scale: Array  # (D, W)
    token_scale: Array  # ()
    attention_norm: Array  # (W,)
    ffn_norm: Array  # (W,)
    output_scale: Array  # (W,)
    output_bias: Array  # (W,)
    screen_down: Array  # (rank, W)
    screen_up: Array  # (W, rank)

    @property
    def width(self) -> int:
        """The width of the target's hidden rows."""
        return len(self.output_bias)

    @property
    def head_dim(self) -> int:
        """Numbers of a query or a key."""
        return int(self.output.shape[1]) // self.n_heads


def read_head(path: Path | str) -> HeadWeights:
    """The head in the file at `path`, its matrices as float32.

    Raises
    ------
    ModelNotFound
        If there is no such file.
    ModelFileError
        If it is not a draft head, is damaged, or is of another format.

    Examples
    --------
    >>> read_head("no-such-head.npz")
    Traceback (most recent call last):
    engine.errors.ModelNotFound: there is no file no-such-head.npz; give the path of a draft head (.npz)
    """
    path = Path(path)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise ModelNotFound(f"there is no file {path}; give the path of a draft head (.npz)") from None
    except (OSError, ValueError, EOFError, TypeError, zipfile.BadZipFile, AttributeError, zlib.error) as failure:
        if isinstance(failure, OSError) and failure.strerror:
            raise ModelFileError(f"{path} cannot be read: {failure.strerror}; check that you may read it") from failure
        raise ModelFileError(f"{path} is not a draft head or is damaged; fetch or train it again") from failure
    wanted = {"format", *DESCRIPTION, *VECTORS, *(f"{name}.{part}" for name in MATRICES for part in ("int8", "scale"))}
    missing = sorted(wanted - arrays.keys())
    if missing:
        raise ModelFileError(f"{path} is no whole draft head: it has no {missing[0]}; fetch or train it again")
    if int(arrays["format"]) != FORMAT:
        raise ModelFileError(f"{path} is a draft head of format {arrays['format']}; this Draftscope reads {FORMAT}")
    try:
        head = _weights(arrays)
    except (ValueError, IndexError) as failure:
        raise ModelFileError(f"{path} is no draft head: {failure}; fetch or train it again") from failure
    _check(head, path)
    return head


def _weights(arrays: dict[str, NDArray[np.generic]]) -> HeadWeights:
    floats = {name: np.asarray(arrays[name], np.float32) for name in VECTORS}
    for name in MATRICES:
        floats[name] = _matrix(arrays[f"{name}.int8"].astype(np.float32), arrays[f"{name}.scale"].astype(np.float32))
    return HeadWeights(
        target_sha256=str(arrays["target_sha256"]),
        n_heads=int(arrays["n_heads"].item()),
        n_kv_heads=int(arrays["n_kv_heads"].item()),
        rope_base=float(arrays["rope_base"].item()),
        norm_epsilon=float(arrays["norm_epsilon"].item()),
        taps=tuple(int(tap) for tap in arrays["taps"].tolist()),
        tokens=arrays["tokens"].astype(np.int64),
        **floats,
    )


def _matrix(numbers: Array, scales: Array) -> Array:
    n_blocks = 1 if scales.ndim == 1 else scales.shape[1]
    blocks = numbers.reshape(len(numbers), n_blocks, -1) * scales.reshape(len(numbers), n_blocks, 1)
    whole: Array = blocks.reshape(numbers.shape)
    return whole


def _check(head: HeadWeights, path: Path) -> None:
    """Every shape, and that the numbers are numbers."""
    width, rank = head.width, len(head.screen_down)
    n_rows, ffn_width = head.n_heads * head.head_dim, head.down.shape[1]
    depth = 1 + len(head.taps)
    expected = {
        "feature": (width, depth * width), "feature_token": (width, width), "state": (width, width),
        "token": (width, width), "qkv": (n_rows + 2 * head.n_kv_heads * head.head_dim, width),
        "output": (width, n_rows), "gate_up": (2 * ffn_width, width), "down": (width, ffn_width),
        "feature_mean": (depth, width), "feature_scale": (depth, width), "token_scale": (), "attention_norm": (width,),
        "ffn_norm": (width,), "output_scale": (width,), "output_bias": (width,), "screen_down": (rank, width),
        "screen_up": (width, rank),
    }  # fmt: skip
    for name, shape in expected.items():
        array: Array = getattr(head, name)
        if array.shape != shape:
            raise ModelFileError(f"{path} has {name} of shape {array.shape}; expected {shape}: train it again")
        if not np.isfinite(array).all():
            raise ModelFileError(f"{path} has values in {name} that are not finite; fetch or train it again")
    rising = bool(len(head.tokens)) and head.tokens[0] >= 0 and bool((np.diff(head.tokens) > 0).all())
    if not rising or head.n_heads % head.n_kv_heads:
        raise ModelFileError(f"{path} has no rising list of tokens or heads that do not divide; train it again")
