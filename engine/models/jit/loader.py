"""A GGUF file as a model that numba runs."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from numba.core.errors import NumbaError
from numpy.typing import NDArray

from engine.errors import BackendError
from engine.models.architecture import Architecture
from engine.models.base import LoadProgress
from engine.models.gguf import GGUFFile
from engine.models.jit import CODE
from engine.models.jit.backend import JitTransformer, Packed
from engine.models.jit.compiling import told_of_compiling
from engine.models.jit.dot_products import BLOCK, GROUP, block_bytes
from engine.models.jit.kept import cannot_keep, checked
from engine.models.jit.packed import Numbers, Packer, bits_of, read_numbers
from engine.models.jit.product import Matrix
from engine.models.jit.program import assist, run
from engine.models.jit.stages import Shape, table
from engine.models.jit.weights import Weights
from engine.models.jit.work import Work, numbers_of
from engine.models.rope import frequencies, in_halves
from engine.models.threads import n_session_threads
from engine.models.weights import Source, memory_of_machine

__all__ = ["PACKING", "WAITING", "load_packed"]

PACKING = "packing the weights"
WAITING = "waiting for another model that is being loaded"

Array = NDArray[np.float32]

QKV = ("attn_q", "attn_k", "attn_v")
ROWS_AT_ONCE = 512 * GROUP  # of the embedding or the head, while it is packed: the memory for it stays small
# What is multiplied with at once:
PARTS: tuple[tuple[str, ...], ...] = (QKV, ("attn_output",), ("ffn_gate", "ffn_up"), ("ffn_down",))


def load_packed(
    file: GGUFFile, architecture: Architecture, *, name: str, progress: LoadProgress | None = None
) -> JitTransformer:
    """The model in `file`, its matrices packed, its program compiled or taken from where numba keeps it.

    Parameters
    ----------
    file : GGUFFile
    architecture : Architecture
    name : str
    progress : callable, optional
        Told what is being done, and (parts done, parts in all): layers packed, and functions compiled, if they are not
        taken from where numba keeps them.

    Raises
    ------
    ModelFileError
        If a tensor of the file is missing, wrong or left over.
    BackendError
        If the memory of this machine cannot hold the packed weights, or the program cannot be compiled or kept.
    """
    _check_memory(file, architecture.n_layers)
    packed = _Reader(file, architecture, progress).read()
    try:
        waiting = partial(progress, WAITING, 0, 0) if progress else lambda: None
        with checked(CODE, run, assist, waiting=waiting), told_of_compiling(progress, run, assist):
            _compile(JitTransformer(architecture, packed, name=name, n_threads=1))
    except OSError as failure:
        raise cannot_keep(CODE, failure) from failure
    except (NumbaError, RuntimeError) as failure:  # LLVM's own are of no other kind
        first_line = str(failure).partition("\n")[0]
        raise BackendError(
            f"the program of the backend numba cannot be compiled ({type(failure).__name__}: {first_line}); "
            f"delete the folder {CODE} and try again, or use --backend ort"
        ) from failure
    return JitTransformer(architecture, packed, name=name)


def _compile(model: JitTransformer) -> None:
    """Run all that is compiled once: a pass, and a helper's part of one that is over before it begins."""
    model.logits([0])
    assist(numbers_of(**dict.fromkeys(Work._fields, 0)), table([]))


def _check_memory(file: GGUFFile, n_layers: int) -> None:
    of_4_bits = {
        name
        for names in (("token_embd.weight",), ("output.weight",), *(_names(parts, n_layers) for parts in PARTS))
        if bits_of(file, names) == 4
        for name in names
    }
    needed = sum(
        tensor.n_elements * block_bytes(4 if name in of_4_bits else 8) // (GROUP * BLOCK)
        for name, tensor in file.tensors.items()
    )
    present = memory_of_machine()
    if present is not None and needed > present:
        raise BackendError(
            f"{file.path} needs {needed / 1e9:.1f} GB packed, this machine has {present / 1e9:.1f} GB of memory; "
            "use a smaller model"
        )


def _names(parts: Sequence[str], n_layers: int) -> list[str]:
    """The matrices that are packed as one, of all layers."""
    return [f"blk.{layer}.{part}.weight" for layer in range(n_layers) for part in parts]


