"""Badges that say under which circumstances something was measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from dashboard.boxes import warning_box
from engine.bench.machine import busy_words

__all__ = ["circumstances"]


def circumstances(result: Mapping[str, Any], key: str) -> None:
    """Draw them, as far as the result of a measurement has any: partial, busy, simulated, on another backend."""
    with st.container(horizontal=True, key=key):
        if result["partial"]:
            st.badge(
                f"PARTIAL: {result['runs_done']} of {result['runs_planned']} runs",
                icon=":material/incomplete_circle:",
                color="orange",
            )
        if result["busy"]:
            st.badge(busy_words(result), icon=":material/speed:", color="orange")
        if result["simulated"]:
            st.badge("SIMULATED: every time is made up of the given prices", icon=":material/schedule:", color="orange")
    if result["backend_note"]:
        warning_box(f"{result['backend_note']}.", ":material/swap_horiz:")
