"""What is said while a model is loaded: a bar on a terminal, else a line, and nothing of what is over in a moment."""

import io
import re
import sys

from engine.cli import bar
from engine.cli.bar import loading_bar, loading_lines, progress_bar


class Terminal(io.StringIO):
    """An error stream that somebody looks at."""

    def isatty(self):
        return True


def on_terminal(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def lines_left(terminal):
    """What stays on the terminal, without the bars themselves and their times."""
    shown = [line.rpartition("\r")[2] for line in terminal.getvalue().split("\n")[:-1]]
    return [re.sub(r"\|.*\|", "||", line.partition(" [")[0]) for line in shown]


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


def test_a_second_model_has_a_line_of_its_own(capsys):
    now = 0.0
    told = loading_lines(lambda: now)
    for total in (3, 2, 40):
        for done in range(total + 1):
            told("packing", done, total)
            now += 0.4 if total > 2 else 0.1
        told("packing", total, total)
    assert capsys.readouterr().err == "packing\npacking\n"


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
    assert lines_left(terminal) == ["packing || 3/3", "compiling || 2/2", "waiting"]


def test_on_a_terminal_a_second_model_has_bars_of_its_own(monkeypatch):
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(bar, "SHORT_SECONDS", 0)
    with loading_bar() as told:
        for total in (30, 12, 12):
            for done in range(1, total + 1):
                told("packing", done, total)
        told("compiling", 1, 3)
        told("compiling", 2, 4)  # of another total, and the first has not come to its end
        told("compiling", 1, 4)
    packed = [f"packing || {total}/{total}" for total in (30, 12, 12)]
    assert lines_left(terminal) == [*packed, "compiling || 1/3", "compiling || 2/4", "compiling || 1/4"]


def test_on_a_terminal_what_is_done_is_done_when_it_is_told_again(monkeypatch):
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(bar, "SHORT_SECONDS", 0)
    with loading_bar() as told:
        load(told)
        told("compiling", 2, 2)
        told("compiling", 2, 2)
    assert lines_left(terminal) == ["packing || 3/3", "compiling || 2/2"]


def test_on_a_terminal_the_bar_of_loading_ends_before_that_of_the_work(monkeypatch):
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(bar, "SHORT_SECONDS", 0)
    with loading_bar() as told, progress_bar("judging", bar_format=bar.BAR) as progress:
        load(told)
        loaded = terminal.getvalue()
        for done in range(4):
            progress(done, 3)
    assert loaded.endswith("\n")
    assert "packing" not in terminal.getvalue()[len(loaded) :]
    assert "compiling" not in terminal.getvalue()[len(loaded) :]
    assert lines_left(terminal) == ["packing || 3/3", "compiling || 2/2", "judging || 3/3"]


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
