"""What numba keeps on disk is used only if it is what was written; else it is compiled anew."""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from numba import config
from numba.core import event

import tests.engine.models.jit_backend  # noqa: F401
from engine.errors import BackendError
from engine.models.jit import CODE, kept
from engine.models.jit.kept import KEPT_DAYS, LOCK, checked, folder_of_code
from engine.models.locks import file_lock

SOURCE = """
from numba import njit

@njit(cache=True)
def part(n):
    return n + 1

@njit(cache=True)
def run(n):
    return part(n) * 2

@njit(cache=True)
def assist(n):
    return part(n) * 3
"""


def middle_changed(share: float) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        place = int(share * len(data))
        return data[:place] + bytes(byte ^ 0x5A for byte in data[place : place + 8]) + data[place + 8 :]

    return change


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut to a few bytes": lambda data: data[:20],
    "cut in the middle": lambda data: data[: len(data) // 2],
    "without its last byte": lambda data: data[:-1],
    "longer": lambda data: data + b"\0",
    "zeros": lambda data: bytes(len(data)),
    "anything": lambda data: random.Random(1).randbytes(len(data)),
    **{f"changed at {share}": middle_changed(share) for share in (0.03, 0.3, 0.6, 0.9)},
}


class Program:
    """A small program that numba compiles, with the names of the real one."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path, self.code = folder / "program.py", folder / "code"
        self.path.write_text(SOURCE)
        self.code.mkdir()
        monkeypatch.setattr(config, "CACHE_DIR", str(self.code))

    def start(self) -> int:
        """Load and run it as a new process does; how many functions were compiled."""
        spec = importlib.util.spec_from_file_location("program", self.path)
        assert spec is not None
        assert spec.loader is not None
        program = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(program)
        with checked(self.code, program.run, program.assist), event.install_recorder("numba:compile") as recorder:
            assert (program.run(4), program.assist(4)) == (10, 15)
        self.loaded = program
        return sum(found.is_start for _, found in recorder.buffer)

    def files(self) -> list[Path]:
        return files(self.code)


def files(code: Path, name: str = "*") -> list[Path]:
    return sorted(code.glob(f"*/{name}.nb[ic]"))


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    return Program(tmp_path, monkeypatch)


def test_a_second_start_compiles_nothing(program: Program) -> None:
    assert program.start() == 3
    assert len(program.files()) == 6
    kept_at = {path: path.stat().st_mtime_ns for path in program.files()}
    assert program.start() == 0
    assert {path: path.stat().st_mtime_ns for path in program.files()} == kept_at


def test_what_is_damaged_is_compiled_anew_once(program: Program) -> None:
    """With all that it is made of, which numba reads where it compiles."""
    program.start()
    for path in program.files():
        path.write_bytes(b"")
    assert program.start() == 3
    assert all(path.stat().st_size for path in program.files())
    assert program.start() == 0


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the program leaves, compiled once for the tests that copy it."""
    with pytest.MonkeyPatch.context() as patches:
        program = Program(tmp_path_factory.mktemp("compiled"), patches)
        program.start()
    return program.code


@pytest.fixture
def code(compiled: Path, tmp_path: Path) -> Path:
    return shutil.copytree(compiled, tmp_path / "kept")


def believed(code: Path) -> bool:
    """Whether anything is left for numba to read; all of it is, or nothing."""
    before = files(code)
    with checked(code):
        after = files(code)
    assert after in (before, [])
    return bool(after)


def test_what_is_whole_is_believed(code: Path) -> None:
    assert believed(code)
    assert believed(code)


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("place", range(4))
def test_a_damaged_file_is_not_believed(code: Path, kind: str, place: int) -> None:
    path = (files(code, "program.run-*") + files(code, "program.assist-*"))[place]
    whole = path.read_bytes()
    path.write_bytes(DAMAGE[kind](whole))
    assert path.read_bytes() != whole
    assert not believed(code)


@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_notes_are_not_believed(code: Path, kind: str) -> None:
    notes = code / kept.SUMS
    notes.write_bytes(DAMAGE[kind](notes.read_bytes()))
    assert not believed(code)


def test_what_an_interrupted_start_has_left_is_not_believed(code: Path) -> None:
    (code / kept.SUMS).unlink()
    assert not believed(code)


@pytest.mark.parametrize("place", range(2))
def test_what_is_left_where_a_file_is_gone_is_not_believed(code: Path, place: int) -> None:
    files(code, "program.run-*")[place].unlink()
    assert not believed(code)


