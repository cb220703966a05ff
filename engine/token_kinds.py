"""Kinds of token, by what a token is and what stands before it. Each token is of exactly one kind.

The first row that fits decides:

| kind | a token |
|---|---|
| after a newline | whatever it is, if the text before it ends in a line break |
| other | that begins or ends within a character (`<F0 9F>`), has no text, or is a control token (`</s>`) |
| whitespace | of nothing but white space |
| digits | of nothing but digits, blanks around them set aside |
| start of word | a word (letters; `'` and `-` before or between them) that begins with a blank, or follows no word |
| inside a word | a word right behind a letter, a digit or `_` |
| punctuation | of nothing but the marks of running text: `. , ; : ! ? ' " ( )`, dashes, quotation marks, `。` |
| code | of anything else in ASCII: other marks (`{`, `=`, `->`, `%`), mixtures (`x1`, `foo(`, `3.14`) |
| other | of anything else, such as an emoji |
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

__all__ = ["KINDS", "TokenKind", "kind_of"]

TokenKind = Literal[
    "start of word", "inside a word", "whitespace", "punctuation", "digits", "code", "after a newline", "other"
]
KINDS: tuple[TokenKind, ...] = (
    "start of word", "inside a word", "whitespace", "punctuation", "digits", "code", "after a newline", "other",
)  # fmt: skip
"""In the order in which they are shown."""

BYTES = re.compile(r"<[0-9A-F]{2}(?: [0-9A-F]{2})*>\Z")  # what `engine.text` shows of a character that is not whole
CONTROL = re.compile(r"<\|?[A-Za-z_/][\w/]*\|?>\Z")  # `<|im_end|>`, `</s>`
JOINERS = "'\u2019-"
PROSE = frozenset(".,;:!?'\"()")


def kind_of(text: str, before: str) -> TokenKind:
    """The kind of a token that is shown as `text` (`Decision.draft_text`), behind the text `before`.

    Examples
    --------
    >>> [kind_of(text, "the") for text in (" draft", "se", "\\n\\n", ".", " 42", "x1", "😀")]
    ['start of word', 'inside a word', 'whitespace', 'punctuation', 'digits', 'code', 'other']
    >>> kind_of(" draft", "the end.\\n")
    'after a newline'
    """
    if before.endswith(("\n", "\r", "\u2028", "\u2029")):
        return "after a newline"
    if not text or BYTES.search(text) or CONTROL.match(text):
        return "other"
    core = text.strip()
    if not core:
        return "whitespace"
    if core.isdecimal():
        return "digits"
    if _is_word(core):
        return "inside a word" if text[0] == core[0] and _ends_in_word(before) else "start of word"
    if all(character in PROSE or _is_prose_mark(character) for character in core):
        return "punctuation"
    return "code" if core.isascii() else "other"


def _is_word(core: str) -> bool:
    letters = [character for character in core if character not in JOINERS]
    return bool(letters) and core[-1] not in JOINERS and all(map(_is_letter, letters))


def _is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] in "LM"


def _is_prose_mark(character: str) -> bool:
    """Dashes and quotation marks of any language, the ellipsis, and the marks of other scripts such as 。"""
    return unicodedata.category(character) in ("Pd", "Pi", "Pf") or (
        not character.isascii() and unicodedata.category(character) in ("Po", "Ps", "Pe")
    )


def _ends_in_word(before: str) -> bool:
    return bool(before) and (before[-1] == "_" or before[-1].isdecimal() or _is_letter(before[-1]))
