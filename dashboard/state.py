"""Session state: whose tab this is, which run it shows, what is kept between drawings. No other module touches it.

The owner's id and the run's id stand in the address, so that a refreshed page, which is a new
session, finds its run again. The session's own value wins, since a page switch drops the address's.
A link that somebody opened is read from the address once, at the start of the session.

Settings of the sidebar that do not stand in the address are kept beside the sessions (`dashboard.kept_settings`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import uuid4

import streamlit as st

from dashboard.comparisons import LiveComparison, comparisons
from dashboard.kept_settings import keep_settings, kept_settings
from dashboard.lab_laws import Laws, laws_behind
from dashboard.runner import LiveRun, registry
from dashboard.settings_link import not_taken
from engine.failures import Failures, failures
from engine.store import RunStore

__all__ = [
    "Link",
    "choose_target",
    "close_link",
    "current_comparison",
    "current_run",
    "export_troubles",
    "fetching",
    "fill",
    "forget_deleted",
    "imported",
    "keep_widgets",
    "last_deleted",
    "laws",
    "link",
    "next_upload",
    "notice",
    "owner",
    "remember",
    "remember_deleted",
    "run_failures",
    "set_laws",
    "show",
    "show_comparison",
    "step_of",
    "take_fetching",
    "take_imported",
    "take_link",
    "take_notice",
    "take_spec",
    "upload_key",
    "value",
]


@dataclass(frozen=True, slots=True)
class Link:
    """What a link names, as it stands in the address: unchecked.

    Attributes
    ----------
    run : str
    step : str
        Empty if it names none.
    """

    run: str
    step: str


def remember() -> None:
    """Take owner and run from the address at the start of a session, and keep them in it."""
    state, address = st.session_state, st.query_params
    if "owner" not in state:
        state.owner = address.get("owner") or uuid4().hex
        state.update({key: value for key, value in kept_settings(state.owner).items() if key not in address})
        run = registry.get(address.get("run"))
        state.run = run.id if run and run.owner == state.owner else None
        state.link = Link(address["run"], address.get("step", "")) if address.get("run") else None
        state.link_is_new = state.link is not None
        state.spec_link = address.get("spec", "")
        comparison = comparisons.get(address.get("comparison"))
        state.comparison = comparison.id if comparison and comparison.owner == state.owner else None
    for name in ("owner", "run", "comparison"):
        if state[name] and address.get(name) != state[name]:
            address[name] = state[name]
    if "spec" in address:
        del address["spec"]  # it is in the sidebar from here on, and may be changed there
    if not state.setdefault("checked", False):
        state.checked = True
        _drop(not_taken(address))


def _drop(wrong: Mapping[str, str]) -> None:
    """Take out of the address what no widget takes, and say so; begin anew, for widgets read what was there."""
    if wrong:
        notice(f"Not all of the address was taken: {'; '.join(wrong.values())}.")
        for name in wrong:
            del st.query_params[name]
        st.rerun()


def owner() -> str:
    """The id of this browser tab."""
    return str(st.session_state.owner)


def current_run() -> LiveRun | None:
    """The run that this tab shows."""
    return registry.get(st.session_state.run)


def show(run: LiveRun) -> None:
    """Make `run` the one that this tab shows."""
    st.session_state.run = run.id


def link() -> Link | None:
    """The run and the step of the link that was opened, unless it is this tab's own run."""
    opened: Link | None = st.session_state.get("link")
    return opened if opened and opened.run != st.session_state.get("run") else None


def take_link() -> Link | None:
    """The same, once: whoever goes back to the page that it leads away from stays there."""
    return link() if st.session_state.pop("link_is_new", False) else None


def keep_widgets(page: str, prefixes: tuple[str, ...]) -> None:
    """Hold on to the values of shared widgets, whose keys begin so, on another page and on a page that is refreshed.

    Streamlit gives every page widgets of its own, which begin anew; what the session holds is kept.
    """
    session = st.session_state
    values = {str(key): session[key] for key in session if str(key).startswith(prefixes)}
    if session.get("page", page) != page:
        session.update(values)
    session.page = page
    keep_settings(owner(), values)


def close_link() -> None:
    """Forget the link."""
    st.session_state.link = None
    for name in ("run", "step"):
        st.query_params.pop(name, None)


def step_of(run: LiveRun | None) -> int | None:
    """The step at which the address opens this tab's own run."""
    opened: Link | None = st.session_state.get("link")
    named = opened.step if opened and run and opened.run == run.id else ""
    return int(named) if named.isdecimal() and len(named) < 10 else None


def take_spec() -> str:
    """The settings that the link carried, once, unchecked."""
    return str(st.session_state.pop("spec_link", ""))


def fill(widgets: Mapping[str, Any]) -> None:
    """Set widgets by their keys, before they are drawn."""
    st.session_state.update(widgets)
    keep_settings(owner(), widgets)


def value(key: str) -> Any:
    """What the widget of that key says, in a function that is called because it has changed."""
    return st.session_state[key]


def upload_key() -> str:
    """The key of the upload; another one makes it empty again."""
    return f"upload_{st.session_state.setdefault('upload', 0)}"


def next_upload() -> None:
    """Empty the upload."""
    st.session_state.upload += 1


def current_comparison() -> LiveComparison | None:
    """The comparison that this tab shows."""
    return comparisons.get(st.session_state.comparison)


def show_comparison(comparison: LiveComparison) -> None:
    """Make `comparison` the one that this tab shows."""
    st.session_state.comparison = comparison.id


def notice(text: str) -> None:
    """Keep what to say of trouble for the next time a page is drawn."""
    st.session_state.notice = text


def take_notice() -> str:
    """The trouble that was kept, once."""
    return str(st.session_state.pop("notice", ""))


def export_troubles() -> list[str]:
    """Why nothing was downloaded: filled by the threads in which Streamlit builds files, so they are given the list."""
    troubles: list[str] = st.session_state.setdefault("export_troubles", [])
    return troubles


def imported(text: str) -> None:
    """Keep what came of an import for the next time the page is drawn."""
    st.session_state.imported = text


def take_imported() -> str:
    """What came of an import, once."""
    return str(st.session_state.pop("imported", ""))


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


def laws(key: str, target: Sequence[float], draft: Sequence[float]) -> Laws:
    """The lab's laws, after what the user has moved in the component of that key; at first the given ones."""
    session = st.session_state
    kept: Laws = session.setdefault("laws", Laws(target, draft))
    kept.take((session.get(key) or {}).get("laws") or {})
    return kept


def set_laws(target: Sequence[float], draft: Sequence[float]) -> None:
    """Set the lab's laws."""
    st.session_state.laws = laws_behind(st.session_state.get("laws"), target, draft)
