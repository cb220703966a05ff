"""The text of a run, every token shaded by the acceptance probability at its place: one small Streamlit component.

It shares the spelling of tokens and numbers (tokens.js, words.js) with the live view.
"""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from dashboard.components.live import asset
from engine.failures import ShadedToken

__all__ = ["shaded_text"]


_component = st.components.v2.component(
    "draftscope_shaded",
    html=asset("shaded.html"),
    css=asset("shaded.css"),
    js="\n".join(asset(name) for name in ("words.js", "tokens.js", "shaded.js")),
)


def shaded_text(tokens: Iterable[ShadedToken], *, key: str) -> None:
    """Show the text.

    Parameters
    ----------
    tokens : iterable of ShadedToken
    key : str
        Streamlit's key; another text needs another one.
    """
    shown = [[token.text, token.outcome, token.accept_prob, token.refused] for token in tokens]
    _component(key=key, data={"key": key, "tokens": shown})
