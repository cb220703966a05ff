"""`python -m engine bench`: what it prints, and what it says to bad input."""

import json
import signal
import subprocess
import sys

import pytest

from engine.cli import bench as command
from engine.cli.bar import progress_lines
from engine.cli.main import main

PRICES = ["--target-call-seconds", "0.02", "--draft-call-seconds", "0.002"]


@pytest.fixture
def prompts(tmp_path):
    file = tmp_path / "prompts.txt"
    file.write_text("The draft model\nThe target model reads\n")
    return str(file)


@pytest.fixture
def small(prompts):
    return ["bench", "--prompts", prompts, "--repeats", "1", "--max-tokens", "12", "--lengths", "2", *PRICES]


def test_json_is_one_object_alone(small, capsys):
    assert main([*small, "--json"]) == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert captured.out.count("\n") == 1
    assert captured.err.startswith("loading\nmeasuring single calls\nwarming up\n1 of ")
    assert result["settings"]["lengths"] == [2]
    assert result["settings"]["prompts"] == 2


def test_a_table_and_markdown(small, capsys):
    assert main(small) == 0
    assert capsys.readouterr().out.startswith("Speculation ")
    assert main([*small, "--markdown"]) == 0
    assert "| plain | 50.0 |" in capsys.readouterr().out


def test_quick_takes_a_prompt_of_each_category(capsys):
    assert main(["bench", "--quick", "--drafter", "ngram", "--json", *PRICES]) == 0
    result = json.loads(capsys.readouterr().out)
    assert len(result["categories"]) == 7
    assert result["settings"]["prompts"] == 7
    assert (result["settings"]["repeats"], result["settings"]["lengths"]) == (1, [2, 4])


def test_an_interrupt_prints_what_was_measured(small, capsys, monkeypatch):
    original = command.run_bench

    def interrupted(settings, progress):
        def told(doing, done, total):
            progress(doing, done, total)
            if done == 4:
                raise KeyboardInterrupt

        return original(settings, told)

    monkeypatch.setattr(command, "run_bench", interrupted)
    assert main(small) == 1
    assert "PARTIAL: interrupted after 4 of" in capsys.readouterr().out


def test_without_a_terminal_lines_tell_how_far_it_is(capsys):
    now = 0.0
    told = progress_lines(lambda: now)
    told("loading", 0, 0)
    for part in range(3):
        told(f"compiling: {part} of 2", 0, 0)
    for done in range(1, 31):
        now += 3.0
        told(f"ngram {done}", done, 30)
    lines = [f"{done} of 30 runs: ngram {done}" for done in (1, 5, 9, 13, 17, 21, 25, 29, 30)]
    assert capsys.readouterr().err.splitlines() == ["loading", "compiling", *lines]


@pytest.mark.skipif(sys.platform == "win32", reason="signals are of POSIX")
@pytest.mark.parametrize("command", ["bench", "compare"])
def test_a_polite_kill_in_the_background_prints_what_was_measured(command, prompts):
    ignoring = "import os, signal as s, sys; s.signal(s.SIGINT, s.SIG_IGN); os.execv(sys.executable, sys.argv[1:])"
    long = [command, "--prompts", prompts, "--max-tokens", "500", "--repeats", "500"]
    with subprocess.Popen(
        [sys.executable, "-c", ignoring, sys.executable, "-m", "engine", *long],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert any(line.startswith("1 of ") for line in process.stderr)
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert "PARTIAL: " in out
    assert process.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--prompts", "/nowhere/prompts.txt"], "cannot be read"),
        (["--repeats", "0"], "at least 1"),
        (["--drafter", "crystal-ball"], "crystal-ball"),
        (["--target", "nothing-of-that-name"], "nothing-of-that-name"),
        (["--threads", "0"], "threads is 0"),
        (["--max-tokens", "-1"], "max_tokens is -1"),
        (["--max-tokens", "0"], "max_tokens is 0"),
        (["--temperature", "-1"], "temperature"),
    ],
)
def test_bad_input_is_told_without_a_traceback(arguments, told, capsys):
    assert main(["bench", *arguments]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "x", "1-", "-3", "2;3", "6-2"])
def test_a_bad_list_of_lengths_is_told(text, capsys):
    with pytest.raises(SystemExit):
        main(["bench", f"--lengths={text}"])
    assert "no list of draft lengths" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["40", "1-33", "2, 1-99999999999999999999", "0-4"])
def test_lengths_out_of_bounds_are_told_as_given_and_no_list_is_made_of_them(text, capsys):
    with pytest.raises(SystemExit):
        main(["bench", f"--lengths={text}"])
    assert f"{text.split(', ')[-1]} was given; a draft length is from 1 to 32" in capsys.readouterr().err


def test_lists_of_lengths():
    assert command._lengths("1-6") == (1, 2, 3, 4, 5, 6)
    assert command._lengths("8,2-3, 2") == (2, 3, 8)


def test_threads_are_set_for_the_engine(small, monkeypatch, capsys):
    monkeypatch.setenv("DRAFTSCOPE_THREADS", "2")
    assert main([*small, "--threads", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["machine"]["threads"] == 1
