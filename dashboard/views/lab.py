"""The page Lab: what the rules and length policies do, by enumeration, on a trace, in a race, by counting."""

from __future__ import annotations

import streamlit as st

from dashboard import state
from dashboard.boxes import error_box
from dashboard.controls import settings
from dashboard.views.get_model import offer_model
from dashboard.views.lab_check import check_tab
from dashboard.views.lab_lossless import lossless_tab
from dashboard.views.lab_race import race_tab
from dashboard.views.lab_trace import trace_tab

__all__ = ["page"]

TABS = {
    "Lossless?": lossless_tab,
    "Same trace, every rule": trace_tab,
    "Policies race": race_tab,
    "Statistical check": check_tab,
}


def page() -> None:
    """Draw the page."""
    with st.sidebar:
        offer_model()
        chosen = settings()
    st.subheader("What does a rule do to the text?")
    if message := state.take_notice():
        error_box(message)
    for tab, draw in zip(st.tabs(list(TABS), key="lab_tab", bind="query-params"), TABS.values(), strict=True):
        if tab.open:
            with tab:
                draw(chosen)
