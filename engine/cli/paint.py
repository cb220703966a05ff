"""Tokens in a terminal: every outcome has a style of its own, and a mark where styles are off."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from engine.values import Decision

__all__ = ["colour_wanted", "legend", "painted"]

STYLES = {
    "accepted": "4;36",
    "rejected": "9;31",
    "unreached": "2",
    "recovered": "1;33",
    "bonus": "1;35",
    "plain": "0",
    "discarded": "2;9",
}
"""ANSI select-graphic-rendition codes: shape (underline, strike, bold) as well as colour."""


def colour_wanted() -> bool:
    """Whether standard output is a terminal that wants colour (https://no-color.org is heeded)."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def legend() -> str:
    """Every outcome in its own style."""
    return "  ".join(_styled(outcome, outcome) for outcome in STYLES)


def painted(decisions: Iterable[Decision], *, colour: bool) -> str:
    """The tokens of a step, styled by outcome; without colour only what was emitted."""
    return "".join(_spans(decision, colour) for decision in decisions)


def _spans(decision: Decision, colour: bool) -> str:
    if not colour:
        return "" if decision.discarded else _safe(decision.target_text)
    spans = ""
    if decision.outcome in ("rejected", "unreached"):
        spans += _styled(decision.draft_text, decision.outcome)
    if decision.target_token is not None:
        outcome = "recovered" if decision.outcome == "rejected" else decision.outcome
        spans += _styled(decision.target_text, "discarded" if decision.discarded else outcome)
    return spans


def _styled(text: str, outcome: str) -> str:
    body = text.strip("\n")
    if outcome in ("rejected", "unreached", "discarded"):
        return f"\x1b[{STYLES[outcome]}m{_visible(text)}\x1b[0m"
    before, after = text[: len(text) - len(text.lstrip("\n"))], text[len(text.rstrip("\n")) :] if body else ""
    return f"{before}\x1b[{STYLES[outcome]}m{_safe(body)}\x1b[0m{after}"


def _visible(text: str) -> str:
    return _safe(text.replace("\n", "⏎"))


def _safe(text: str) -> str:
    """The text without control characters, which could steer the terminal."""
    return "".join(character if character >= " " or character in "\n\t" else "\ufffd" for character in text)
