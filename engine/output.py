"""What a run has emitted so far, and whether that ends it.

Tokens are committed one by one, so that an end token, a stop string or the limit in the middle of
an accepted block takes effect there; whatever the block holds behind it is never committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.models.base import Tokenizer
from engine.text import Piece, TextStream, find_stop
from engine.values import FinishReason

__all__ = ["Output"]


class Output:
    """The emitted ids and their text.

    Parameters
    ----------
    tokenizer : Tokenizer or None
    end_tokens : frozenset of int
    stop : sequence of str
    max_tokens : int
        Most tokens to emit.
    context_room : int
        Tokens that fit behind the prompt in the target's context.

    Attributes
    ----------
    ids : list of int
    reason : FinishReason or None
        Set by the token that ends the run.
    """

    def __init__(
        self,
        tokenizer: Tokenizer | None,
        *,
        end_tokens: frozenset[int],
        stop: Sequence[str],
        max_tokens: int,
        context_room: int,
    ) -> None:
        self.ids: list[int] = []
        self.reason: FinishReason | None = None
        self._stream = TextStream(tokenizer)
        self._end_tokens = end_tokens
        self._stop = stop
        self._tail = ""
        self._stop_at: int | None = None
        self._max_tokens = max_tokens
        self._context_room = context_room

    @property
    def room(self) -> int:
        """How many more tokens may be emitted."""
        return min(self._max_tokens, self._context_room) - len(self.ids)

    @property
    def text(self) -> str:
        """The text so far, cut before a stop string that was found."""
        text = self._stream.finish()
        return text if self._stop_at is None else text[: self._stop_at]

    def commit(self, token: int) -> Piece:
        """Append a token, and set `reason` if it ends the run.

        The earliest cause wins; on the same token an end token goes before a stop string, a stop
        string before a limit.
        """
        self.ids.append(token)
        piece = self._stream.push(token)
        if token in self._end_tokens:
            self.reason = "end_token"
        elif self._finds_stop(piece.text):
            self.reason = "stop_string"
        elif self.room <= 0:
            self.reason = "length" if len(self.ids) >= self._max_tokens else "context"
        return piece

    def peek(self, tokens: Iterable[int]) -> tuple[str, ...]:
        """How `tokens` would be shown if they followed."""
        return self._stream.peek(tokens)

    def _finds_stop(self, text: str) -> bool:
        if not self._stop:
            return False
        self._tail += text
        place = find_stop(self._tail, self._stop)
        if place is not None:
            self._stop_at = len(self._stream.text) - len(self._tail) + place
            return True
        keep = max(map(len, self._stop)) - 1  # a stop string may have begun, but not ended
        self._tail = self._tail[max(0, len(self._tail) - keep) :]
        return False
