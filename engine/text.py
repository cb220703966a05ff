"""Ids to text, one token at a time.

A token stands for bytes, and a character may be spread over several tokens.  `TextStream` hands
out text as soon as it is whole; a token that only begins a character shows its bytes, never the
replacement character U+FFFD.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from dataclasses import dataclass

from engine.models.base import Tokenizer

__all__ = ["Piece", "TextStream", "find_stop", "text_with_controls"]


@dataclass(frozen=True, slots=True)
class Piece:
    """One token as text.

    Attributes
    ----------
    shown : str
        What to show for this token: its text, or its bytes (`<F0 9F>`) while a character is not whole.
    text : str
        What the token adds to the text: "" while a character is not whole, and for control tokens.
    parts : int
        Over how many tokens the first character of `text` is spread; 1 as a rule.
    """

    shown: str
    text: str
    parts: int = 1


class TextStream:
    """Incremental decoding of a sequence of ids.

    Parameters
    ----------
    tokenizer : Tokenizer or None
        None where the model has no text side: every piece is empty then.

    Examples
    --------
    >>> from engine.models.base import Tokenizer
    >>> class Bytes:
    ...     def token_bytes(self, token): return bytes([token])
    ...     def is_control(self, token): return False
    >>> stream = TextStream(Bytes())
    >>> [stream.push(byte).shown for byte in "né".encode()]
    ['n', '<C3>', 'é']
    >>> stream.text
    'né'
    """

    def __init__(self, tokenizer: Tokenizer | None) -> None:
        self._tokenizer = tokenizer
        self._pending = b""
        self._n_pending = 0
        self._texts: list[str] = []
        self._whole: dict[int, Piece] = {}  # those so far that hang on nothing before them

    @property
    def text(self) -> str:
        """The text so far; bytes of a character that is not whole are left out."""
        return "".join(self._texts)

    def finish(self) -> str:
        """The text, with what never became a character shown as U+FFFD, once, at the end."""
        return self.text + self._pending.decode("utf-8", errors="replace")

    def push(self, token: int) -> Piece:
        """Append a token and return it as text."""
        piece, self._pending, self._n_pending = self._piece(token, self._pending, self._n_pending)
        self._texts.append(piece.text)
        return piece

    def peek(self, tokens: Iterable[int]) -> tuple[str, ...]:
        """How `tokens` would be shown if they followed, without appending them."""
        shown: list[str] = []
        pending, n_pending = self._pending, self._n_pending
        for token in tokens:
            piece, pending, n_pending = self._piece(token, pending, n_pending)
            shown.append(piece.shown)
        return tuple(shown)

    def _piece(self, token: int, pending: bytes, n_pending: int) -> tuple[Piece, bytes, int]:
        if not pending and token in self._whole:  # a token is shown as a guess, and again as what came of it
            return self._whole[token], b"", 0
        piece, left, n_left = self._made(token, pending, n_pending)
        if not pending and not left:
            self._whole[token] = piece
        return piece, left, n_left

    def _made(self, token: int, pending: bytes, n_pending: int) -> tuple[Piece, bytes, int]:
        if self._tokenizer is None:
            return Piece("", ""), b"", 0
        own = self._tokenizer.token_bytes(token)
        if self._tokenizer.is_control(token):
            broken = pending.decode("utf-8", errors="replace")
            return Piece(own.decode("utf-8", errors="replace"), broken), b"", 0
        text, left = _decoded(pending + own)
        if left and not text:
            return Piece(_bytes_shown(own), ""), left, n_pending + 1
        parts = 1 + n_pending
        shown = text + _bytes_shown(left)
        if "\ufffd" in text:  # what had begun never became a character; the token may well be whole by itself
            alone, left_alone = _decoded(own)
            shown = _bytes_shown(own) if "\ufffd" in alone else alone + _bytes_shown(left_alone)
            parts = 1
        return Piece(shown, text, parts), left, 1 if left else 0


def _decoded(raw: bytes) -> tuple[str, bytes]:
    """The text of `raw`, and the bytes at its end that only begin a character."""
    try:
        return raw.decode(), b""  # nearly always whole, and much faster
    except UnicodeDecodeError:
        pass
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    text = decoder.decode(raw)
    return text, decoder.getstate()[0]


def _bytes_shown(raw: bytes) -> str:
    return f"<{raw.hex(' ').upper()}>" if raw else ""


def text_with_controls(tokenizer: Tokenizer | None, tokens: Iterable[int]) -> str:
    """The text of `tokens` with the names of control tokens in it, as a model reads a prompt."""
    if tokenizer is None:
        return ""
    stream = TextStream(tokenizer)
    pieces = ((token, stream.push(token)) for token in tokens)
    return "".join(piece.shown if tokenizer.is_control(token) else piece.text for token, piece in pieces)


def find_stop(text: str, stop: Iterable[str]) -> int | None:
    """Where the earliest of the stop strings begins in `text`; None if none is there.

    Examples
    --------
    >>> find_stop("one\\n\\ntwo", ["two", "\\n\\n"])
    3
    """
    found = [place for place in (text.find(word) for word in stop) if place >= 0]
    return min(found) if found else None
