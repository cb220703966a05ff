"""Settings of the sidebar by browser tab, beside the sessions: a page that is refreshed is a new session.

Not all of them stand in the address: not what a link filled in, not a prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any

__all__ = ["keep_settings", "kept_settings"]

MOST_KEPT = 256
"""Tabs whose settings are kept."""

_kept: dict[str, dict[str, Any]] = {}
_lock = Lock()


def keep_settings(owner: str, values: Mapping[str, Any]) -> None:
    """Keep the values of widgets, by their keys, beside what is kept of the tab already."""
    with _lock:
        _kept[owner] = {**_kept.pop(owner, {}), **values}  # the latest is the last
        while len(_kept) > MOST_KEPT:
            del _kept[next(iter(_kept))]


def kept_settings(owner: str) -> dict[str, Any]:
    """What is kept of a tab."""
    with _lock:
        return dict(_kept.get(owner, {}))