class _Reader:
    def __init__(self, file: GGUFFile, architecture: Architecture, progress: LoadProgress | None) -> None:
        self._file = file
        self._source = Source(file)
        self._shape = architecture
        self._progress = progress

    def read(self) -> Packed:
        shape, source = self._shape, self._source
        n_layers, width = shape.n_layers, shape.width
        factors = source.optional("rope_freqs.weight", shape.rope.n_dims // 2)
        embedding = self._matrix("token_embd.weight")
        head = self._matrix("output.weight") if "output.weight" in source else embedding
        qkv, output, gate_up, down = self._matrices()
        with_norm = shape.family == "qwen3"
        weights = Weights(
            embedding,
            qkv,
            output,
            gate_up,
            down,
            head,
            self._vectors("attn_norm.weight", width),
            self._vectors("ffn_norm.weight", width),
            source.take("output_norm.weight", width),
            self._vectors("attn_q_norm.weight", shape.head_dim) if with_norm else np.empty((n_layers, 0), np.float32),
            self._vectors("attn_k_norm.weight", shape.head_dim) if with_norm else np.empty((n_layers, 0), np.float32),
        )
        source.check_all_taken(shape.family)
        numbers = Shape(
            shape.n_heads, shape.n_kv_heads, shape.head_dim, shape.ffn_width, np.float32(shape.norm_epsilon)
        )
        return Packed(numbers, weights, frequencies(shape.rope, factors))

    def _matrix(self, name: str) -> Matrix:
        """Embedding or head."""
        size = self._shape.vocab_size, self._shape.width
        packer = Packer(bits_of(self._file, [name]), 1, *size)
        for first in range(0, size[0], ROWS_AT_ONCE):
            rows = slice(first, first + ROWS_AT_ONCE)
            packer.fill(0, [self._numbers(name, *size, rows=rows)], first_group=first // GROUP)
        return packer.matrix()

    def _matrices(self) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        shape = self._shape
        width, ffn_width, n_mixed = shape.width, shape.ffn_width, shape.n_heads * shape.head_dim
        n_outputs = {f"attn_{part}": len(order) for part, order in self._orders().items()}
        n_outputs |= {"attn_output": width, "ffn_gate": ffn_width, "ffn_up": ffn_width, "ffn_down": width}
        n_inputs = {"attn_output": n_mixed, "ffn_down": ffn_width}
        packers = []
        for parts in PARTS:
            size = sum(n_outputs[part] for part in parts), n_inputs.get(parts[0], width)
            packers.append(Packer(bits_of(self._file, _names(parts, shape.n_layers)), shape.n_layers, *size))

        def fill(layer: int) -> None:
            for packer, parts in zip(packers, PARTS, strict=True):
                numbers = [
                    self._numbers(f"blk.{layer}.{part}.weight", n_outputs[part], n_inputs.get(part, width))
                    for part in parts
                ]
                if parts == QKV:
                    orders = self._orders().values()
                    numbers = [part.in_order(order) for part, order in zip(numbers, orders, strict=True)]
                packer.fill(layer, numbers)

        with ThreadPoolExecutor(n_session_threads("numba")) as pool:
            for n_done, _ in enumerate(pool.map(fill, range(shape.n_layers)), 1):
                if self._progress:
                    self._progress(PACKING, n_done, shape.n_layers)
        qkv, output, gate_up, down = packers
        return qkv.matrix(self._bias()), output.matrix(), gate_up.matrix(), down.matrix()

    def _bias(self) -> Array | None:
        if self._shape.family != "qwen2" and "blk.0.attn_q.bias" not in self._source:
            return None
        return np.stack(
            [
                np.concatenate(
                    [
                        self._source.take(f"blk.{layer}.attn_{part}.bias", len(order))[order]
                        for part, order in self._orders().items()
                    ]
                )
                for layer in range(self._shape.n_layers)
            ]
        )

    def _orders(self) -> dict[str, NDArray[np.int64]]:
        """The outputs of queries, keys and values in the order that the rotation wants."""
        shape = self._shape
        queries = np.arange(shape.n_heads * shape.head_dim, dtype=np.int64)
        keys = np.arange(shape.n_kv_heads * shape.head_dim, dtype=np.int64)
        return {
            "q": in_halves(queries, shape.n_heads, shape.rope),
            "k": in_halves(keys, shape.n_kv_heads, shape.rope),
            "v": keys,
        }

    def _numbers(self, name: str, n_outputs: int, n_inputs: int, *, rows: slice = slice(None)) -> Numbers:
        self._source.taken.add(name)
        return read_numbers(self._file, name, n_outputs, n_inputs, rows=rows)

    def _vectors(self, name: str, size: int) -> Array:
        return np.stack([self._source.take(f"blk.{layer}.{name}", size) for layer in range(self._shape.n_layers)])
