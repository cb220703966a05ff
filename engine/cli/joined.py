"""The text of a run that has no end yet, from the pieces that its decisions show."""

from __future__ import annotations

import re
from collections.abc import Iterable

from engine.values import Decision

__all__ = ["joined_text"]

BYTES = re.compile(r"<[0-9A-F]{2}(?: [0-9A-F]{2})*>\Z")
"""What a token that only begins a character shows behind its text; see `engine.text`."""


def joined_text(decisions: Iterable[Decision]) -> str:
    """What was emitted, characters that are spread over several tokens put together.

    Control tokens stay, by their names: a decision does not tell them from text.

    Examples
    --------
    >>> half = Decision(0, "accepted", 5, 5, True, target_text="a <F0 9F>")
    >>> whole = Decision(1, "bonus", None, 6, target_text="😀", target_parts=2)
    >>> joined_text([half, whole]), joined_text([half])
    ('a 😀', 'a <F0 9F>')
    """
    pieces: list[str] = []
    for decision in decisions:
        if decision.target_token is None or decision.discarded:
            continue
        first = max(0, len(pieces) + 1 - decision.target_parts)
        pieces[first:] = [BYTES.sub("", piece) for piece in pieces[first:]]
        pieces.append(decision.target_text)
    return "".join(pieces)
