"""A GGUF file as a target ready to run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from engine.errors import BackendError, ModelFileError
from engine.models.architecture import Architecture, architecture_of
from engine.models.backends import require_installed
from engine.models.base import LoadedModel, LoadProgress
from engine.models.gguf import GGUFFile, read_gguf
from engine.models.onnx_loader import load_compiled
from engine.models.threads import limit_threads
from engine.models.tokenizer import GGUFTokenizer
from engine.models.transformer import Transformer
from engine.models.weights import load_weights

__all__ = ["check_gguf", "load_gguf", "read_model"]


def load_gguf(
    path: Path | str, *, name: str | None = None, backend: str = "numpy", progress: LoadProgress | None = None
) -> LoadedModel:
    """The model and the tokenizer in the GGUF file at `path`.

    Everything that can be refused from the metadata is refused before the weights are read. From
    then on numpy uses as many threads as `engine.models.threads` says.

    Parameters
    ----------
    path : Path or str
    name : str, optional
        How to call the model; without one, the file's name without its ending.
    backend : {"numpy", "numba", "ort"}
        What runs it.
    progress : callable, optional
        Told what is being done, and (parts done, parts in all), while the model is packed, and while its program is
        compiled the first time; for "ort" only then.

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
    return read_model(path, backend=backend, progress=progress)(name or Path(path).stem)


def read_model(
    path: Path | str, *, backend: str = "numpy", progress: LoadProgress | None = None
) -> Callable[[str], LoadedModel]:
    """Read the file at `path` once; what comes back makes models of it, by any name, that share the weights.

    Raises
    ------
    ModelNotFound, ModelFileError, MissingPackage, BackendError
        See `load_gguf`.
    """
    require_installed(backend)
    limit_threads()
    file, architecture, tokenizer = _checked(path)
    if backend == "numba":
        try:
            from engine.models.jit.loader import load_packed  # heavy: numba itself
        except (ImportError, OSError, RuntimeError) as failure:  # a numpy that it does not know, no folder for code
            raise BackendError(f"the backend numba cannot be loaded: {failure}; use --backend ort") from failure
        packed = load_packed(file, architecture, name=Path(path).stem, progress=progress)
        return lambda name: LoadedModel(packed.fork(name=name), tokenizer)
    if backend == "ort":
        compiled = load_compiled(file, architecture, name=Path(path).stem, progress=progress)
        return lambda name: LoadedModel(compiled.fork(name=name), tokenizer)
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
