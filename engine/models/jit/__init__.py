"""A transformer compiled by numba for processors with AVX2: packed weights, products, threads, and the model.

numba keeps what it has compiled and finds it by the file that a function is in; it does not notice
that another file has changed whose functions went into it. So the compiled code of this folder is
kept apart for each state of its sources: in the cache folder, or where NUMBA_CACHE_DIR says.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from numba import config as _config

from engine.folders import cache_folder

__all__ = ["CODE"]

if _config.DISABLE_JIT:
    raise RuntimeError("NUMBA_DISABLE_JIT is set, and instructions of a processor cannot be interpreted")

_sources = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
_before = _config.CACHE_DIR
CODE = Path(_before or cache_folder() / "numba") / hashlib.sha256(_sources).hexdigest()[:16]
"""Where the compiled code is kept."""

CODE.mkdir(parents=True, exist_ok=True)
_config.CACHE_DIR = str(CODE)
try:
    from engine.models.jit import program  # noqa: F401
finally:
    _config.CACHE_DIR = _before
