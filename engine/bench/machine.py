"""The machine that a benchmark ran on, so that its figures can be judged elsewhere."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from engine.models import threads
from engine.spec import versions

__all__ = [
    "busy_words",
    "is_busy",
    "load_average",
    "machine",
    "package_versions",
    "peak_memory_bytes",
    "threads_used",
    "was_busy",
]

PACKAGES = ("gguf", "tokenizers", "numba", "onnxruntime")


def machine(packages: Iterable[str] = (), *, backend: str = "") -> dict[str, Any]:
    """Processor, cores, memory, system, versions and threads; what cannot be found out is None.

    `packages` are named beside those that Draftscope stands on, if they are installed.
    """
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": _memory_bytes(),
        "system": platform.platform(),
        "threads": threads_used(backend),
        "versions": {**versions(), **package_versions([*PACKAGES, *packages])},
    }


def threads_used(backend: str) -> int | None:
    """How many threads a target runs with on a backend; None if a BLAS library decides."""
    return threads.n_session_threads(backend) if backend in ("numba", "ort") else threads.n_threads()


def package_versions(names: Iterable[str]) -> dict[str, str]:
    """The versions of those packages that are installed."""
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def load_average() -> float | None:
    """Programs that wanted a core in the last minute, on average; None on Windows."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def is_busy(load: float | None, cores: int | None) -> bool:
    """Whether so many programs wanted a core that times measured then are to be doubted.

    Examples
    --------
    >>> is_busy(1.5, 2), is_busy(0.3, 2), is_busy(None, 2)
    (True, False, False)
    """
    return load is not None and bool(cores) and load > (cores or 0) / 2


def was_busy(result: Mapping[str, Any]) -> bool:
    """Whether the load before or after a measurement says that something else took time from it.

    Parameters
    ----------
    result : mapping
        With `load_before`, `load_after`, and a `machine` with `cores` and `threads`. The load after it holds the
        measurement's own threads, which are taken off: as many as there are cores, where they are not known.

    Examples
    --------
    >>> quiet = {"load_before": 0.2, "load_after": 1.1, "machine": {"cores": 2, "threads": 1}}
    >>> was_busy(quiet), was_busy(quiet | {"load_after": 2.1}), was_busy(quiet | {"load_before": 1.5})
    (False, True, True)
    """
    cores, after = result["machine"]["cores"], result["load_after"]
    own = result["machine"]["threads"] or cores or 0
    return is_busy(result["load_before"], cores) or is_busy(None if after is None else after - own, cores)


def busy_words(result: Mapping[str, Any]) -> str:
    """What is said of a measurement that `was_busy`.

    Examples
    --------
    >>> print(busy_words({"load_before": 7.5, "load_after": None, "machine": {"cores": 2}}))
    BUSY: the load average was 7.50 before and n/a after, on 2 cores; quiet machines measure better
    """
    before, after = ("n/a" if load is None else f"{load:.2f}" for load in (result["load_before"], result["load_after"]))
    return (
        f"BUSY: the load average was {before} before and {after} after, on {result['machine']['cores']} cores; "
        "quiet machines measure better"
    )


def peak_memory_bytes() -> int | None:
    """The most memory that this process has held so far; None on Windows."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # macOS counts bytes, all others kibibytes


def _processor() -> str | None:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or None


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
