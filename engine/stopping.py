"""Stopping what is under way: how somebody is asked, and what ends work that has no result yet."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Cancelled", "Stopped", "never"]

Cancelled = Callable[[], bool]
"""Asked again and again by work that may be stopped; True stops it."""


class Stopped(Exception):
    """Whoever asked for the work wants no more of it; nothing is wrong, so it is no `DraftscopeError`."""


def never() -> bool:
    """The answer of someone who does not cancel."""
    return False
