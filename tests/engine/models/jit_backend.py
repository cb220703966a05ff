"""Skips what imports it where numba is not installed, or the processor lacks what it compiles for."""

from __future__ import annotations

import pytest

from engine.models.backends import can_run

if not can_run("numba"):
    pytest.skip("numba does not run here", allow_module_level=True)
