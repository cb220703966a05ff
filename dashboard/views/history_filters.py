"""The widgets above the list of runs: which, and in which order."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from engine.history import SORTS, RunFilter, sort_runs
from engine.store import StoredRun

__all__ = ["chosen_runs"]


def chosen_runs(runs: Sequence[StoredRun]) -> list[StoredRun]:
    """Draw the widgets and return what they ask for."""
    with st.container(horizontal=True, key="filters"):
        words = st.text_input(
            "Filter", placeholder="words", key="filter_text", help="Words of the prompt, the note, the tags or the id."
        )
        targets = _choice("Target", {run.spec.target for run in runs})
        drafters = _choice("Drafter", {run.spec.drafter for run in runs})
        rules = _choice("Rule", {run.spec.rule for run in runs})
        tags = _choice("Tags", {tag for run in runs for tag in run.tags})
        days = st.date_input("Date (UTC)", [], format="YYYY-MM-DD", key="filter_date", help="One day, or two.")
        by = st.selectbox("Sort by", tuple(SORTS), key="sort_by")
        rising = st.segmented_control(
            "Order", ("falling", "rising"), default="falling", required=True, key="sort_order"
        )
    since, until = (days[0], days[-1]) if isinstance(days, (tuple, list)) and days else (None, None)
    chosen = RunFilter(targets, drafters, rules, tags, since, until, words)
    return sort_runs(filter(chosen.keeps, runs), by, rising=rising == "rising")


def _choice(label: str, options: set[str]) -> tuple[str, ...]:
    return tuple(st.multiselect(label, sorted(options), key=f"filter_{label.lower()}", placeholder="all"))
