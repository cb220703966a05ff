"""Download buttons; a file is built when its button is pressed, never before.

A press does not run the script again. Streamlit hands the address of the file over in the same queue that it empties
when the script begins, and forgets the file of a button that is drawn anew: where a press does both, the file is lost
now and then, and the button waits for it. Why nothing came is therefore told by a fragment that looks by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import PurePath

import streamlit as st

from dashboard import state
from dashboard.boxes import error_box
from dashboard.html_file import html_file
from engine.deleted_runs import KEPT_DAYS
from engine.errors import DraftscopeError
from engine.export import runs_csv, steps_csv, to_bytes, tokens_csv
from engine.export_jsonl import run_jsonl
from engine.figure_text import counted
from engine.store import RunStore
from engine.values import Event

__all__ = ["export_menu", "failed_exports", "forget_failed_exports", "run_exports"]

TYPES = {".html": "text/html", ".jsonl": "application/jsonl", ".csv": "text/csv"}


def run_exports(run_id: str, *, key: str) -> None:
    """Buttons for one run: to play it without Draftscope, to import it again, its steps and its tokens."""
    with st.container(horizontal=True, vertical_alignment="center", key=f"{key}_exports"):
        _button(
            "Replay as HTML",
            lambda: html_file(RunStore().get(run_id), RunStore().events(run_id)),
            f"run-{run_id[:8]}.html",
            (run_id,),
            key=f"{key}_html",
            words="One file that opens with a double click and needs no network: the run to play and step through.",
        )
        _button(
            "Run as JSONL",
            lambda: to_bytes(run_jsonl(RunStore().get(run_id), RunStore().events(run_id))),
            f"run-{run_id[:8]}.jsonl",
            (run_id,),
            key=f"{key}_jsonl",
            words="Every event, without loss; import it on the History page, or with `python -m engine runs import`.",
        )
        bom = _for_excel(key)
        _button(
            "Steps as CSV",
            lambda: to_bytes(steps_csv(run_id, RunStore().events(run_id)), bom=bom),
            f"steps-{run_id[:8]}.csv",
            (run_id,),
            key=f"{key}_steps",
            words="One row for every step.",
        )
        _button(
            "Tokens as CSV",
            lambda: to_bytes(tokens_csv(run_id, RunStore().events(run_id)), bom=bom),
            f"tokens-{run_id[:8]}.csv",
            (run_id,),
            key=f"{key}_tokens",
            words="One row for every decision: draft token, target token, accepted or not, and why.",
        )


def export_menu(run_ids: Sequence[str], *, chosen: bool) -> None:
    """All that can be exported of these runs, behind one button: tables of all of them, and files of a single one."""
    n_runs = counted(len(run_ids), "run")
    with st.popover(f"Export {n_runs}", icon=":material/download:", disabled=not run_ids, key="export"):
        st.caption("What is selected." if chosen else "Everything in the list; select rows to export less.")
        bom = _for_excel("runs")
        _button(
            "Runs as CSV",
            lambda: to_bytes(runs_csv(map(RunStore().get, run_ids)), bom=bom),
            "runs.csv",
            run_ids,
            key="runs_csv",
            words="One row for every run, with its settings and figures.",
        )
        if len(run_ids) == 1:
            run_exports(run_ids[0], key="saved")
            return
        for kind, lines, row in (("Steps", steps_csv, "step"), ("Tokens", tokens_csv, "decision")):
            _button(
                f"{kind} as CSV",
                lambda lines=lines: to_bytes(_lines_of(run_ids, lines), bom=bom),  # type: ignore[misc]
                f"{kind.lower()}.csv",
                run_ids,
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


def failed_exports() -> None:
    """Why nothing was downloaded; part of a fragment that looks by itself."""
    for trouble in state.export_troubles():
        error_box(trouble)


def forget_failed_exports() -> None:
    """Begin anew, when the page is drawn for another reason."""
    state.export_troubles().clear()


def _button(
    label: str, content: Callable[[], bytes], name: str, run_ids: Sequence[str], *, key: str, words: str
) -> None:
    troubles = state.export_troubles()

    def build() -> bytes:
        try:
            return content()
        except DraftscopeError as failure:
            troubles[:] = [_reason(run_ids, failure)]
            raise  # so that the button gives up, too

    st.download_button(
        label,
        build,
        name,
        TYPES[PurePath(name).suffix],
        key=key,
        on_click="ignore",
        icon=":material/download:",
        help=words,
    )


def _reason(run_ids: Sequence[str], failure: DraftscopeError) -> str:
    """Which runs are gone, if that is why; Streamlit says no more than that there is no file, and that for a moment."""
    with suppress(DraftscopeError):
        here = {run.id for run in RunStore().listing()[0]}
        if gone := [run_id for run_id in run_ids if run_id not in here]:
            return (
                f"Nothing was downloaded: {', '.join(gone[:5])} was deleted meanwhile. "
                f"For {KEPT_DAYS} days the page History can restore it, under “Deleted runs”."
            )
    return f"Nothing was downloaded. {failure}"
