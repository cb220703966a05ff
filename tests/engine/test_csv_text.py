"""CSV as text: cells that no spreadsheet runs, bytes, and files that are whole or not there."""

import csv
import errno
import io
import math
import os
import threading
from pathlib import Path

import pytest

from engine.csv_text import check_csv, csv_line, safe_text, to_bytes, write_csv
from engine.errors import StoreError


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "\tplain",
        "\rplain",
        "\nplain",
        " =1",
        "\u00a0=1",
        "\u200b=1",
        "\ufeff=1",
        '"=1',
        "'=1",
        " ' \"@x",
        "“=1”",
        "\x01-2",
        "\0=1",
        "\uff1d1",
        "\uff0b1",
        "\uff0d1",
        "\uff20x",
        '=HYPERLINK("http://evil.example","press")',
        "=cmd|' /C calc'!A0",
        "-",
    ],
)
def test_text_that_a_spreadsheet_would_run_gets_an_apostrophe(text):
    assert safe_text(text) == "'" + text.replace("\0", "␀")


@pytest.mark.parametrize("text", ["", "a", "a=1", "1-2", " a", "'a'", '"', "  ", "汉字", "😀", "a\n=1", "<2D>", "_-"])
def test_other_text_is_left_as_it_is(text):
    assert safe_text(text) == text


def test_the_apostrophe_can_be_told_from_one_that_was_there():
    assert safe_text("'=1") == "''=1"
    assert safe_text("'a") == "'a"


def test_numbers_are_never_touched():
    assert (
        csv_line([-1, -0.5, 1e-300, 0.1 + 0.2, 10**20])
        == "-1,-0.5,1e-300,0.30000000000000004,100000000000000000000\r\n"
    )


def test_what_is_not_available_is_an_empty_cell():
    assert csv_line([None, "", True, False]) == ",,true,false\r\n"


def test_bytes_are_utf8_with_a_mark_if_asked():
    assert to_bytes("😀,汉\r\n") == "😀,汉\r\n".encode()
    assert to_bytes(["a", "b"], bom=True) == b"\xef\xbb\xbfab"
    assert to_bytes([], bom=True) == b"\xef\xbb\xbf"


def test_half_a_surrogate_pair_does_not_spoil_the_file():
    assert to_bytes("a\ud83d") == b"a\\ud83d"


def test_a_file_is_written_and_written_over(tmp_path):
    path = tmp_path / "out.csv"
    write_csv(["old\r\n"], str(path))
    write_csv(["é\r\n", "b\r\n"], str(path), bom=True)
    assert path.read_bytes() == b"\xef\xbb\xbf\xc3\xa9\r\nb\r\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_on_the_way_leaves_the_old_file(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("old")

    def lines():
        yield "new"
        raise StoreError("the store has gone")

    with pytest.raises(StoreError, match="has gone"):
        write_csv(lines(), str(path))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(StoreError, match=r"nowhere.*cannot be written: No such file"):
        write_csv(["a"], str(tmp_path / "nowhere" / "out.csv"))
    with pytest.raises(StoreError, match=r"cannot be written: .*directory"):
        write_csv(["a"], str(tmp_path))


def test_a_name_that_cannot_be_written_is_told_beforehand(tmp_path, monkeypatch):
    with pytest.raises(StoreError, match=r"nowhere.*cannot be written: No such file"):
        check_csv(str(tmp_path / "nowhere" / "out.csv"))
    with pytest.raises(StoreError, match=r"cannot be written: .*directory"):
        check_csv(str(tmp_path))

    def refused(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(StoreError, match=r"cannot be written: Permission denied"):
        check_csv(str(tmp_path / "out.csv"))


def test_looking_beforehand_changes_nothing(tmp_path):
    (tmp_path / "old.csv").write_text("old")
    for name in ("-", os.devnull, str(tmp_path / "new.csv"), str(tmp_path / "old.csv")):
        check_csv(name)
    assert [path.name for path in tmp_path.iterdir()] == ["old.csv"]
    assert (tmp_path / "old.csv").read_text() == "old"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes and links")
def test_a_pipe_is_written_to_and_a_link_stays_a_link(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    received = []
    reader = threading.Thread(target=lambda: received.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write_csv(["a\r\n"], str(tmp_path / "pipe"))
    reader.join()
    assert received == [b"a\r\n"]
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    write_csv(["a\r\n"], str(tmp_path / "link"))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"a\r\n"


def test_a_dash_is_standard_output(capfdbinary):
    write_csv(["😀\r\n"], "-")
    assert capfdbinary.readouterr().out == "😀\r\n".encode()


def test_every_float_comes_back_exactly():
    numbers = [0.1, 1 / 3, 5e-324, 1.7976931348623157e308, 2**-53, math.pi]
    [row] = csv.reader(io.StringIO(csv_line(numbers), newline=""))
    assert [float(cell) for cell in row] == numbers
