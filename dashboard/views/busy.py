"""Warnings that a run and a measurement disturb each other; they come and go by themselves, whoever began what."""

from __future__ import annotations

import streamlit as st

from dashboard.boxes import warning_box
from dashboard.comparisons import comparisons
from dashboard.lab_work import lab_works
from dashboard.runner import registry

__all__ = ["LOOK_SECONDS", "measurement_box", "measurement_under_way", "run_under_way"]

LOOK_SECONDS = 2.0


@st.fragment(run_every=LOOK_SECONDS)
def run_under_way() -> None:
    """For a page that measures."""
    if lab_works.working:
        warning_box(
            "The lab is at work on this server (a trace or a check) and takes time from what is measured; "
            "stop it first.",
            ":material/speed:",
        )
    if registry.n_running:
        warning_box(
            "A run is under way on this server and takes time from what is measured; stop it first.",
            ":material/speed:",
        )


@st.fragment(run_every=LOOK_SECONDS)
def measurement_under_way() -> None:
    """For a page that starts runs."""
    measurement_box()


def measurement_box() -> None:
    """The same, for a page that has a fragment of its own for it."""
    if comparisons.measuring:
        warning_box(
            "A measurement is under way on this server (the page Compare, or a race in the Lab), and a run takes time "
            "from what is measured. Wait for its end, or stop it there, before you run anything here.",
            ":material/speed:",
        )
