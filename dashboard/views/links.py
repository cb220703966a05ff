"""Links: to these settings, and to a run at a step, which is what a link that was opened shows."""

from __future__ import annotations

from urllib.parse import urljoin

import streamlit as st

from dashboard import state
from dashboard.boxes import error_box, warning_box
from dashboard.components.live import live_view
from dashboard.controls import PROBE
from dashboard.settings_link import address_of, read_spec
from dashboard.views.exports import run_exports
from dashboard.views.failures import where_drafts_fail
from engine.errors import DraftscopeError
from engine.spec import RunSpec
from engine.store import RunStore

__all__ = ["linked_run", "settings_link"]

LONGEST_STEP = 9
"""Digits of a step."""


def settings_link(spec: RunSpec, *, key: str) -> None:
    """A button that shows the link to these settings, ready to be copied, or why there is none."""
    with st.popover("Link to these settings", icon=":material/link:", key=f"{key}_link"):
        try:
            read_spec(spec.to_json())
        except DraftscopeError as failure:
            st.text(f"There is no link to these settings, since none could be opened: {failure}.")
            return
        st.code(urljoin(st.context.url or "/", f"./{address_of(spec)}"), language=None, wrap_lines=True)
        st.caption("Opens the Decode page with these settings in the sidebar. Nothing runs until Run is pressed.")
        if spec.probe not in (0, PROBE):
            st.caption(f"This run kept {spec.probe} alternatives of every step; with the sidebar it will be {PROBE}.")


def linked_run() -> None:
    """The run that the address names, at the step that it names; nothing if it names none."""
    link = state.link()
    if link is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="linked"):
        st.markdown("**Opened by a link**")
        if st.button("Close", icon=":material/close:", key="close_link"):
            state.close_link()
            st.rerun()
    step = int(link.step) if link.step.isdecimal() and link.step.isascii() and len(link.step) <= LONGEST_STEP else None
    if link.step and step is None:
        error_box(
            f"The link asks for the step {link.step[:40]}, which is no whole number. The run is shown at its end.",
            ":material/link_off:",
        )
    try:
        run = RunStore().get(link.run[:65], exact=True)
    except DraftscopeError:
        error_box(
            f"The link names the run {link.run[:65]}, which is not in this history. "
            "If it was made elsewhere, ask for the run as JSONL and import it here.",
            ":material/link_off:",
        )
        return
    n_steps = run.record["steps"]
    if step is not None and step > n_steps:
        warning_box(f"The link asks for step {step}; the run has {n_steps}. It is shown at its end.", ":material/link:")
    run_exports(run.id, key="linked_run")
    live_view(run.id, mode="review", finished=True, step=step, key="linked_view")
    if run.state != "running":
        where_drafts_fail(run.id, key="linked")
    st.divider()
