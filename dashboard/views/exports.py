"""Download buttons and the import; a file is built when its button is pressed, never before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import streamlit as st

from dashboard.html_file import html_file
from engine.export import runs_csv, steps_csv, to_bytes, tokens_csv
from engine.export_jsonl import run_jsonl
from engine.store import RunStore
from engine.values import Event

__all__ = ["export_menu", "run_exports"]


def run_exports(run_id: str, *, key: str) -> None:
    """Buttons for one run: to play it without Draftscope, to import it again, its steps and its tokens."""
    with st.container(horizontal=True, vertical_alignment="center", key=f"{key}_exports"):
        st.download_button(
            "Replay as HTML",
            lambda: html_file(RunStore().get(run_id), RunStore().events(run_id)),
            f"run-{run_id[:8]}.html",
            "text/html",
            key=f"{key}_html",
            on_click="ignore",
            icon=":material/download:",
            help="One file that opens with a double click and needs no network: the run to play and step through.",
        )
        st.download_button(
            "Run as JSONL",
            lambda: to_bytes(run_jsonl(RunStore().get(run_id), RunStore().events(run_id))),
            f"run-{run_id[:8]}.jsonl",
            "application/jsonl",
            key=f"{key}_jsonl",
            on_click="ignore",
            icon=":material/download:",
            help="Every event, without loss; import it on the History page, or with `python -m engine runs import`.",
        )
        for_excel = _for_excel(key)
        _button(
            "Steps as CSV",
            lambda: steps_csv(run_id, RunStore().events(run_id)),
            f"steps-{run_id[:8]}.csv",
            for_excel=for_excel,
            key=f"{key}_steps",
            words="One row for every step.",
        )
        _button(
            "Tokens as CSV",
            lambda: tokens_csv(run_id, RunStore().events(run_id)),
            f"tokens-{run_id[:8]}.csv",
            for_excel=for_excel,
            key=f"{key}_tokens",
            words="One row for every decision: draft token, target token, accepted or not, and why.",
        )


def export_menu(run_ids: Sequence[str], *, chosen: bool) -> None:
    """All that can be exported of these runs, behind one button: tables of all of them, and files of a single one."""
    n_runs = "1 run" if len(run_ids) == 1 else f"{len(run_ids)} runs"
    with st.popover(f"Export {n_runs}", icon=":material/download:", disabled=not run_ids, key="export"):
        st.caption("What is selected." if chosen else "Everything in the list; select rows to export less.")
        for_excel = _for_excel("runs")
        _button(
            "Runs as CSV",
            lambda: runs_csv(map(RunStore().get, run_ids)),
            "runs.csv",
            for_excel=for_excel,
            key="runs_csv",
            words="One row for every run, with its settings and figures.",
        )
        if len(run_ids) == 1:
            run_exports(run_ids[0], key="saved")
            return
        for kind, lines, row in (("Steps", steps_csv, "step"), ("Tokens", tokens_csv, "decision")):
            _button(
                f"{kind} as CSV",
                lambda lines=lines: _lines_of(run_ids, lines),  # type: ignore[misc]
                f"{kind.lower()}.csv",
                for_excel=for_excel,
                key=f"all_{kind.lower()}_csv",
                words=f"One row for every {row} of these runs.",
            )


def _lines_of(run_ids: Iterable[str], lines: Callable[..., Iterator[str]]) -> Iterator[str]:
    """One table of several runs, under one header."""
    store, nothing = RunStore(), list[Event]()
    yield from lines("", nothing)
    for run_id in run_ids:
        yield from lines(run_id, store.events(run_id), header=False)


def _for_excel(key: str) -> bool:
    return st.toggle(
        "For Excel", key=f"{key}_excel", help="Begin the file with a byte-order mark, by which Excel knows UTF-8."
    )


def _button(
    label: str, lines: Callable[[], Iterator[str]], name: str, *, for_excel: bool, key: str, words: str
) -> None:
    st.download_button(
        label,
        lambda: to_bytes(lines(), bom=for_excel),
        name,
        "text/csv",
        key=key,
        on_click="ignore",
        icon=":material/download:",
        help=words,
    )
