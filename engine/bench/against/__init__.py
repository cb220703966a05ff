"""Rivals: other programs that decode the same prompts on the same file, one file each.

A rival is given token ids, so that its tokenizer and chat template have no say, and as many threads
as Draftscope has.  Its decode time is apart from its prefill: the clock runs from its first token
to its last, so that n tokens take n - 1 steps of it.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from engine.bench.against.base import Answer, Rival, RivalEngine, RivalSetting
from engine.errors import MissingPackage, SettingError

__all__ = ["RIVALS", "Answer", "Rival", "RivalEngine", "RivalSetting", "check_installed", "open_rival"]

RIVALS = {
    "llama.cpp": ("bench-llamacpp", ("xllamacpp",)),
    "transformers": ("bench-hf", ("transformers", "torch", "accelerate")),
}
"""By name: the extra that installs a rival, and the packages that it needs."""


def check_installed(name: str) -> None:
    """Refuse a rival that is unknown or not installed, without loading it.

    Raises
    ------
    SettingError
        If there is no such rival.
    MissingPackage
        If a package is missing; the message names the extra.
    """
    if name not in RIVALS:
        raise SettingError(f"there is no rival {name!r}; choose {' or '.join(RIVALS)}")
    extra, packages = RIVALS[name]
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise MissingPackage(
            f'to measure against {name}, {" and ".join(missing)} must be installed: pip install "draftscope[{extra}]"'
        )


def open_rival(name: str, path: Path, *, threads: int | None, context_tokens: int) -> Rival:
    """Load a rival.

    Parameters
    ----------
    name : str
        One of `RIVALS`.
    path : Path
        The GGUF file.
    threads : int or None
        How many it may use; None leaves it to the rival.
    context_tokens : int
        Longest prompt with its answer.

    Raises
    ------
    MissingPackage
        If its package is not installed; the message names the extra.
    SettingError
        If there is no such rival.
    """
    check_installed(name)
    if name == "llama.cpp":
        from engine.bench.against.llama_cpp import LlamaCpp

        return LlamaCpp(path, threads=threads, context_tokens=context_tokens)
    from engine.bench.against.hugging_face import HuggingFace

    return HuggingFace(path, threads=threads)