def test_other_files_of_the_folder_stay(code: Path) -> None:
    own, other = code / "mine.txt", code.parent / "other.nbi"
    for path in (own, other, files(code, "program.run-*")[0]):
        path.write_bytes(b"anything")
    assert not believed(code)
    assert own.read_bytes() == other.read_bytes() == b"anything"


def test_a_start_that_fails_notes_nothing(program: Program) -> None:
    with pytest.raises(RuntimeError, match="interrupted"), checked(program.code):
        raise RuntimeError("interrupted")
    assert not (program.code / kept.SUMS).exists()


def test_nothing_is_done_for_a_program_that_is_in_memory(program: Program) -> None:
    """It would be deleted and not written again."""
    program.start()
    (program.code / kept.SUMS).unlink()
    before = program.files()
    with checked(program.code, program.loaded.run, program.loaded.assist):
        pass
    assert program.files() == before
    assert not (program.code / kept.SUMS).exists()


def test_the_folder_is_another_for_other_sources_and_another_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "kept"))
    source = tmp_path / "sources" / "one.py"
    source.parent.mkdir()
    source.write_text("a = 1")
    folders = [folder_of_code(source.parent)]
    assert folder_of_code(source.parent) == folders[0]
    source.write_text("a = 2")
    folders.append(folder_of_code(source.parent))
    monkeypatch.setattr(config, "CPU_NAME", "another")
    folders.append(folder_of_code(source.parent))
    assert len(set(folders)) == 3
    assert all(folder.is_dir() and folder.parent == tmp_path / "kept" for folder in folders)


def test_a_new_folder_takes_the_place_of_those_that_nobody_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "kept"))
    source = tmp_path / "sources" / "one.py"
    source.parent.mkdir()

    def asked_for(number: int) -> Path:
        source.write_text(f"a = {number}")
        os.utime(source, (number, number))
        return folder_of_code(source.parent)

    def age(folder: Path, days: float) -> None:
        at = time.time() - days * 24 * 3600
        os.utime(folder, (at, at))

    unused, used_again, recent, in_use = kept_folders = [asked_for(number) for number in range(4)]
    others = [tmp_path / "kept" / name for name in ("jit_" + "0" * 40, "0" * 15, "g" * 16, "0" * 16)]
    for folder in (*kept_folders, *others):
        (folder / "jit_0").mkdir(parents=True)
        (folder / "jit_0" / "program.run-1.nbc").write_bytes(b"code")
        if folder != others[-1]:  # a name like ours, and without our lock
            (folder / LOCK).touch()
        age(folder, KEPT_DAYS - 1 if folder == recent else KEPT_DAYS + 1)
    assert asked_for(1) == used_again
    assert all(folder.is_dir() for folder in kept_folders)  # nothing goes where the folder is there already
    with file_lock(in_use / LOCK):
        new = asked_for(4)
    left = {folder for folder in (tmp_path / "kept").iterdir() if (folder / "jit_0").is_dir()}
    assert left == {used_again, recent, in_use, *others}
    assert new.is_dir()
    assert not (unused / "jit_0").exists()
    asked_for(5)
    assert not (in_use / "jit_0").exists()


def test_a_folder_that_cannot_be_deleted_keeps_nobody_from_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    old = tmp_path / ("0" * 16)
    old.mkdir()
    (old / LOCK).touch()
    os.utime(old, (0, 0))

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(kept, "file_lock", refuse)
    assert folder_of_code(tmp_path).is_dir()
    assert old.is_dir()


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(kept, "TemporaryFile", refuse)
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    with pytest.raises(BackendError, match=r"Permission denied; .* set NUMBA_CACHE_DIR \(it is .*\) to another folder"):
        folder_of_code(tmp_path)
    monkeypatch.setattr(config, "CACHE_DIR", "")
    with pytest.raises(BackendError, match=r"Permission denied; .* write there, or use --backend ort$"):
        folder_of_code(tmp_path)


def test_the_files_of_the_real_program_are_found(tmp_path: Path) -> None:
    """All four, by the names that numba gives them: without them nothing would ever be believed."""
    from engine.models.gguf_loader import load_gguf
    from tests.engine.models.tiny_files import Tiny, write

    load_gguf(write(tmp_path / "tiny.gguf", Tiny()), backend="numba")
    names = [line.rpartition("/")[2] for line in kept._sums(CODE).decode().splitlines()]
    assert [name.split("-")[0] for name in names] == ["program.assist"] * 2 + ["program.run"] * 2
    assert {Path(name).suffix for name in names} == {".nbi", ".nbc"}
