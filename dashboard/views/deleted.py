"""Deleted runs: undo, restore, and delete for good."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from dashboard import state
from dashboard.boxes import error_box
from engine.deleted_runs import KEPT_DAYS, DeletedRun
from engine.errors import DraftscopeError
from engine.figure_text import counted, size
from engine.store import RunStore

__all__ = ["deleted_list", "undo_bar"]


def undo_bar(deleted: Sequence[DeletedRun]) -> None:
    """What this tab has just deleted, and a button that takes it back."""
    can_be = {run.id for run in deleted}
    run_ids = [run_id for run_id in state.last_deleted() if run_id in can_be]
    if not run_ids:
        return
    with st.container(horizontal=True, vertical_alignment="center", border=True, key="undo_bar"):
        n_runs = counted(len(run_ids), "run")
        st.markdown(f"Deleted {n_runs}.", width="content")
        if st.button("Undo", icon=":material/undo:", key="undo"):
            state.forget_deleted()
            _do(lambda: RunStore().restore(run_ids))
        if st.button("Close", type="tertiary", key="undo_close"):
            state.forget_deleted()
            st.rerun()


def deleted_list(deleted: Sequence[DeletedRun]) -> None:
    """All that can be taken back."""
    if not deleted:
        return
    with st.expander(f"Deleted runs ({len(deleted)})", icon=":material/delete:", key="deleted_runs"):
        st.caption(
            f"They are kept for {KEPT_DAYS} days and still take their room; after that, a look at the history deletes "
            "them for good."
        )
        names = {run.id: _name(run) for run in deleted}
        chosen = st.multiselect("Restore", names, format_func=names.__getitem__, key="restore_ids")
        with st.container(horizontal=True, key="deleted_actions"):
            if st.button("Restore", icon=":material/undo:", disabled=not chosen, key="restore"):
                _do(lambda: RunStore().restore(chosen))
            if st.button("Delete all of them for good", icon=":material/delete_forever:", key="purge"):
                _do(lambda: RunStore().purge(kept_days=0))


def _name(run: DeletedRun) -> str:
    who = f"{run.spec.target}, {run.spec.drafter}: {run.spec.prompt[:40]}" if run.spec else "cannot be read"
    name = f"{run.created_at[:16].replace('T', ' ')}, {size(run.n_bytes)}, {who}"
    return name.encode("utf-8", "replace").decode()  # a prompt may hold half a surrogate pair


def _do(action: Callable[[], int]) -> None:
    try:
        action()
    except DraftscopeError as failure:
        error_box(str(failure))
    else:
        st.rerun()
