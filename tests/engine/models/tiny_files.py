"""Tiny GGUF files, written with the package that belongs to llama.cpp: random weights, a small vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, quantize

# The 256 letters that byte-level vocabularies write bytes with, in the order of the bytes (Radford et al., GPT-2).
PRINTABLE = set(range(33, 127)) | set(range(161, 173)) | set(range(174, 256))
SHIFTED = [byte for byte in range(256) if byte not in PRINTABLE]
LETTERS = [chr(byte) if byte in PRINTABLE else chr(256 + SHIFTED.index(byte)) for byte in range(256)]

MERGES = ["h e", "l l", "he ll", "hell o", "Ġ w", "Ġw o", "1 2", "ð Ł", "Ġ Ġ", "a a"]
TOKENS = [
    *LETTERS,
    *(merge.replace(" ", "") for merge in MERGES),
    "<|begin|>",
    "<|end|>",
    "<think>",
    "<|pad|>",
    "<|turn|>",
]
TYPES = [1] * (256 + len(MERGES)) + [3, 3, 4, 5, 3]
BEGIN, END, THINK, PAD, TURN = range(256 + len(MERGES), len(TOKENS))
TEMPLATE = (
    "{% for message in messages %}\n"
    "<|turn|>{{ message['role'] }}: {{ message['content'] | trim }}<|end|>\n"
    "{% endfor %}\n"
    "{% if add_generation_prompt %}<|turn|>assistant:{% endif %}"
)


@dataclass(frozen=True)
class Tiny:
    """The shape of a tiny model."""

    family: str = "llama"
    tied: bool = True
    n_layers: int = 2
    width: int = 24
    n_heads: int = 4
    n_kv_heads: int = 2
    head_dim: int = 6
    ffn_width: int = 40
    context_length: int = 64
    n_rope_dims: int = 6
    rope_scale: float = 1.0
    with_factors: bool = False
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Metadata to set besides; None removes a field."""

    def metadata(self) -> dict[str, Any]:
        """The fields of the file."""
        numbers = {
            "block_count": self.n_layers,
            "context_length": self.context_length,
            "embedding_length": self.width,
            "feed_forward_length": self.ffn_width,
            "attention.head_count": self.n_heads,
            "attention.head_count_kv": self.n_kv_heads,
            "attention.key_length": self.head_dim,
            "attention.value_length": self.head_dim,
            "attention.layer_norm_rms_epsilon": 1e-5,
            "rope.freq_base": 100.0,
            "rope.dimension_count": self.n_rope_dims,
        }
        if self.rope_scale != 1:
            numbers |= {"rope.scaling.type": "linear", "rope.scaling.factor": self.rope_scale}
        tokenizer = {
            "model": "gpt2",
            "pre": "smollm",
            "tokens": TOKENS,
            "token_type": TYPES,
            "merges": MERGES,
            "bos_token_id": BEGIN,
            "eos_token_id": END,
            "add_bos_token": False,
        }
        return (
            {f"{self.family}.{key}": value for key, value in numbers.items()}
            | {f"tokenizer.ggml.{key}": value for key, value in tokenizer.items()}
            | {"tokenizer.chat_template": TEMPLATE}
            | dict(self.fields)
        )

    def tensors(self) -> dict[str, np.ndarray]:
        """The weights by their names in the file, float32, always the same."""
        rng = np.random.default_rng(5)

        def matrix(*shape: int) -> np.ndarray:
            return rng.normal(0, 1 / np.sqrt(shape[-1]), shape).astype(np.float32)

        def scale(size: int) -> np.ndarray:
            return rng.uniform(0.5, 1.5, size).astype(np.float32)

        queries, keys = self.n_heads * self.head_dim, self.n_kv_heads * self.head_dim
        tensors = {"token_embd.weight": matrix(len(TOKENS), self.width), "output_norm.weight": scale(self.width)}
        if not self.tied:
            tensors["output.weight"] = matrix(len(TOKENS), self.width)
        if self.with_factors:
            tensors["rope_freqs.weight"] = rng.uniform(1, 8, self.n_rope_dims // 2).astype(np.float32)
        for layer in range(self.n_layers):
            parts = {
                "attn_norm.weight": scale(self.width),
                "attn_q.weight": 2 * matrix(queries, self.width),
                "attn_k.weight": 2 * matrix(keys, self.width),
                "attn_v.weight": matrix(keys, self.width),
                "attn_output.weight": matrix(self.width, queries),
                "ffn_norm.weight": scale(self.width),
                "ffn_gate.weight": matrix(self.ffn_width, self.width),
                "ffn_up.weight": matrix(self.ffn_width, self.width),
                "ffn_down.weight": matrix(self.width, self.ffn_width),
            }
            if self.family == "qwen2":
                parts |= {
                    "attn_q.bias": matrix(queries),
                    "attn_k.bias": matrix(keys),
                    "attn_v.bias": matrix(keys),
                }
            if self.family == "qwen3":
                parts |= {"attn_q_norm.weight": scale(self.head_dim), "attn_k_norm.weight": scale(self.head_dim)}
            tensors |= {f"blk.{layer}.{name}": array for name, array in parts.items()}
        return tensors


def write(
    path: Path,
    tiny: Tiny,
    tensors: Mapping[str, np.ndarray] | None = None,
    *,
    quantised: Mapping[str, str] | None = None,
) -> Path:
    """Write `tiny` to `path`, with its own tensors or those given; some of them of another kind, such as "Q4_0"."""
    writer = GGUFWriter(path, tiny.family)
    add = {str: writer.add_string, int: writer.add_uint32, float: writer.add_float32, bool: writer.add_bool}
    for key, value in tiny.metadata().items():
        if value is not None:
            add.get(type(value), writer.add_array)(key, value)
    for name, array in (tiny.tensors() if tensors is None else tensors).items():
        kind = GGMLQuantizationType[(quantised or {}).get(name, "F32")]
        writer.add_tensor(name, quantize(array, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
