"""Boxes that tell of trouble, as plain text, for a link, a file or a model may have put words into it."""

from __future__ import annotations

import streamlit as st

from dashboard.plain_text import plain

__all__ = ["error_box", "warning_box"]


def error_box(text: str, icon: str = ":material/block:") -> None:
    """Say that something cannot be done."""
    st.error(plain(text), icon=icon)


def warning_box(text: str, icon: str) -> None:
    """Say what to mind."""
    st.warning(plain(text), icon=icon)
