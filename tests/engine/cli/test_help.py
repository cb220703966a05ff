"""`--help` of every command: it can be printed, and nothing in it is a template that was left unfilled."""

import re

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


def test_no_help_shows_an_unfilled_template(capsys):
    commands = dict(all_commands(capsys))
    assert {(), ("compare",), ("lab", "lossless"), ("models", "pull"), ("runs", "export")} <= set(commands)
    for told in commands.values():
        assert not set("{}") & set(CHOICES.sub("", told))
        assert not re.search(r"%\(\w*\)|default:?\s+None\b", told)
