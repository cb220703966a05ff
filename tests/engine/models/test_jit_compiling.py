"""How far the compiling of a program is: each function once, from the first to the last, and nothing where none is."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

import tests.engine.models.jit_backend  # noqa: F401
from engine.models.jit.candidates import score_part
from engine.models.jit.compiling import COMPILING, functions_of, told_of_compiling
from engine.models.jit.peaks import find_peaks
from engine.models.jit.product import multiply
from engine.models.jit.program import assist, run
from engine.models.jit.rows import attend_part

FUNCTIONS = """
from numba import njit

compiled = njit(cache=True)

@compiled
def leaf(x):
    return x + 1

@compiled
def twice(x):  # compiled for two types
    return x * 2

@compiled
def branch(x):
    return leaf(x) + twice(x) + twice(0.5)

def not_compiled(x):
    return x

@compiled
def first(x):
    return branch(x)

@compiled
def second(x):
    return leaf(x)

@compiled
def other(x):
    return x
"""
N_FUNCTIONS = 5


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "small_program.py").write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path / "code"))
    return tmp_path


def program() -> ModuleType:
    """As a process has it that has just begun: nothing is compiled, or taken from where it is kept."""
    sys.modules.pop("small_program", None)
    return importlib.import_module("small_program")


def told_by(module: ModuleType, *calls: str) -> list[tuple[str, int, int]]:
    told: list[tuple[str, int, int]] = []
    with told_of_compiling(lambda *parts: told.append(parts), module.first, module.second):
        for name in calls:
            getattr(module, name)(3)
    return told


def test_every_function_of_a_program_counts_once(folder: Path) -> None:
    assert told_by(program(), "first", "second") == [(COMPILING, done, N_FUNCTIONS) for done in range(N_FUNCTIONS + 1)]


def test_nothing_is_told_where_all_is_kept_or_there_already(folder: Path) -> None:
    module = program()
    told_by(module, "first", "second")
    assert told_by(module, "first", "second") == []
    assert told_by(program(), "first", "second") == []


def test_what_is_kept_of_a_program_counts_as_done_with_all_behind_it(folder: Path) -> None:
    program().first(3)
    assert told_by(program(), "first", "second") == [
        (COMPILING, done, N_FUNCTIONS) for done in (3, 5)
    ]  # but not the leaf


def test_what_is_no_part_of_the_program_is_not_told_of(folder: Path) -> None:
    assert told_by(program(), "other") == []


def test_who_is_told_may_end_it(folder: Path) -> None:
    module = program()

    def refuse(doing: str, done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), told_of_compiling(refuse, module.first, module.second):
        module.first(3)
    assert module.first(3) == 4 + 6 + 1.0


def test_the_program_of_a_pass_is_made_of_what_its_files_define() -> None:
    found = functions_of([run, assist])
    assert {run, assist, multiply, attend_part, find_peaks, score_part} <= found
    assert {function.py_func.__module__.rpartition(".")[0] for function in found} == {"engine.models.jit"}
