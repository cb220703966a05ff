"""What can run a GGUF file: numpy, which is always here, and ONNX Runtime, which is faster."""

from __future__ import annotations

from importlib.util import find_spec

from engine.errors import MissingPackage, SettingError

__all__ = ["BACKENDS", "check_backend", "is_installed", "require_installed"]

BACKENDS = ("auto", "numpy", "ort")
"""By name; "auto" is "ort" where it is installed and can run the model, else "numpy"."""

PACKAGES = ("onnxruntime", "onnx")


def check_backend(name: str) -> None:
    """Refuse a name that is none of `BACKENDS`.

    Raises
    ------
    SettingError
        If it is unknown.
    """
    if name not in BACKENDS:
        raise SettingError(f"the backend is {name!r}; choose {', '.join(BACKENDS)}")


def is_installed() -> bool:
    """Whether the packages that compile and run a graph are installed; none is loaded for it."""
    return all(find_spec(package) is not None for package in PACKAGES)


def require_installed() -> None:
    """Refuse to go on without them.

    Raises
    ------
    MissingPackage
        If one is not installed.
    """
    if not is_installed():
        raise MissingPackage(
            f"the compiled backend needs the packages {' and '.join(PACKAGES)}; install them with "
            f"`python -m pip install {' '.join(PACKAGES)}`, or use --backend numpy"
        )
