"""Session state: whose tab this is and which run it shows; and what is kept between drawings. The only such module.

The owner's id and the run's id stand in the address, so that a refreshed page, which is a new
session, finds its run again. The session's own value wins, since a page switch drops the address's.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from uuid import uuid4

import streamlit as st

from dashboard.runner import LiveRun, registry
from engine.failures import Failures, failures
from engine.store import RunStore

__all__ = [
    "choose_target",
    "current_run",
    "fetching",
    "forget_deleted",
    "last_deleted",
    "notice",
    "owner",
    "remember",
    "remember_deleted",
    "run_failures",
    "show",
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
    for name in ("owner", "run"):
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


def remember_deleted(run_ids: Sequence[str]) -> None:
    """Keep in mind what this tab has just deleted, for Undo."""
    st.session_state.deleted = tuple(run_ids)


def last_deleted() -> tuple[str, ...]:
    """What this tab has deleted last, unless that was taken back."""
    return tuple(st.session_state.get("deleted", ()))


def forget_deleted() -> None:
    """There is nothing to undo any more."""
    st.session_state.deleted = ()


@lru_cache(maxsize=16)
def run_failures(run_id: str) -> Failures:
    """Where the drafts of a run that has ended fail, looked at once.

    Raises
    ------
    StoreError
        If it cannot be read.
    """
    return failures(RunStore().events(run_id, exact=True))
