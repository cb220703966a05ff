"""Two saved runs beside each other, with what differs marked."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from dashboard.boxes import error_box
from dashboard.components.live import live_view
from dashboard.frames import pairs_frame
from engine.errors import DraftscopeError
from engine.side_by_side import Pair, figure_pairs, first_difference, setting_pairs
from engine.store import RunStore, StoredRun

__all__ = ["side_by_side"]

NAMES = ("left", "right")


def side_by_side(left_id: str, right_id: str) -> None:
    """Settings and figures of both in one table, then stream and charts of each."""
    try:
        left, right = RunStore().get(left_id, exact=True), RunStore().get(right_id, exact=True)
    except DraftscopeError as failure:
        error_box(str(failure))
        return
    st.divider()
    settings = setting_pairs(left.spec, right.spec)
    differing = [pair.name for pair in settings if pair.differs]
    st.markdown(f"**Settings that differ:** {', '.join(differing).replace('_', ' ') or 'none'}. {_text(left, right)}")
    with st.container(horizontal=True, key="side_by_side_tables"):
        _table("Settings", settings)
        _table("Figures", figure_pairs(left.record, right.record))
    for column, name, run in zip(st.columns(2), NAMES, (left, right), strict=True):
        with column:
            st.text(f"{name.capitalize()}: {_title(run)}")  # no Markdown: a path may have its marks in it
            live_view(run.id, mode="review", finished=True, key=f"{name}_view")


def _table(title: str, pairs: Iterable[Pair]) -> None:
    with st.container(width=600):
        frame = pairs_frame(pairs, *NAMES)
        st.dataframe(
            _marked(frame),
            hide_index=True,
            column_config={"differs": st.column_config.TextColumn("", width=30), "name": title.lower()},
            key=f"pairs_{title.lower()}",
            height=300,
        )


def _marked(frame: pd.DataFrame) -> Styler:
    """Rows that differ are bold and tinted, beside their mark."""
    bold = "font-weight: 700; background-color: rgba(230, 159, 0, 0.22)"
    return frame.style.apply(lambda row: [bold if row["differs"] else ""] * len(row), axis=1)


def _text(left: StoredRun, right: StoredRun) -> str:
    if left.spec.target != right.spec.target:
        return "Tokens of different targets are not compared."
    shared = first_difference(left.record["ids"], right.record["ids"])
    if shared is None:
        return "Both emitted the same tokens."
    return f"Their texts part at token {shared}."


def _title(run: StoredRun) -> str:
    return f"{run.spec.target}, drafter {run.spec.drafter}, {run.created_at[:19].replace('T', ' ')}"
