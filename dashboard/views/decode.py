"""The main page: run, watch, step, stop."""

from __future__ import annotations

import streamlit as st

from dashboard import state
from dashboard.boxes import error_box, warning_box
from dashboard.components.live import live_view
from dashboard.controls import Settings, settings
from dashboard.runner import LiveRun, TooManyRuns, registry
from dashboard.views.busy import LOOK_SECONDS, measurement_box
from dashboard.views.exports import failed_exports, forget_failed_exports, run_exports
from dashboard.views.failures import where_drafts_fail
from dashboard.views.get_model import offer_model
from dashboard.views.links import settings_link

__all__ = ["page"]


def page() -> None:
    """Draw the page."""
    with st.sidebar:
        offer_model()
        chosen = settings()
        if not chosen.trouble:
            settings_link(chosen.spec, key="sidebar")
    run = state.current_run()
    if _buttons(run, chosen):
        st.rerun()  # the buttons were drawn for the run as it was
    with st.container():  # always there, so that a box that comes or goes does not remount the view
        if message := state.take_notice() or chosen.trouble:
            error_box(message)
        forget_failed_exports()
        _what_comes_by_itself(run)
    finished = run is not None and run.finished
    result = live_view(
        run.id if run else None,
        finished=finished,
        step=state.step_of(run),
        shareable=run is not None and run.saved,
        key="live",
    )
    if result.done and not finished:
        st.rerun()
    if run and finished:
        if run.saved:
            run_exports(run.id, key="run")
            where_drafts_fail(run.id, key="run")
        elif run.save_error:
            warning_box(f"This run is not in the history. {run.save_error}", ":material/save:")


@st.fragment(run_every=LOOK_SECONDS)
def _what_comes_by_itself(run: LiveRun | None) -> None:
    """One fragment, for two that end together may take a built file away before the browser has fetched it."""
    measurement_box()
    for note in run.notes if run else ():
        warning_box(f"{note}.", ":material/swap_horiz:")
    failed_exports()


def _buttons(run: LiveRun | None, chosen: Settings) -> bool:
    """Draw the buttons and do what the pressed one says; True if one was pressed.

    Not by callbacks: a callback would start a run with the settings of the last drawing, and miss a
    value that was typed and not yet confirmed when the button was pressed.
    """
    active = run is not None and not run.finished
    startable = not active and not chosen.trouble
    paused = run is not None and run.paused
    with st.container(horizontal=True, key="buttons"):
        go = st.button("Run", type="primary", icon=":material/play_arrow:", disabled=not startable, key="go")
        hold = st.button(
            "Resume" if paused else "Pause",
            icon=":material/resume:" if paused else ":material/pause:",
            disabled=not active,
            key="pause",
        )
        step = st.button(
            "Step",
            icon=":material/skip_next:",
            disabled=not (paused or startable),
            key="step",
            help="One step: the guess, then its fate. Starts a run if there is none.",
        )
        stop = st.button("Stop", icon=":material/stop:", disabled=not active, key="stop")
    if go:
        _start(chosen, paused=False)
    elif step:
        stepped = run if run and active else _start(chosen, paused=True)
        if stepped:
            stepped.step()
    elif run and hold:
        if paused:
            run.resume()
        else:
            run.pause()
    elif run and stop:
        run.stop()
    return go or hold or step or stop


def _start(chosen: Settings, *, paused: bool) -> LiveRun | None:
    try:
        run = registry.start(chosen.spec, state.owner(), steps_per_second=chosen.steps_per_second, paused=paused)
    except TooManyRuns as full:
        state.notice(str(full))
        return None
    state.show(run)
    return run
