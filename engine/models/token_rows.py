"""Rows of a GGUF file's embedding and head, by token, without reading the whole matrices.

A draft head needs the target's own rows for the tokens that it proposes, and an embedding for any
token that was accepted. The first are kept as float32; the others are de-quantised when asked for.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelFileError
from engine.models.gguf import read_gguf

if TYPE_CHECKING:
    from gguf import ReaderTensor

__all__ = ["TokenRows"]

Array = NDArray[np.float32]

ROWS_AT_ONCE = 1024  # read and de-quantised together: what that needs beside the rows stays small


class TokenRows:
    """The embedding and head rows of one model.

    Parameters
    ----------
    path : Path or str
        The GGUF file.
    tokens : array, shape (n,)
        The ids whose rows are kept, in rising order.

    Attributes
    ----------
    head : array, shape (n, width)
        The head's rows for `tokens`.
    vocab_size, width : int

    Raises
    ------
    ModelNotFound, ModelFileError
        If the file is not there or cannot be read, or has fewer tokens.
    """

    def __init__(self, path: Path | str, tokens: NDArray[np.int64]) -> None:
        tensors = read_gguf(path).tensors
        if "token_embd.weight" not in tensors:
            raise ModelFileError(f"{path} has no tensor token_embd.weight; the file is incomplete")
        self._embedding = tensors["token_embd.weight"]
        self.vocab_size, self.width = (int(size) for size in self._embedding.shape[::-1])
        if tokens[-1] >= self.vocab_size:
            raise ModelFileError(f"{path} has {self.vocab_size} tokens, and the id {tokens[-1]} was asked for")
        self._kept = _read_rows(path, self._embedding, tokens)  # (n, width)
        head = tensors.get("output.weight")
        self.head: Array = self._kept if head is None else _read_rows(path, head, tokens)
        self._place = np.full(self.vocab_size, -1, np.int64)  # (vocab,)
        self._place[tokens] = np.arange(len(tokens))

    def embedding(self, tokens: NDArray[np.int64]) -> Array:
        """The embedding of any tokens, shape (n, width)."""
        places = self._place[tokens]
        rows: Array = self._kept[places]
        others = places < 0
        if others.any():
            rows[others] = _few_rows(self._embedding, tokens[others])
        return rows


def _read_rows(path: Path | str, tensor: ReaderTensor, tokens: NDArray[np.int64]) -> Array:
    """The rows of many tokens, in rising order; read past the memory map, whose pages would stay in memory."""
    n_tokens, width = int(tensor.shape[-1]), int(tensor.shape[0])
    row_bytes = int(tensor.n_bytes) // n_tokens
    rows = np.empty((len(tokens), width), np.float32)
    with Path(path).open("rb") as file:
        file.seek(int(tensor.data_offset))
        for first in range(0, n_tokens, ROWS_AT_ONCE):
            raw = np.frombuffer(file.read(row_bytes * ROWS_AT_ONCE)[: row_bytes * (n_tokens - first)], np.uint8)
            low, high = np.searchsorted(tokens, (first, first + ROWS_AT_ONCE))
            rows[low:high] = _dequantized(raw.reshape(-1, row_bytes)[tokens[low:high] - first], tensor)
    return rows


def _few_rows(tensor: ReaderTensor, tokens: NDArray[np.int64]) -> Array:
    raw = tensor.data.reshape(int(tensor.shape[-1]), -1)[tokens]  # blocks do not cross rows
    return _dequantized(np.ascontiguousarray(raw), tensor)


def _dequantized(raw: NDArray[np.generic], tensor: ReaderTensor) -> Array:
    from gguf import dequantize

    return np.asarray(dequantize(raw, tensor.tensor_type), np.float32)
