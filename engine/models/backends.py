"""What can run a GGUF file: numpy, which is always here, and two that compile the model and are faster."""

from __future__ import annotations

import functools
from importlib.util import find_spec

from engine.errors import BackendError, MissingPackage, SettingError

__all__ = ["BACKENDS", "can_run", "check_backend", "require_installed"]

BACKENDS = ("auto", "numba", "ort", "numpy")
"""By name; "auto" is the first of the others that is installed and can run the model."""

PACKAGES = {"numba": ("numba", "llvmlite"), "ort": ("onnxruntime", "onnx"), "numpy": ()}


def check_backend(name: str) -> None:
    """Refuse a name that is none of `BACKENDS`.

    Raises
    ------
    SettingError
        If it is unknown.
    """
    if name not in BACKENDS:
        raise SettingError(f"the backend is {name!r}; choose {', '.join(BACKENDS)}")


def can_run(name: str) -> bool:
    """Whether the packages of a backend are installed, and the processor is one that it compiles for."""
    try:
        require_installed(name)
    except (MissingPackage, BackendError):
        return False
    return True


def require_installed(name: str) -> None:
    """Refuse to go on without the packages of a backend, or on a processor that it does not compile for.

    Raises
    ------
    MissingPackage
        If a package is not installed.
    BackendError
        If it is "numba" and the processor has no AVX2.
    """
    packages = PACKAGES[name]
    if any(find_spec(package) is None for package in packages):
        raise MissingPackage(
            f"the backend {name} needs the packages {' and '.join(packages)}; install them with "
            f"`python -m pip install {' '.join(packages)}`, or use --backend numpy"
        )
    if name == "numba" and not _has_instructions():
        raise BackendError(
            "the backend numba needs a processor with AVX2 and FMA, and this one has not both; use --backend ort"
        )


@functools.cache
def _has_instructions() -> bool:
    from llvmlite import binding

    abilities = binding.get_host_cpu_features()
    return bool(abilities.get("avx2")) and bool(abilities.get("fma"))
