"""The import of runs from a file: all of it, or a clear message and nothing."""

from __future__ import annotations

import streamlit as st

from dashboard import state
from dashboard.boxes import error_box
from dashboard.plain_text import plain
from engine.errors import DraftscopeError
from engine.figure_text import counted
from engine.import_jsonl import LONGEST_LINE, MOST_BYTES, read_runs
from engine.store import RunStore

__all__ = ["import_runs"]


def import_runs() -> None:
    """A place to drop a JSONL file, and what came of it."""
    if told := state.take_imported():
        st.success(plain(told), icon=":material/check:")
    with st.expander("Import runs", icon=":material/upload:"):
        file = st.file_uploader(
            "A file that “Run as JSONL” or `python -m engine runs export --jsonl` wrote",
            key=state.upload_key(),
            max_upload_size=MOST_BYTES // 2**20,
        )
        if file is None:
            return
        try:
            added = RunStore().add(read_runs(iter(lambda: file.readline(LONGEST_LINE + 1), b""), file.name))
        except DraftscopeError as failure:
            error_box(str(failure))
            return
    state.imported(f"Imported {counted(len(added.ids), 'run')}.{f' {added.words}.' if added.words else ''}")
    state.next_upload()
    st.rerun()
