"""The page Compare: choose configurations, watch them run in turns, read the verdict."""

from __future__ import annotations

import streamlit as st

from dashboard import state
from dashboard.boxes import error_box
from dashboard.compare_controls import CompareChoice, compare_controls
from dashboard.comparisons import LiveComparison, comparisons
from dashboard.components.lanes import lanes_view
from dashboard.controls import settings
from dashboard.views.busy import run_under_way
from dashboard.views.comparison import show_result
from dashboard.views.get_model import offer_model
from dashboard.views.what_if import what_if_section
from engine.errors import DraftscopeError

__all__ = ["page"]


def page() -> None:
    """Draw the page."""
    with st.sidebar:
        offer_model()
        chosen = settings()
    st.subheader("Does it pay here?")
    choice_box, action_box, lanes_box, result_box = (st.container() for _ in range(4))
    with choice_box:
        choice = compare_controls(chosen)
    comparison = state.current_comparison()
    with action_box:
        if _buttons(comparison, choice):
            st.rerun()  # the buttons were drawn for the comparison as it was
        if message := state.take_notice() or choice.trouble:
            error_box(message)
        run_under_way()
    finished = comparison is not None and comparison.work.finished
    with lanes_box:
        done = lanes_view(
            comparison.id if comparison else None,
            [lane.name for lane in comparison.lanes] if comparison else [],
            finished=finished,
        ).done
    if done and not finished:
        st.rerun()
    with result_box:
        if comparison and comparison.result:
            show_result(comparison.result)
        what_if_section(comparison if finished else None, chosen.spec.target)


def _buttons(comparison: LiveComparison | None, choice: CompareChoice) -> bool:
    """Draw the buttons and do what the pressed one says; True if one was pressed."""
    active = comparison is not None and not comparison.work.finished
    with st.container(horizontal=True, vertical_alignment="center", key="compare_buttons"):
        go = st.button(
            "Compare",
            type="primary",
            icon=":material/balance:",
            disabled=active or choice.settings is None,
            key="compare_go",
        )
        stop = st.button(
            "Stop",
            icon=":material/stop:",
            disabled=not active,
            key="compare_stop",
            help="What was measured until then is kept.",
        )
        if choice.settings:
            st.caption(f"{choice.n_runs} runs, one after another, in turns, behind a warm-up of each configuration.")
    if go and choice.settings:
        try:
            state.show_comparison(comparisons.start(choice.settings, state.owner()))
        except DraftscopeError as failure:
            state.notice(str(failure))
    elif comparison and stop:
        comparison.work.stop()
    return go or stop
