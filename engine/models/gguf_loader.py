"""A GGUF file as a target ready to run."""

from __future__ import annotations

from pathlib import Path

from engine.errors import ModelFileError
from engine.models.architecture import architecture_of
from engine.models.backends import require_installed
from engine.models.base import LoadedModel, Progress
from engine.models.gguf import read_gguf
from engine.models.onnx_loader import load_compiled
from engine.models.threads import limit_threads
from engine.models.tokenizer import GGUFTokenizer
from engine.models.transformer import Transformer
from engine.models.weights import load_weights

__all__ = ["load_gguf"]


def load_gguf(
    path: Path | str, *, name: str | None = None, backend: str = "numpy", progress: Progress | None = None
) -> LoadedModel:
    """The model and the tokenizer in the GGUF file at `path`.

    Everything that can be refused from the metadata is refused before the weights are read. From
    then on numpy uses as many threads as `engine.models.threads` says.

    Parameters
    ----------
    path : Path or str
    name : str, optional
        How to call the model; without one, the file's name without its ending.
    backend : {"numpy", "ort"}
        What runs it.
    progress : callable, optional
        For "ort": told (parts packed, parts in all) while the model is compiled, which happens once.

    Raises
    ------
    ModelNotFound
        If there is no such file.
    ModelFileError
        If the file is not a GGUF, is cut short, or holds a model that we do not run.
    MissingPackage
        If what the backend needs is not installed.
    BackendError
        If the backend cannot run the model.
    """
    if backend == "ort":
        require_installed()
    limit_threads()
    file = read_gguf(path)
    architecture = architecture_of(file)
    tokenizer = GGUFTokenizer(file)
    if tokenizer.vocab_size != architecture.vocab_size:
        raise ModelFileError(
            f"{path} has {tokenizer.vocab_size} tokens and an embedding of {architecture.vocab_size} rows; "
            "expected one row per token, so the file is damaged or was converted wrongly"
        )
    name = name or Path(path).stem
    if backend == "ort":
        return LoadedModel(load_compiled(file, architecture, name=name, progress=progress), tokenizer)
    return LoadedModel(Transformer(architecture, load_weights(file, architecture), name=name), tokenizer)
