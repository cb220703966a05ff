"""The lab's statistical check: many short runs, counted, against the exact law of an embedded target."""

from __future__ import annotations

import json
from collections.abc import Callable

import pandas as pd
import streamlit as st

from dashboard import state
from dashboard.boxes import error_box, warning_box
from dashboard.controls import Settings
from dashboard.lab_charts import check_chart
from dashboard.lab_work import LabWork, lab_works
from dashboard.plain_text import plain
from dashboard.views.busy import measurement_under_way
from dashboard.views.plot import plot
from dashboard.views.work_progress import result_of
from dashboard.work import Work
from engine.bench.run import before_runs
from engine.errors import DraftscopeError
from engine.lab.check import LONGEST_BEGINNING, MOST_RUNS, check_settings, statistical_check
from engine.lab.check_result import CheckResult
from engine.models import catalog
from engine.spec import RunSpec

__all__ = ["check_tab"]


def check_tab(chosen: Settings) -> None:
    """Draw the tab."""
    spec = chosen.spec
    st.markdown(
        "Many short runs of the sidebar's settings, each with a seed of its own. How often each beginning came is held "
        "against the target's exact law with a chi-square test."
    )
    embedded = any(entry.name == spec.target and entry.kind == "embedded" for entry in catalog.entries())
    if not embedded:
        st.info(
            "The law of an embedded target can be followed to the end; that of this one cannot.", icon=":material/info:"
        )
        st.button("Use the embedded pair", key="check_embedded", on_click=state.choose_target, args=("markov",))
    current = lab_works.get(state.owner(), "check")
    going = current is not None and not current.work.finished
    with st.container(horizontal=True, vertical_alignment="bottom", key="check_choice"):
        n_runs = int(
            st.number_input("Runs", 1, MOST_RUNS, 2000, 1000, key="check_runs", width=180, persist_state="session")
        )
        n_tokens = int(
            st.number_input(
                "Tokens of each", 1, LONGEST_BEGINNING, 2, key="check_tokens", width=150, persist_state="session",
                help="How many tokens behind the prompt are looked at.",
            )
        )  # fmt: skip
        go = st.button(
            "Check",
            type="primary",
            icon=":material/fact_check:",
            key="check_go",
            disabled=going or not embedded or bool(chosen.trouble),
        )
    st.caption(plain(_about(spec)))
    if chosen.trouble:
        error_box(chosen.trouble)
    if go:
        try:
            check_settings(spec, n_runs, n_tokens)
            current = lab_works.start(state.owner(), "check", spec, _action(spec, n_runs, n_tokens), _about(spec))
        except DraftscopeError as failure:
            error_box(str(failure))
        else:
            st.rerun()
    measurement_under_way()
    if current:
        _show(current)


def _about(spec: RunSpec) -> str:
    return (
        f"rule {spec.rule}, drafter {spec.drafter}, draft length {spec.draft_length}, temperature "
        f"{spec.temperature:g}, seeds from {spec.seed} on"
    )


def _action(spec: RunSpec, n_runs: int, n_tokens: int) -> Callable[[Work[CheckResult]], CheckResult]:
    def action(work: Work[CheckResult]) -> CheckResult:
        return statistical_check(
            spec,
            n_runs=n_runs,
            n_tokens=n_tokens,
            progress=lambda done, total: work.progress("decoding", done, total),
            loading=before_runs(work.progress, 0),
            cancelled=work.cancelled,
        )

    return action


def _show(current: LabWork) -> None:
    result: CheckResult | None = result_of(current.work, "check_stop", "runs")
    if result is None:
        return
    if result.partial:
        st.badge(
            f"PARTIAL: {result.runs} of {result.runs_planned} runs", icon=":material/incomplete_circle:", color="orange"
        )
    _conclusion(result)
    st.caption(plain(f"{current.words}: {result.about}"))
    plot(check_chart(result.cells), key="check_chart")
    with st.expander("All cells"):
        st.dataframe(
            pd.DataFrame(
                [
                    {
                        "begins with": cell.text,
                        "expected": round(cell.expected, 2),
                        "observed": cell.observed,
                        "95 % from": round(cell.low, 2),
                        "to": round(cell.high, 2),
                    }
                    for cell in result.cells
                ]
            ),
            hide_index=True,
            key="check_cells",
        )
    st.download_button(
        "Result as JSON",
        lambda: json.dumps(result.to_dict(), ensure_ascii=False, allow_nan=False),
        "check.json",
        "application/json",
        key="check_json",
        on_click="ignore",
        icon=":material/download:",
    )


def _conclusion(result: CheckResult) -> None:
    if result.conclusion == "differs":
        error_box(result.sentence, ":material/block:")
    elif result.conclusion in ("weak sign", "too few"):
        warning_box(result.sentence, ":material/question_mark:")
    else:
        st.success(plain(result.sentence), icon=":material/check_circle:")
