"""`--help` of every command: it can be printed, and nothing in it is a template that was left unfilled."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from engine.cli.main import main

CHOICES = re.compile(r"\{[\w.+-]+(?:,\s*[\w.+-]+)+\}")
"""How argparse shows what an option may be: the only braces of a help text."""


def help_of(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


def all_commands(capsys, words=()):
    """Every command and action, and what `--help` prints for it."""
    told = help_of(words, capsys)
    yield words, told
    listed = re.search(r"^(?:commands|actions):\n((?:  .*\n)+)", told, re.MULTILINE)
    for name in re.findall(r"^    (\w+)", listed[1], re.MULTILINE) if listed else ():
        yield from all_commands(capsys, (*words, name))


@pytest.mark.parametrize(
    ("arguments", "usage"),
    [
        (["lab", "trace", "--run", "nope"], "usage: python -m engine lab trace ID "),
        (["runs", "list", "--colour", "red"], "usage: python -m engine runs list "),
        (["run", "--prompt", "x", "--colour"], "usage: python -m engine run "),
    ],
)
def test_an_unknown_argument_is_told_with_the_usage_of_its_command(arguments, usage, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert told.startswith(usage)
    assert "unrecognized arguments: " in told


def test_help_of_a_trace_says_how_to_name_a_run(capsys):
    told = " ".join(help_of(["lab", "trace"], capsys).split())
    assert "A saved run is named by its id, or the beginning of it: python -m engine lab trace ID; `runs list`" in told


def test_no_help_shows_an_unfilled_template(capsys):
    commands = dict(all_commands(capsys))
    assert {(), ("compare",), ("lab", "lossless"), ("models", "pull"), ("runs", "export")} <= set(commands)
    for told in commands.values():
        assert not set("{}") & set(CHOICES.sub("", told))
        assert not re.search(r"%\(\w*\)|default:?\s+None\b", told)


def test_a_command_imports_nothing_that_only_others_need():
    program = (
        "import sys; from engine.cli.main import main\n"
        "try: main(['run', '--help'])\n"
        "except SystemExit: print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=Path(__file__).parents[3], capture_output=True, text=True, check=True
    )
    loaded = {name for name in done.stdout.split() if name.startswith("engine.")}
    assert "engine.cli.run" in loaded
    assert not {name for name in loaded if name.startswith(("engine.bench", "engine.lab", "engine.compare"))}
