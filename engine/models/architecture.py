"""What a GGUF file says about its model: the numbers that a forward pass needs.

Run are the families whose layers are those of Llama: RMS norm, rotary positions, grouped-query
attention and a SiLU-gated feed-forward.  Everything else is refused by name, and so is every
setting that would change the result and is not implemented.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import ModelFileError
from engine.models.gguf import GGUFFile
from engine.models.rope import Rope

__all__ = ["FAMILIES", "Architecture", "architecture_of"]

# general.architecture -> whether its rotation partners are stored side by side
FAMILIES = {"llama": True, "qwen2": False, "qwen3": False}

# Settings that change the result; absent, or with one of these values, they change nothing.
NEUTRAL = {
    "attention.causal": (True,),
    "attention.clamp_kqv": (0,),
    "attention.max_alibi_bias": (0,),
    "attention.scale": (0,),
    "embedding_scale": (0, 1),
    "expert_count": (0,),
    "logit_scale": (0, 1),
    "residual_scale": (0, 1),
    "rope.scaling.attn_factor": (1,),
    "use_parallel_residual": (False,),
}


@dataclass(frozen=True, slots=True)
class Architecture:
    """The shape of a model.

    Attributes
    ----------
    family : str
        One of `FAMILIES`.
    n_layers, width, n_heads, n_kv_heads, head_dim, ffn_width, vocab_size : int
    context_length : int
        Tokens.
    norm_epsilon : float
        Added to the mean square in every RMS norm.
    rope : Rope
    """

    family: str
    n_layers: int
    width: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    ffn_width: int
    vocab_size: int
    context_length: int
    norm_epsilon: float
    rope: Rope


def architecture_of(file: GGUFFile) -> Architecture:
    """The architecture of the model in `file`.

    Raises
    ------
    ModelFileError
        If it is one that we do not run, or the file contradicts itself.
    """
    family = file.value("general.architecture", str)
    if family not in FAMILIES:
        raise ModelFileError(
            f"{file.path} holds a model of architecture {family!r}; Draftscope runs {', '.join(sorted(FAMILIES))}"
        )
    _refuse_what_would_be_ignored(file, family)
    context_length = _count(file, f"{family}.context_length")
    window = file.value(f"{family}.attention.sliding_window", int, 0)
    if 0 < window < context_length:
        raise ModelFileError(
            f"{file.path} attends through a sliding window of {window} tokens, which Draftscope does not do; "
            "use a model with full attention"
        )
    width = _count(file, f"{family}.embedding_length")
    n_heads = _count(file, f"{family}.attention.head_count")
    n_kv_heads = _count(file, f"{family}.attention.head_count_kv", n_heads)
    head_dim = _count(file, f"{family}.attention.key_length", max(1, width // n_heads))
    value_dim = _count(file, f"{family}.attention.value_length", head_dim)
    if n_heads % n_kv_heads or value_dim != head_dim:
        raise ModelFileError(
            f"{file.path} has {n_heads} query heads on {n_kv_heads} key-value heads, keys of {head_dim} and values of "
            f"{value_dim}; query heads must be a multiple of key-value heads, and values as long as keys"
        )
    if "token_embd.weight" not in file.tensors:
        raise ModelFileError(f"{file.path} has no tensor token_embd.weight; the file is incomplete")
    return Architecture(
        family=family,
        n_layers=_count(file, f"{family}.block_count"),
        width=width,
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        head_dim=head_dim,
        ffn_width=_count(file, f"{family}.feed_forward_length"),
        vocab_size=int(file.tensors["token_embd.weight"].shape[-1]),
        context_length=context_length,
        norm_epsilon=file.value(f"{family}.attention.layer_norm_rms_epsilon", float),
        rope=_rope(file, family, head_dim),
    )


def _count(file: GGUFFile, key: str, default: int | None = None) -> int:
    if isinstance(file.fields.get(key), list):  # one value per layer, where they may differ
        raise ModelFileError(f"{file.path} has another {key} in each layer; Draftscope needs the same in all")
    number = file.value(key, int, default)
    if number < 1:
        raise ModelFileError(f"{file.path} has {number} as {key}; it must be at least 1")
    return number


def _refuse_what_would_be_ignored(file: GGUFFile, family: str) -> None:
    for key, neutral in NEUTRAL.items():
        found = file.fields.get(f"{family}.{key}", neutral[0])
        if found not in neutral:
            raise ModelFileError(
                f"{file.path} sets {family}.{key} to {found}, which Draftscope does not do and would get wrong; "
                "use a plain dense model of the family"
            )


def _rope(file: GGUFFile, family: str, head_dim: int) -> Rope:
    base = file.value(f"{family}.rope.freq_base", float, 10_000.0)
    n_dims = _count(file, f"{family}.rope.dimension_count", head_dim)
    if n_dims % 2 or n_dims > head_dim or base < 1:
        raise ModelFileError(
            f"{file.path} rotates {n_dims} of {head_dim} numbers of a head with base {base}; "
            "expected an even count, at most the head, and a base of 1 or more"
        )
    kind = file.value(f"{family}.rope.scaling.type", str, "linear")
    scale = file.value(f"{family}.rope.scaling.factor", float, file.value(f"{family}.rope.scale_linear", float, 1.0))
    if kind not in ("none", "linear") or scale <= 0:
        raise ModelFileError(
            f"{file.path} scales positions by {scale} the {kind!r} way; Draftscope does 'linear' scaling by a positive "
            "factor, or none"
        )
    return Rope(base, n_dims, FAMILIES[family], scale if kind == "linear" else 1.0)
