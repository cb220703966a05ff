"""Session state: whose tab this is and which run it shows. The only module that holds any.

The owner's id and the run's id stand in the address, so that a refreshed page, which is a new
session, finds its run again. The session's own value wins, since a page switch drops the address's.
"""

from __future__ import annotations

from uuid import uuid4

import streamlit as st

from dashboard.comparisons import LiveComparison, comparisons
from dashboard.runner import LiveRun, registry

__all__ = [
    "choose_target",
    "current_comparison",
    "current_run",
    "fetching",
    "notice",
    "owner",
    "remember",
    "show",
    "show_comparison",
    "take_fetching",
    "take_notice",
]


def remember() -> None:
    """Take owner and run from the address at the start of a session, and keep them in it."""
    state, address = st.session_state, st.query_params
    if "owner" not in state:
        state.owner = address.get("owner") or uuid4().hex
        run = registry.get(address.get("run"))
        state.run = run.id if run and run.owner == state.owner else None
        comparison = comparisons.get(address.get("comparison"))
        state.comparison = comparison.id if comparison and comparison.owner == state.owner else None
    for name in ("owner", "run", "comparison"):
        if state[name] and address.get(name) != state[name]:
            address[name] = state[name]


def owner() -> str:
    """The id of this browser tab."""
    return str(st.session_state.owner)


def current_run() -> LiveRun | None:
    """The run that this tab shows."""
    return registry.get(st.session_state.run)


def show(run: LiveRun) -> None:
    """Make `run` the one that this tab shows."""
    st.session_state.run = run.id


def current_comparison() -> LiveComparison | None:
    """The comparison that this tab shows."""
    return comparisons.get(st.session_state.comparison)


def show_comparison(comparison: LiveComparison) -> None:
    """Make `comparison` the one that this tab shows."""
    st.session_state.comparison = comparison.id


def notice(text: str) -> None:
    """Keep a message for the next time the page is drawn."""
    st.session_state.notice = text


def take_notice() -> str:
    """The message that was kept, once."""
    return str(st.session_state.pop("notice", ""))


def fetching() -> None:
    """Remember that this tab has asked for a model."""
    st.session_state.fetching = True


def take_fetching() -> bool:
    """Whether this tab has asked for a model, once."""
    return bool(st.session_state.pop("fetching", False))


def choose_target(name: str) -> None:
    """Choose the target in the sidebar, before its widget is drawn."""
    st.session_state.target = name
