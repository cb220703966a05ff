"""Fixtures for all tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

from engine.errors import DownloadError
from engine.folders import HOME_VARIABLE
from engine.models.base import LoadedModel

HOME = os.environ.get(HOME_VARIABLE)
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(__file__).parents[1] / ".numba"))  # compiled once for all tests
THE_PAGE = "tests/dashboard/"


class FilesAndThePage(LoadFileScheduling):
    """Files are kept whole, so that their fixtures are built once; servers and browsers never run side by side."""

    def _split_scope(self, nodeid: str) -> str:
        return THE_PAGE if nodeid.startswith(THE_PAGE) else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """With `--dist=loadfile` a process takes one file after another, and one process all files of the page."""
    return FilesAndThePage(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home of its own for every test: no test reads or writes the user's runs and models."""
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path_factory.mktemp("home")))


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """The SmolLM2-135M file of the catalogue, pulled if it is not here yet.

    The variable DRAFTSCOPE_TEST_GGUF names another place where the same file lies.  Tests that
    need it are skipped only where it cannot be fetched, and never in CI.
    """
    from engine.models import catalog

    override = os.environ.get("DRAFTSCOPE_TEST_GGUF")
    if override:
        return Path(override)
    with pytest.MonkeyPatch.context() as users_own:
        if HOME is None:
            users_own.delenv(HOME_VARIABLE, raising=False)
        else:
            users_own.setenv(HOME_VARIABLE, HOME)
        try:
            return catalog.path_of("smollm2-135m") or catalog.pull("smollm2-135m")
        except DownloadError as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"SmolLM2 cannot be fetched: {error}")


@pytest.fixture(scope="session")
def smollm2(smollm2_path: Path) -> LoadedModel:
    """SmolLM2-135M, read once for all tests; use `model.fork()` where the cache matters."""
    from engine.models.gguf_loader import load_gguf

    return load_gguf(smollm2_path, name="smollm2-135m")
