"""The lab's *Same trace, every rule*: one run, and what each rule makes of each of its steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from dashboard import state
from dashboard.boxes import error_box
from dashboard.controls import Settings
from dashboard.frames import trace_frame
from dashboard.lab_charts import accepted_chart, bias_chart
from dashboard.lab_work import LabWork, lab_works
from dashboard.plain_text import plain
from dashboard.views.busy import measurement_under_way
from dashboard.views.plot import plot
from dashboard.views.work_progress import result_of
from dashboard.work import Work
from engine.bench.run import before_runs
from engine.csv_text import to_bytes
from engine.errors import DraftscopeError
from engine.lab.trace import Trace, trace_csv, trace_run
from engine.spec import RunSpec
from engine.store import RunStore

__all__ = ["trace_tab"]

SIDEBAR = "The sidebar's settings, decoded now"
MOST_OFFERED = 50


@dataclass(frozen=True, slots=True)
class Source:
    """A run to judge: its settings, and its id in the history if it is saved."""

    spec: RunSpec
    run_id: str = ""


def trace_tab(chosen: Settings) -> None:
    """Draw the tab."""
    st.markdown(
        "One run, and what every rule makes of each of its steps: the same draft, the same rows of the target, the "
        "same draws. A saved run is decoded again, and must give the same tokens."
    )
    sources = _sources(chosen)
    current = lab_works.get(state.owner(), "trace")
    going = current is not None and not current.work.finished
    with st.container(horizontal=True, vertical_alignment="bottom", key="trace_choice"):
        name = st.selectbox("Run", list(sources), key="trace_run", width=620, persist_state="session")
        source = sources[name]
        trouble = "" if source.run_id else chosen.trouble
        go = st.button(
            "Judge with every rule",
            type="primary",
            icon=":material/gavel:",
            key="trace_go",
            disabled=going or bool(trouble),
        )
    if trouble:
        error_box(trouble)
    if go:
        try:
            current = lab_works.start(state.owner(), "trace", source.spec, _action(source), name)
        except DraftscopeError as failure:
            error_box(str(failure))
        else:
            st.rerun()
    measurement_under_way()
    if current:
        _show(current)


def _sources(chosen: Settings) -> dict[str, Source]:
    """The sidebar's settings, then saved runs that drafted, the newest first."""
    sources = {SIDEBAR: Source(chosen.spec)}
    try:
        runs, _ = RunStore().listing()
    except DraftscopeError:
        runs = []
    drafted = [run for run in runs if run.state == "finished" and run.record.get("per_token_acceptance") is not None]
    for run in drafted[:MOST_OFFERED]:
        spec = run.spec
        label = f"{run.created_at[:19]} {spec.target}, {spec.drafter} {spec.draft_length}, {spec.rule} ({run.id})"
        sources[label] = Source(spec, run.id)
    return sources


def _action(source: Source) -> Callable[[Work[Trace]], Trace]:
    def action(work: Work[Trace]) -> Trace:
        ids: Sequence[int] | None = None
        if source.run_id:
            ids = RunStore().get(source.run_id, exact=True).record["ids"]
        work.progress("loading", 0, 0)
        return trace_run(
            source.spec,
            ids,
            progress=lambda done, total: work.progress("judging", done, total),
            loading=before_runs(work.progress, 0),
            cancelled=work.cancelled,
        )

    return action


def _show(current: LabWork) -> None:
    trace: Trace | None = result_of(current.work, "trace_stop", "tokens")
    if trace is None:
        return
    st.caption(plain(f"{current.words}: {trace.about}"))
    if trace.partial:
        st.badge("PARTIAL: stopped before its end", icon=":material/incomplete_circle:", color="orange")
    st.dataframe(
        trace_frame(trace),
        hide_index=True,
        key="trace_table",
        placeholder="n/a",
        column_config={
            name: st.column_config.NumberColumn(format="%.4f")
            for name in ("tokens per step", "expected tokens per step", "mean bias", "largest bias")
        },
    )
    for note in trace.notes:
        st.caption(f":material/info: {plain(note)}")
    st.markdown("**Accepted at each step, with the same draws**")
    st.caption("The stronger the colour, the more of the drafted tokens are accepted; an empty square is none.")
    plot(accepted_chart(trace), key="trace_accepted")
    st.markdown("**Bias of the first token of each step**")
    st.caption(
        "Total-variation distance of its exact law under the rule from the target's: 0 is the same law. Rules that are "
        "not drawn are at 0 everywhere."
    )
    if all(rule.keeps_the_law for rule in trace.rules):
        st.info("No rule is off on this trace.", icon=":material/check_circle:")
    else:
        plot(bias_chart(trace), key="trace_bias")
    with st.expander("Every step"):
        st.dataframe(_steps(trace), hide_index=True, key="trace_steps", placeholder="n/a")
    st.download_button(
        "Steps as CSV",
        lambda: to_bytes(trace_csv(trace)),
        "trace.csv",
        "text/csv",
        key="trace_csv",
        on_click="ignore",
        icon=":material/download:",
    )


def _steps(trace: Trace) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "step": step.index + 1,
                "drafted": step.drafted,
                **{rule.name: step.judged[rule.name].accepted for rule in trace.rules if rule.name in step.judged},
            }
            for step in trace.steps
        ]
    )
