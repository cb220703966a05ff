"""A GGUF file as a target ready to run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from engine.errors import ModelFileError
from engine.models.architecture import Architecture, architecture_of
from engine.models.base import LoadedModel
from engine.models.gguf import GGUFFile, read_gguf
from engine.models.threads import limit_threads
from engine.models.tokenizer import GGUFTokenizer
from engine.models.transformer import Transformer
from engine.models.weights import load_weights

__all__ = ["check_gguf", "load_gguf", "read_model"]


def load_gguf(path: Path | str, *, name: str | None = None) -> LoadedModel:
    """The model and the tokenizer in the GGUF file at `path`.

    Everything that can be refused from the metadata is refused before the weights are read. From
    then on numpy uses as many threads as `engine.models.threads` says.

    Parameters
    ----------
    path : Path or str
    name : str, optional
        How to call the model; without one, the file's name without its ending.

    Raises
    ------
    ModelNotFound
        If there is no such file.
    ModelFileError
        If the file is not a GGUF, is cut short, or holds a model that we do not run.
    """
    return read_model(path)(name or Path(path).stem)


def read_model(path: Path | str) -> Callable[[str], LoadedModel]:
    """Read the file at `path` once; what comes back makes models of it, by any name, that share the weights.

    Raises
    ------
    ModelNotFound, ModelFileError
        See `load_gguf`.
    """
    limit_threads()
    file, architecture, tokenizer = _checked(path)
    weights = load_weights(file, architecture)
    return lambda name: LoadedModel(Transformer(architecture, weights, name=name), tokenizer)


def check_gguf(path: Path | str) -> None:
    """Refuse a file whose header, architecture or tokenizer we do not run; the weights are not read.

    Raises
    ------
    ModelNotFound, ModelFileError
        See `load_gguf`.
    """
    _checked(path)


def _checked(path: Path | str) -> tuple[GGUFFile, Architecture, GGUFTokenizer]:
    file = read_gguf(path)
    architecture = architecture_of(file)
    tokenizer = GGUFTokenizer(file)
    if tokenizer.vocab_size != architecture.vocab_size:
        raise ModelFileError(
            f"{path} has {tokenizer.vocab_size} tokens and an embedding of {architecture.vocab_size} rows; "
            "expected one row per token, so the file is damaged or was converted wrongly"
        )
    return file, architecture, tokenizer
