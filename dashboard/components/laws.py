"""Two small laws as bars to drag, beside what a rule makes of them: one small Streamlit component.

It keeps the bars under the hand that moves them, sends the laws after at most every 60 ms, and shows what the
engine answers; the bars stay where they are while it does. It shares words.js, tokens.js, figures.js and
mounting.js with the live view.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from dashboard.components.live import asset

__all__ = ["LAWS_KEY", "law_bars"]

LAWS_KEY = "lab_bars"
"""Streamlit's key: the laws as they were dragged last are kept under it."""

SCRIPTS = ("words.js", "tokens.js", "figures.js", "mounting.js", "laws.js")

_component = st.components.v2.component(
    "draftscope_laws",
    html=asset("laws.html"),
    css=asset("laws.css"),
    js="\n".join(asset(name) for name in SCRIPTS),
)


def law_bars(
    names: Sequence[str],
    target: Sequence[float],
    draft: Sequence[float],
    *,
    revision: int,
    sent: int,
    result: Mapping[str, Any] | None,
    trouble: str = "",
) -> None:
    """Show the bars and what came of them.

    Parameters
    ----------
    names : sequence of str
        Of the tokens.
    target, draft : sequence of float
        The laws, as many numbers each.
    revision : int
        Another one puts the bars to these laws; with the same one they stay as the user left them.
    sent : int
        Which of the laws that were sent `result` belongs to.
    result : mapping or None
        See `dashboard.frames.lossless_data`; None where there is none.
    trouble : str, default ""
        Why there is none, in words for a user.

    Notes
    -----
    What is sent back is `{"revision", "sent", "target", "draft"}`, under `laws` of the component's state. A test in a
    browser can rely on `data-law` of `.law-panel`, `data-token` of `.law-column`, `data-figure` of `.laws-figure`
    and `data-same` of `.laws`.
    """
    _component(
        key=LAWS_KEY,
        data={
            "names": list(names),
            "target": list(target),
            "draft": list(draft),
            "revision": revision,
            "sent": sent,
            "result": result,
            "trouble": trouble,
        },
        on_laws_change=_rerun,
    )


def _rerun() -> None:
    """Declares the state `laws`; the rerun itself is all that is wanted."""
