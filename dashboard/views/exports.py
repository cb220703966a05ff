"""Download buttons; a file is built when its button is pressed, never before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from engine.export import runs_csv, steps_csv, to_bytes, tokens_csv
from engine.store import RunStore

__all__ = ["run_exports", "runs_export"]


def run_exports(run_id: str, *, key: str) -> None:
    """Buttons for the steps and the tokens of one run."""
    with st.container(horizontal=True, key=f"{key}_exports"):
        _button(
            "Steps as CSV",
            lambda: to_bytes(steps_csv(run_id, RunStore().events(run_id))),
            f"steps-{run_id[:8]}.csv",
            key=f"{key}_steps",
            words="One row for every step.",
        )
        _button(
            "Tokens as CSV",
            lambda: to_bytes(tokens_csv(run_id, RunStore().events(run_id))),
            f"tokens-{run_id[:8]}.csv",
            key=f"{key}_tokens",
            words="One row for every decision: draft token, target token, accepted or not, and why.",
        )


def runs_export(run_ids: Sequence[str], label: str) -> None:
    """A button for the table of runs."""
    _button(
        label,
        lambda: to_bytes(runs_csv([RunStore().get(run_id) for run_id in run_ids])),
        "runs.csv",
        key="runs_csv",
        words="One row for every run, with its settings and figures.",
    )


def _button(label: str, build: Callable[[], bytes], name: str, *, key: str, words: str) -> None:
    st.download_button(
        label, build, name, "text/csv", key=key, on_click="ignore", icon=":material/download:", help=words
    )
