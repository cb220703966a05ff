"""Numbers as tokens: the tokenizer of models that have no text of their own."""

from __future__ import annotations

import hashlib

from engine.errors import SettingError

__all__ = ["NumberTokenizer"]


class NumberTokenizer:
    """Id i reads as a space and the number i.

    A prompt is cut at whitespace. A piece that is a number below `vocab_size` is that id. Any other
    piece, a word for instance, is hashed to an id, the same one on every machine, so that any
    text is a valid prompt; what it became can be read off the ids.

    Parameters
    ----------
    vocab_size : int
        Number of ids, at least 1.

    Raises
    ------
    SettingError
        If `vocab_size` is less than 1.

    Examples
    --------
    >>> numbers = NumberTokenizer(50)
    >>> numbers.encode("7 49 12")
    [7, 49, 12]
    >>> b"".join(numbers.token_bytes(token) for token in [7, 49, 12])
    b' 7 49 12'
    >>> numbers.encode("hello") == numbers.encode("hello")
    True
    """

    has_chat_template = False
    end_tokens: frozenset[int] = frozenset()

    def __init__(self, vocab_size: int) -> None:
        if vocab_size < 1:
            raise SettingError(f"vocab_size is {vocab_size}; it must be at least 1")
        self.vocab_size = vocab_size

    def encode(self, text: str) -> list[int]:
        """One id for every piece between whitespace."""
        return [self._id(piece) for piece in text.split()]

    def chat(self, text: str) -> list[int]:
        """Not to be had.

        Raises
        ------
        SettingError
            Always: a model of numbers has no notion of a conversation.
        """
        raise SettingError("this model continues numbers and has no chat template; switch the chat template off")

    def token_bytes(self, token: int) -> bytes:
        """A space and the number."""
        return f" {token}".encode()

    def is_control(self, token: int) -> bool:
        """Never: every id is part of the text."""
        return False

    def _id(self, piece: str) -> int:
        if piece.isascii() and piece.isdigit() and len(piece) <= 18 and int(piece) < self.vocab_size:
            return int(piece)
        digest = hashlib.blake2b(piece.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "little") % self.vocab_size
