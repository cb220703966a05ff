"""Tokens in a terminal: every outcome has a style of its own."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable
from typing import TextIO

from engine.values import Decision

__all__ = ["colour_wanted", "legend", "painted", "safe"]

STYLES = {
    "accepted": "4;36",
    "rejected": "9;31",
    "declined": "2;9;31",
    "unreached": "2",
    "recovered": "1;33",
    "bonus": "1;35",
    "plain": "0",
    "discarded": "2;9",
}
"""ANSI select-graphic-rendition codes: shape (underline, strike, bold) as well as colour."""

NOT_KEPT = ("rejected", "declined", "unreached")
"""What happened to drafted tokens that are no part of the text."""


def colour_wanted(stream: TextIO) -> bool:
    """Whether `stream` is a terminal that wants colour (https://no-color.org is heeded)."""
    return (
        stream is not None and stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


def legend() -> str:
    """Every outcome in its own style."""
    return "  ".join(_styled(outcome, outcome) for outcome in STYLES)


def painted(decisions: Iterable[Decision]) -> str:
    """The tokens of a step as they are shown, styled by outcome; what was not emitted among them.

    Of a tree only what was judged: a terminal has no room for the branches that were not taken.
    """
    spans, recovered = "", ""
    for decision in decisions:
        if decision.outcome == "unreached" and decision.parent is not None:
            continue
        style = "discarded" if decision.discarded else decision.outcome
        if decision.outcome in NOT_KEPT:
            spans += _styled(decision.draft_text, decision.outcome)
        if decision.outcome == "rejected":  # its replacement is read behind all that was refused
            recovered = _styled(decision.target_text, "discarded" if decision.discarded else "recovered")
        elif decision.outcome not in NOT_KEPT:
            spans += _styled(decision.target_text, style)
    return spans + recovered


def _styled(text: str, outcome: str) -> str:
    body = text.strip("\n")
    if outcome in (*NOT_KEPT, "discarded"):
        return f"\x1b[{STYLES[outcome]}m{_visible(text)}\x1b[0m"
    before, after = text[: len(text) - len(text.lstrip("\n"))], text[len(text.rstrip("\n")) :] if body else ""
    return f"{before}\x1b[{STYLES[outcome]}m{safe(body)}\x1b[0m{after}"


def _visible(text: str) -> str:
    return safe(text.replace("\n", "⏎"))


def safe(text: str) -> str:
    """The text without control characters but line break and tab: they could steer the terminal.

    Examples
    --------
    >>> safe("a\\x1b[31m, \\x7f, \\x9b31m, é\\n")
    'a\ufffd[31m, \ufffd, \ufffd31m, é\\n'
    """
    return "".join(
        character if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cs") else "\ufffd"
        for character in text
    )
