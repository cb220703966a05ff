"""The history page: every saved run, to filter, look at, export and delete."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard.charts import runs_chart
from dashboard.components.live import live_view
from dashboard.frames import runs_frame
from dashboard.views.exports import run_exports, runs_export
from dashboard.views.import_runs import import_runs
from dashboard.views.links import linked_run, settings_link
from engine.errors import DraftscopeError
from engine.store import RunStore

__all__ = ["page"]

COLUMNS = {
    "created_at": st.column_config.DatetimeColumn("when (UTC)", format="YYYY-MM-DD HH:mm:ss"),
    "draft_length": st.column_config.NumberColumn("draft length"),
    "tokens_generated": st.column_config.NumberColumn("tokens"),
    "acceptance_rate": st.column_config.NumberColumn("acceptance rate", format="%.3f"),
    "per_token_acceptance": st.column_config.NumberColumn("per-token acceptance", format="%.3f"),
    "tokens_per_step": st.column_config.NumberColumn("tokens per step", format="%.2f"),
    "tokens_per_second": st.column_config.NumberColumn("tokens/s", format="%.1f"),
    "total_time": st.column_config.NumberColumn("total time, s", format="%.3f"),
    "finish_reason": st.column_config.TextColumn("ended by"),
    "id": None,
}


def page() -> None:
    """Draw the page."""
    st.subheader("Run history")
    try:
        runs, unreadable = RunStore().runs(), RunStore().unreadable()
    except DraftscopeError as failure:
        st.error(str(failure), icon=":material/database_off:")
        return
    linked_run()
    import_runs()
    if unreadable:
        st.warning(
            f"{len(unreadable)} of the runs cannot be read by this version of Draftscope: {', '.join(unreadable[:5])}",
            icon=":material/question_mark:",
        )
    if not runs:
        st.info("No runs yet. Every run of the Decode page is kept here.", icon=":material/history:")
        return
    frame = _filtered(runs_frame(runs))
    chosen = _table(frame)
    with st.container(horizontal=True, key="history_actions"):
        runs_export(chosen or list(frame["id"]), "Selected runs as CSV" if chosen else "These runs as CSV")
        if chosen and st.button(f"Delete {len(chosen)}", icon=":material/delete:", key="delete"):
            _confirm(chosen)
    if len(chosen) == 1:
        st.divider()
        run_exports(chosen[0], key="saved")
        settings_link(RunStore().get(chosen[0]).spec, key="saved")
        live_view(chosen[0], mode="review", finished=True, key="saved_view")
    elif len(frame) > 1:
        st.caption("Acceptance against what it brought: every dot is a run. Select one row to see the run again.")
        st.plotly_chart(runs_chart(frame), key="runs_chart")


def _filtered(frame: pd.DataFrame) -> pd.DataFrame:
    with st.container(horizontal=True, key="filters"):
        text = st.text_input("Filter", placeholder="words of the prompt", key="filter_text")
        choices = {
            column: st.multiselect(column.capitalize(), sorted(frame[column].unique()), key=f"filter_{column}")
            for column in ("target", "drafter", "rule")
        }
    if text:
        frame = frame[frame["prompt"].str.contains(text, case=False, regex=False)]
    for column, values in choices.items():
        if values:
            frame = frame[frame[column].isin(values)]
    return frame


def _table(frame: pd.DataFrame) -> list[str]:
    """The table; returns the ids of the selected runs.

    Streamlit keeps a selection as row numbers; the key holds the ids, so that other rows begin unselected.
    """
    table = st.dataframe(
        frame,
        hide_index=True,
        column_config=COLUMNS,
        on_select="rerun",
        selection_mode="multi-row",
        key=f"runs {' '.join(frame['id'])}",
        placeholder="n/a",
        height=min(420, 38 + 35 * max(len(frame), 1)),
    )
    rows = [row for row in table.selection.rows if row < len(frame)]
    return [str(run_id) for run_id in frame["id"].iloc[rows]]


@st.dialog("Delete runs")
def _confirm(run_ids: list[str]) -> None:
    st.write("Delete with all their steps? This cannot be undone.")
    for run in map(RunStore().get, run_ids):
        st.caption(f"{run.created_at}, {run.spec.target}, drafter {run.spec.drafter}: {run.spec.prompt[:60]}")
    if st.button("Delete", type="primary", key="delete_sure"):
        try:
            RunStore().delete(run_ids)
        except DraftscopeError as failure:
            st.error(str(failure), icon=":material/block:")
        else:
            st.rerun()
