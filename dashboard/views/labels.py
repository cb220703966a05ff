"""What can be done to selected runs: tags, a note, deleting."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard import state
from dashboard.boxes import error_box
from engine.errors import DraftscopeError
from engine.store import RunStore, StoredRun

__all__ = ["delete_button", "label_form"]


def label_form(selected: Sequence[StoredRun], runs: Sequence[StoredRun]) -> None:
    """Tags of the selected runs, and the note of a single one."""
    known = sorted({tag for run in runs for tag in run.tags})
    shared = [tag for tag in selected[0].tags if all(tag in run.tags for run in selected)]
    key = " ".join(run.id for run in selected)
    with st.popover("Tags and note", icon=":material/sell:", key="label"), st.form(f"label {key}", border=False):
        tags = st.multiselect(
            "Tags",
            known,
            shared,
            accept_new_options=True,
            key=f"tags {key}",
            placeholder="type one, or choose",
            help="What all of the selected runs have. A new one is added to each, one taken off is taken off each.",
        )
        note = st.text_area("Note", selected[0].note, key=f"note {key}") if len(selected) == 1 else None
        if not st.form_submit_button("Save", icon=":material/save:"):
            return
        taken_off = set(shared) - set(tags)
        try:
            RunStore().label_all(
                {run.id: [*(tag for tag in run.tags if tag not in taken_off), *tags] for run in selected}, note=note
            )
        except DraftscopeError as failure:
            error_box(str(failure))
        else:
            st.rerun()


def delete_button(selected: Sequence[StoredRun]) -> None:
    """Delete the selected runs; the next drawing of the page offers to undo it."""
    if not st.button(f"Delete {len(selected)}", icon=":material/delete:", key="delete"):
        return
    run_ids = [run.id for run in selected]
    try:
        RunStore().delete(run_ids)
    except DraftscopeError as failure:
        error_box(str(failure))
        return
    state.remember_deleted(run_ids)
    st.rerun()
