"""How far a piece of long work is, its button Stop, and what came of it."""

from __future__ import annotations

from typing import Any, TypeVar

import streamlit as st

from dashboard.boxes import error_box
from dashboard.work import Work

__all__ = ["result_of", "show_progress"]

T = TypeVar("T")


@st.fragment(run_every=0.5)
def show_progress(work: Work[Any], key: str, unit: str, *, keeps: bool = True) -> None:
    """Draw it anew twice a second; the whole page, when it has ended.

    Parameters
    ----------
    work : Work
    key : str
        Of the button.
    unit : str
        What is counted, such as "runs".
    keeps : bool, default True
        Whether work that is stopped has a result.
    """
    work.touch()
    if work.finished:
        st.rerun()
    words = f"{work.doing}: {work.done:,} of {work.total:,} {unit}" if work.total else work.doing
    st.progress(work.share, words)
    told = "What was found until then is kept." if keeps else None
    st.button("Stop", icon=":material/stop:", on_click=work.stop, key=key, help=told)


def result_of(work: Work[T], key: str, unit: str) -> T | None:
    """The result of work that has ended well; else None, and what there is to say is drawn; see `show_progress`."""
    if not work.finished:
        show_progress(work, key, unit)
    elif work.error:
        error_box(work.error)
    else:
        return work.result
    return None
