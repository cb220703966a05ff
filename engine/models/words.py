"""Words as tokens: a tokenizer whose vocabulary is a text's own words, for the embedded models.

A word carries the space in front of it, as in byte-pair vocabularies; a word that opens a
paragraph is a token without it; punctuation marks and paragraph breaks are tokens of their own.
So the bytes of the ids, one after another, are text that reads well.
"""

from __future__ import annotations

import re

from engine.errors import SettingError

__all__ = ["WordTokenizer"]

_BREAK = "\n\n"
_END, _UNKNOWN, _PARAGRAPH = 0, 1, 2
_PIECE = re.compile(r"(?P<paragraph>\s*\n\s*\n\s*)|(?P<space>\s*)(?P<word>\d+(?:\.\d+)*|\w+(?:['-]\w+)*|[^\w\s])")


class WordTokenizer:
    """Text to word ids and back.

    Id 0 ends the text, id 1 stands for every word that the vocabulary lacks, id 2 is a paragraph
    break (two newlines), and the words and marks of `text` follow in order of their first use.

    Parameters
    ----------
    text : str
        Its words are the vocabulary. Paragraphs are separated by blank lines.

    Notes
    -----
    In a prompt, blank lines are a paragraph break and any other run of whitespace is one space.
    A word is looked up as it is written, then without (or with) its leading space, then in lower
    case and with a capital. A word that is still not found becomes id 1, which reads `[?]`: the
    prompt's own spelling is lost, and its tokens show where.

    Examples
    --------
    >>> words = WordTokenizer("The draft guesses, the target judges.")
    >>> words.encode("The target guesses.")
    [3, 8, 5, 10]
    >>> b"".join(words.token_bytes(token) for token in words.encode("The target guesses."))
    b'The target guesses.'
    >>> words.token_bytes(words.encode(" banana")[0])
    b' [?]'
    """

    has_chat_template = False
    end_tokens = frozenset({_END})

    def __init__(self, text: str) -> None:
        self._texts = ["<end of text>", " [?]", _BREAK]
        self._ids = {piece: token for token, piece in enumerate(self._texts)}
        for piece in _pieces(text):
            if piece not in self._ids:
                self._ids[piece] = len(self._texts)
                self._texts.append(piece)

    @property
    def vocab_size(self) -> int:
        """Number of ids, the three special ones included."""
        return len(self._texts)

    def encode(self, text: str) -> list[int]:
        """The ids of `text`; what is not in the vocabulary is the unknown id, 1."""
        return [self._find(piece) for piece in _pieces(text)]

    def chat(self, text: str) -> list[int]:
        """Not to be had.

        Raises
        ------
        SettingError
            Always: a model of words has no notion of a conversation.
        """
        raise SettingError("this model continues text and has no chat template; switch the chat template off")

    def token_bytes(self, token: int) -> bytes:
        """The bytes of a word with the space in front of it, of a mark, or of a break."""
        return self._texts[token].encode()

    def is_control(self, token: int) -> bool:
        """Whether the id is the end of the text."""
        return token == _END

    def context_classes(self) -> list[int]:
        """For every id, the lowest id of the same word, whatever its capital and leading space."""
        first: dict[str, int] = {}
        return [first.setdefault(piece.strip(" ").lower(), token) for token, piece in enumerate(self._texts)]

    def _find(self, piece: str) -> int:
        bare = piece.lstrip(" ")
        spaces = (" ", "") if piece.startswith(" ") else ("", " ")
        for spelling in (bare, bare.lower(), bare.capitalize()):
            for space in spaces:
                if space + spelling in self._ids:
                    return self._ids[space + spelling]
        return _UNKNOWN


def _pieces(text: str) -> list[str]:
    """The text cut into words with their space, marks, and paragraph breaks."""
    matches = _PIECE.finditer(text)
    return [_BREAK if match["paragraph"] else (" " if match["space"] else "") + match["word"] for match in matches]
