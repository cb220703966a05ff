"""The history page: every saved run, to filter, look at, label, export, delete and take back."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256

import streamlit as st

from dashboard import state
from dashboard.boxes import error_box, warning_box
from dashboard.charts import runs_chart
from dashboard.components.live import live_view
from dashboard.frames import runs_frame
from dashboard.stored_log import stored_log
from dashboard.views.busy import LOOK_SECONDS
from dashboard.views.deleted import deleted_list, undo_bar
from dashboard.views.exports import export_menu, failed_exports, forget_failed_exports
from dashboard.views.failures import where_drafts_fail
from dashboard.views.history_filters import chosen_runs
from dashboard.views.import_runs import import_runs
from dashboard.views.labels import delete_button, label_form
from dashboard.views.links import linked_run, settings_link
from dashboard.views.plot import plot
from dashboard.views.side_by_side import side_by_side
from engine.errors import DraftscopeError
from engine.figure_text import counted, size
from engine.store import RunStore, StoredRun

__all__ = ["page"]

COLUMNS = {
    "created_at": st.column_config.DatetimeColumn("when (UTC)", format="YYYY-MM-DD HH:mm", width=125),
    "id": st.column_config.TextColumn("id", width=140),
    "prompt": st.column_config.TextColumn("prompt", width=240),
    "tags": st.column_config.ListColumn("tags", width=110),
    "draft_length": st.column_config.NumberColumn("draft length"),
    "tokens_generated": st.column_config.NumberColumn("tokens"),
    "acceptance_rate": st.column_config.NumberColumn("acceptance rate", format="%.3f"),
    "per_token_acceptance": st.column_config.NumberColumn("per-token acceptance", format="%.3f"),
    "tokens_per_step": st.column_config.NumberColumn("tokens per step", format="%.2f"),
    "tokens_per_second": st.column_config.NumberColumn("tokens/s", format="%.1f"),
    "total_time": st.column_config.NumberColumn("total time, s", format="%.3f"),
    "finish_reason": st.column_config.TextColumn("ended by"),
}


def page() -> None:
    """Draw the page."""
    st.subheader("Run history")
    try:
        store = RunStore()
        store.purge()
        runs, unreadable = store.listing()
        used = store.storage()
        deleted = store.deleted()
    except DraftscopeError as failure:
        error_box(str(failure), ":material/database_off:")
        return
    if trouble := state.take_notice():
        error_box(trouble)
    forget_failed_exports()
    st.fragment(failed_exports, run_every=LOOK_SECONDS)()
    linked_run()
    import_runs()
    undo_bar(deleted)
    if unreadable:
        warning_box(
            f"{len(unreadable)} of the runs cannot be read by this version of Draftscope: {', '.join(unreadable[:5])}",
            ":material/question_mark:",
        )
    if runs:
        _runs(runs)
    else:
        st.info("No runs yet. Every run of the Decode page is kept here.", icon=":material/history:")
    st.divider()
    st.caption(f"The history has {counted(used.n_runs, 'run')} and takes {size(used.n_bytes)} on disk.")
    deleted_list(deleted)


def _runs(runs: Sequence[StoredRun]) -> None:
    shown = chosen_runs(runs)
    selected = _table(shown)
    with st.container(horizontal=True, key="history_actions"):
        export_menu([run.id for run in selected or shown], chosen=bool(selected))
        if selected:
            label_form(selected, runs)
            delete_button(selected)
    if not shown:
        st.info("No run is like that. Give fewer conditions.", icon=":material/filter_alt_off:")
    elif len(selected) == 1:
        _one(selected[0])
    elif len(selected) == 2:
        side_by_side(selected[0].id, selected[1].id)
    elif len(shown) > 1:
        st.caption(
            "Acceptance against what it brought: every dot is a run. Select one row to see the run again, two to see "
            "them side by side."
        )
        plot(runs_chart(runs_frame(shown)), key="runs_chart")


def _one(run: StoredRun) -> None:
    st.divider()
    if run.note:
        st.text(run.note)
    settings_link(run.spec, key="saved")
    live_view(run.id, mode="review", finished=True, key="saved_view")
    if run.state != "running":
        where_drafts_fail(run.id, key="saved")
        with suppress(DraftscopeError):  # of which the view tells, which asks for the same
            stored_log(run.id)  # read while the browser makes room for the view


def _table(runs: Sequence[StoredRun]) -> list[StoredRun]:
    """The table; returns the selected runs.

    Streamlit keeps a selection as row numbers; the key names the ids, so that other rows begin unselected.
    """
    table = st.dataframe(
        runs_frame(runs),
        hide_index=True,
        column_config=COLUMNS,
        on_select="rerun",
        selection_mode="multi-row",
        key=f"runs {sha256(' '.join(run.id for run in runs).encode()).hexdigest()}",
        placeholder="n/a",
        height=min(420, 38 + 35 * max(len(runs), 1)),
    )
    return [runs[row] for row in table.selection.rows if row < len(runs)]
