"""Rows as an aligned table for a terminal."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

__all__ = ["table"]

SPACE = re.compile(r"\s*[^\S ]\s*")
"""White space that is not blanks alone."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: AbstractSet[str] = frozenset()) -> str:
    """Columns two blanks apart; those named in `right` end on the same column.

    Each row is one line: white space of any kind is a blank, and other characters that cannot be
    printed are escapes.

    Examples
    --------
    >>> print(table(("name", "n"), [("draft", "7"), ("模型", "12")], right={"n"}))
    name    n
    draft   7
    模型   12
    >>> print(table(("prompt", "n"), [("one\\n\\ttwo", "1"), ("a\\x1b[31m", "2")]))
    prompt     n
    one two    1
    a\\x1b[31m  2
    """
    lines = [tuple(head), *(tuple(_printable(cell) for cell in row) for row in rows)]
    widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
    shown = (
        "  ".join(_padded(cell, width, name in right) for cell, width, name in zip(line, widths, head, strict=True))
        for line in lines
    )
    return "\n".join(line.rstrip() for line in shown)


def _padded(cell: str, width: int, right: bool) -> str:
    blanks = " " * (width - _width(cell))
    return blanks + cell if right else cell + blanks


def _width(cell: str) -> int:
    """Columns that a terminal takes for the text: two for East Asian characters, none for combining ones."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in cell
    )


def _printable(cell: str) -> str:
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in SPACE.sub(" ", cell)
    )
