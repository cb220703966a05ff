"""How far a piece of the lab's work is, and its button Stop."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dashboard.work import Work

__all__ = ["show_progress"]


@st.fragment(run_every=0.5)
def show_progress(work: Work[Any], key: str, unit: str) -> None:
    """Draw it anew twice a second; the whole page, when it has ended.

    Parameters
    ----------
    work : Work
    key : str
        Of the button.
    unit : str
        What is counted, such as "runs".
    """
    work.touch()
    if work.finished:
        st.rerun()
    words = f"{work.doing}: {work.done:,} of {work.total:,} {unit}" if work.total else work.doing
    st.progress(work.share, words)
    st.button("Stop", icon=":material/stop:", on_click=work.stop, key=key, help="What was found until then is kept.")
