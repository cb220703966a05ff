"""Fixtures for the tests of the engine."""

import pytest

from engine.store import RunStore


@pytest.fixture
def store(tmp_path):
    """A run store of the test's own."""
    return RunStore(tmp_path / "runs.sqlite")
