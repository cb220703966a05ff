"""What is said while a model is loaded: a bar on a terminal, else a line, and nothing of what is over in a moment."""

import io
import sys

from engine.cli import bar
from engine.cli.bar import loading_bar, loading_lines


class Terminal(io.StringIO):
    """An error stream that somebody looks at."""

    def isatty(self):
        return True


def on_terminal(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def load(told):
    for doing, total in (("packing", 3), ("compiling", 2)):
        for done in range(total + 1):
            told(doing, done, total)


def test_a_line_is_written_once_and_of_nothing_that_is_over_in_a_moment(capsys):
    now = 0.0
    told = loading_lines(lambda: now)
    told("packing", 1, 2)
    now += 0.1
    told("packing", 2, 2)
    for done in range(4):
        told("compiling", done, 3)
        now += 1.0
    assert capsys.readouterr().err == "compiling\n"


def test_a_stream_that_nobody_reads_ends_no_loading(monkeypatch):
    times = iter([0.0, 0.0, 1.0, 1.0, 2.0, 2.0])
    told = loading_lines(lambda: next(times))
    stream = io.StringIO()
    monkeypatch.setattr(stream, "write", lambda text: (_ for _ in ()).throw(BrokenPipeError()))
    monkeypatch.setattr(sys, "stderr", stream)
    for done in range(3):
        told("compiling", done, 3)


def test_on_a_terminal_each_thing_has_a_bar_of_its_own(monkeypatch):
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(bar, "SHORT_SECONDS", 0)
    with loading_bar() as told:
        load(told)
        told("waiting", 0, 0)
    shown = [line.rpartition("\r")[2] for line in terminal.getvalue().split("\n")[:-1]]
    assert [line.partition(" [")[0].replace("#", "").replace("█", "") for line in shown] == [
        "packing || 3/3",
        "compiling || 2/2",
        "waiting",
    ]


def test_on_a_terminal_nothing_is_drawn_of_what_is_over_in_a_moment(monkeypatch):
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(bar, "SHORT_SECONDS", 60)
    with loading_bar() as told:
        load(told)
    assert terminal.getvalue() == ""


def test_without_a_terminal_nothing_is_drawn_of_what_is_over_in_a_moment(capsys):
    with loading_bar() as told:
        load(told)
    assert capsys.readouterr().err == ""
