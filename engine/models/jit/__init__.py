"""A transformer compiled by numba for processors with AVX2: packed weights, products, threads, and the model.

numba keeps what it has compiled and finds it by the file that a function is in; it does not notice
that another file has changed whose functions went into it. So the compiled code of this folder is
kept apart for each state of its sources, and looked at before it is used; see `kept`.
"""

from __future__ import annotations

from pathlib import Path

from numba import config as _config

from engine.models.jit.kept import folder_of_code

__all__ = ["CODE"]

if _config.DISABLE_JIT:
    raise RuntimeError("NUMBA_DISABLE_JIT is set, and instructions of a processor cannot be interpreted")

CODE = folder_of_code(Path(__file__).parent)
"""Where the compiled code is kept."""

_before = _config.CACHE_DIR
_config.CACHE_DIR = str(CODE)
try:
    from engine.models.jit import program  # noqa: F401
finally:
    _config.CACHE_DIR = _before
