"""What a comparison found: the sentences, the charts they stand on, the tables, the files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.compare_charts import category_chart, speed_up_chart, time_chart
from dashboard.plain_text import plain
from dashboard.views.circumstances import circumstances
from dashboard.views.plot import plot
from engine.bench.verdict import estimate_text
from engine.compare.export import comparison_csv, comparison_runs_csv
from engine.compare.report import prompts_caveat
from engine.csv_text import to_bytes

__all__ = ["show_result"]

BOXES = {
    "helps": (st.success, ":material/trending_up:"),
    "hurts": (st.error, ":material/trending_down:"),
    "no difference": (st.info, ":material/trending_flat:"),
    "not known": (st.warning, ":material/question_mark:"),
}
TEXT_ICONS = {
    "same": ":material/check_circle:",
    "near-tie": ":material/approval_delegation:",
    "difference": ":material/difference:",
    "not compared": ":material/casino:",
}


def show_result(result: Mapping[str, Any]) -> None:
    """Draw the result of a comparison, complete or partial (`engine.compare.result`)."""
    rows = result["configurations"]
    others = rows[1:]
    circumstances(result, "compare_badges")
    if caveat := prompts_caveat(result):
        st.caption(f":material/looks_one: {caveat}")
    for row in others:
        box, icon = BOXES[row["verdict"]]
        box(f"**{plain(row['name'])}** {plain(row['sentence'])}", icon=icon)
    left, right = st.columns(2)
    with left:
        st.markdown("**Speed-up**")
        plot(speed_up_chart(others), key="speed_up_chart")
    with right:
        st.markdown("**Where the time goes**")
        plot(time_chart(rows), key="time_chart")
    st.markdown("**Is the text the same?**")
    for row in others:
        st.markdown(f"{TEXT_ICONS[row['text']]} **{plain(row['name'])}:** {plain(row['text_sentence'])}")
    if len(result["categories"]) > 1:
        st.markdown("**By category**")
        plot(category_chart(others, result["categories"]), key="category_chart")
        st.dataframe(_categories(others, result["categories"]), hide_index=True, key="category_table")
    with st.expander("All figures"):
        st.dataframe(_figures(rows), hide_index=True, key="compare_figures", placeholder="n/a")
    _files(result)


def _categories(rows: list[Mapping[str, Any]], categories: list[str]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"category": category, **{row["name"]: estimate_text(row["by_category"][category]) for row in rows}}
            for category in categories
        ]
    )


FIGURES = {
    "name": "configuration",
    "tokens_per_second": "tokens/s",
    "tokens_per_step": "tokens per step",
    "acceptance_rate": "acceptance rate",
    "per_token_acceptance": "per-token acceptance",
    "draft_cost": "draft token, target calls",
    "rows_per_call": "tokens verified a call",
    "verify_cost": "verification, target calls",
    "prefill_seconds": "prefill, s",
    "runs": "runs",
    "tokens": "tokens",
}


def _figures(rows: list[Mapping[str, Any]]) -> pd.DataFrame:
    frame = pd.DataFrame([{words: row[name] for name, words in FIGURES.items()} for row in rows])
    return frame.round(3)


def _files(result: Mapping[str, Any]) -> None:
    with st.container(horizontal=True, key="compare_files"):
        _button("Configurations as CSV", lambda: comparison_csv(result), "comparison.csv")
        _button("Runs as CSV", lambda: comparison_runs_csv(result), "comparison-runs.csv")
        _button(
            "All as JSON", lambda: iter((json.dumps(result, ensure_ascii=False, allow_nan=False),)), "comparison.json"
        )


def _button(label: str, lines: Callable[[], Iterator[str]], name: str) -> None:
    st.download_button(
        label,
        lambda: to_bytes(lines()),
        name,
        "application/json" if name.endswith(".json") else "text/csv",
        key=name,
        on_click="ignore",
        icon=":material/download:",
    )
