"""The lab's *Policies race*: one prompt, every length policy, how far each drafts and what it is worth."""

from __future__ import annotations

import json

import streamlit as st

from dashboard import state
from dashboard.boxes import error_box
from dashboard.compare_charts import speed_up_chart
from dashboard.comparisons import LiveRace, comparisons
from dashboard.controls import Settings
from dashboard.frames import race_frame
from dashboard.lab_charts import lengths_chart
from dashboard.plain_text import plain
from dashboard.views.busy import run_under_way
from dashboard.views.circumstances import circumstances
from dashboard.views.plot import plot
from dashboard.views.work_progress import result_of
from engine.bench.costs import not_predicted
from engine.errors import DraftscopeError
from engine.lab.race import race_settings
from engine.spec import RunSpec

__all__ = ["race_tab"]

PRICES = {"target_ms": 20, "draft_ms": 2}


def race_tab(chosen: Settings) -> None:
    """Draw the tab."""
    spec = chosen.spec
    st.markdown(
        "The sidebar's prompt and drafter under every length policy, in turns with plain decoding. The sidebar's draft "
        "length is the most that each may draft."
    )
    current = comparisons.race(state.owner())
    going = current is not None and not current.work.finished
    if not_predicted(spec):
        st.info(
            "The embedded pair is instant, so its real speed tells nothing of a policy. Give its calls a price.",
            icon=":material/schedule:",
        )
        st.button("20 ms a target call, 2 ms a draft call", key="race_prices", on_click=state.fill, args=(PRICES,))
    with st.container(horizontal=True, vertical_alignment="bottom", key="race_choice"):
        repeats = int(
            st.number_input(
                "Repeats", 1, 50, 3, key="race_repeats", width=150, persist_state="session",
                help="Of every policy, each with a seed of its own that all policies share.",
            )
        )  # fmt: skip
        go = st.button(
            "Race",
            type="primary",
            icon=":material/sprint:",
            key="race_go",
            disabled=going or bool(chosen.trouble),
        )
    st.caption(_about(spec))
    if chosen.trouble:
        error_box(chosen.trouble)
    run_under_way()
    if go:
        try:
            settings = race_settings(spec, repeats=repeats)
            comparisons.start_race(state.owner(), settings, _about(spec))
        except DraftscopeError as failure:
            error_box(str(failure))
        else:
            st.rerun()
    if current:
        _show(current, _about(spec))


def _about(spec: RunSpec) -> str:
    return plain(
        f"target {spec.target}, drafter {spec.drafter}, draft length up to {spec.draft_length}, rule {spec.rule}, "
        f"temperature {spec.temperature:g}, {spec.max_tokens} tokens"
    )


def _show(current: LiveRace, now: str) -> None:
    result = result_of(current.work, "race_stop", "runs")
    if result is None:
        return
    circumstances(result, "race_badges")
    if current.words != now:
        st.caption(f"Raced with: {current.words}")
    rows = [{**row, "name": row["policy"]} for row in result["policies"]]
    st.markdown("**Speed-up over plain decoding**")
    plot(speed_up_chart(rows), key="race_speed_up")
    st.markdown("**Draft length over time**")
    st.caption("The first run of each policy: the draft length of each step, and how many tokens were accepted.")
    plot(lengths_chart(result["policies"]), key="race_lengths")
    st.dataframe(race_frame(result["policies"]), hide_index=True, key="race_table", placeholder="n/a")
    st.download_button(
        "All as JSON",
        lambda: json.dumps(result, ensure_ascii=False, allow_nan=False),
        "race.json",
        "application/json",
        key="race_json",
        on_click="ignore",
        icon=":material/download:",
    )
