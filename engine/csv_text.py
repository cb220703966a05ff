"""CSV as text and as a file: cells that a spreadsheet cannot run, lines, bytes.

Lines end in CR LF and quotes are doubled (RFC 4180). What is not available is an empty cell, a
truth is `true` or `false`, and a float has every digit that it needs to come back exactly.
"""

from __future__ import annotations

import codecs
import csv
import errno
import io
import os
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.errors import StoreError

__all__ = ["Cell", "check_csv", "csv_line", "safe_text", "to_bytes", "write_csv"]

Cell = str | int | float | bool | None

FORMULA_STARTS = frozenset("=+-@\uff1d\uff0b\uff0d\uff20")
"""Characters that make a cell a formula, the full-width ones included, after https://owasp.org/www-community/attacks/CSV_Injection."""

IGNORED = frozenset("\"'`\u2018\u2019\u201c\u201d")
"""Quotes that a program on the way may take off."""


def safe_text(text: str) -> str:
    """The text, with an apostrophe before it if a spreadsheet would run it as a formula.

    Blanks, control characters and quotes before the formula's first character do not hide it. The
    character NUL, at which many programs stop reading, becomes its symbol U+2400.

    Examples
    --------
    >>> [safe_text(text) for text in ("a-b", "=1+1", ' "@SUM(A1)', "-", "NUL \\0")]
    ['a-b', "'=1+1", '\\' "@SUM(A1)', "'-", 'NUL ␀']
    """
    first = next((character for character in text if not _is_ignored(character)), "")
    runs = first in FORMULA_STARTS or text.startswith(("\t", "\r", "\n"))
    shown = text.replace("\0", "\u2400")
    return f"'{shown}" if runs else shown


def _is_ignored(character: str) -> bool:
    return character in IGNORED or character.isspace() or unicodedata.category(character) in ("Cc", "Cf")


def csv_line(cells: Iterable[Cell]) -> str:
    """One line. Text is made safe (`safe_text`); numbers are left as they are.

    Examples
    --------
    >>> csv_line(["=1", -1, 0.1, True, None, "a, b"])
    '\\'=1,-1,0.1,true,,"a, b"\\r\\n'
    """
    line = io.StringIO()
    csv.writer(line).writerow([_shown(cell) for cell in cells])
    return line.getvalue()


def _shown(cell: Cell) -> Cell:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return safe_text(cell) if isinstance(cell, str) else cell


def to_bytes(lines: Iterable[str], *, bom: bool = False) -> bytes:
    """Lines, or one text, in UTF-8; with a byte-order mark Excel sees that it is.

    Half a surrogate pair, which UTF-8 cannot hold, is written as an escape: `\\ud83d`.

    Examples
    --------
    >>> to_bytes(csv_line(["é"]), bom=True)
    b'\\xef\\xbb\\xbf\\xc3\\xa9\\r\\n'
    """
    return b"".join(_encoded(lines, bom))


def write_csv(lines: Iterable[str], name: str, *, bom: bool = False) -> None:
    """Write to the file `name`, or to standard output if that is "-".

    A file that is there is replaced when, and only when, all of the new one has been written.

    Parameters
    ----------
    lines : iterable of str
        Made by `engine.export`; consumed one by one.
    name : str
    bom : bool, default False
        Begin with a byte-order mark.

    Raises
    ------
    StoreError
        If the file cannot be written.
    """
    if name == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(to_bytes(lines, bom=bom))
        return
    path, part = _places(name)
    with _told(name):
        try:
            with (part or path).open("wb") as file:
                file.writelines(_encoded(lines, bom))
            if part:
                part.replace(path)
        except BaseException:
            if part:
                part.unlink(missing_ok=True)
            raise


def check_csv(name: str) -> None:
    """Refuse a name that `write_csv` could not write to, before there is anything to write.

    Raises
    ------
    StoreError
        If the folder is not there or may not be written to, or `name` is a folder.
    """
    if name == "-":
        return
    path, part = _places(name)
    with _told(name):
        if part:
            part.open("wb").close()
            part.unlink()
        elif path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        elif not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _places(name: str) -> tuple[Path, Path | None]:
    """Where to write in the end, and the file that takes its place then; None for a pipe or a device."""
    path = Path(os.path.realpath(name))  # through a link, which stays one
    replaces = path.is_file() or not path.exists()
    return path, path.with_name(f".{path.name}.{os.getpid()}.part") if replaces else None


@contextmanager
def _told(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as failure:
        raise StoreError(f"the file {name} cannot be written: {failure.strerror or failure}") from failure


def _encoded(lines: Iterable[str], bom: bool) -> Iterator[bytes]:
    if bom:
        yield codecs.BOM_UTF8
    for line in lines:
        yield line.encode("utf-8", errors="backslashreplace")
