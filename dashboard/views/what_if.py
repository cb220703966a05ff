"""What-if: the predicted speed-up at every draft length, calibrated by what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from dashboard.boxes import error_box, warning_box
from dashboard.compare_charts import cost_chart, prediction_chart
from dashboard.comparisons import LiveComparison, LiveCosts, comparisons
from dashboard.plain_text import plain
from dashboard.views.plot import plot
from dashboard.views.work_progress import show_progress
from engine.bench.costs import Costs, not_predicted
from engine.bench.prompts import Prompt
from engine.compare.predictions import Rows, families_of, family_prediction
from engine.compare.proposals import proposals_of
from engine.compare.run import CompareSettings
from engine.errors import DraftscopeError
from engine.store import RunStore
from engine.what_if import profile_of

__all__ = ["what_if_section"]

MOST_RUNS = 20


@dataclass(frozen=True, slots=True)
class Source:
    """Where acceptance was measured.

    Attributes
    ----------
    rows : list of mapping
        Rows of a comparison, or one made of a saved run.
    settings : CompareSettings
        Of what the costs are measured.
    """

    rows: Rows
    settings: CompareSettings

    @property
    def drafter(self) -> str:
        """The drafter whose proposals are timed."""
        return str(self.rows[0]["drafter"])

    @property
    def key(self) -> object:
        """What the costs depend on."""
        spec = self.settings.specs[0]
        prices = (spec.target_call_seconds, spec.draft_call_seconds)
        timed = proposals_of(one for one in self.settings.specs if one.drafter == self.drafter)
        return (spec.target, spec.backend, spec.exact_rows, prices, tuple(timed))


def what_if_section(comparison: LiveComparison | None, target: str) -> None:
    """Draw the section, with runs of `target` first; nothing is measured before its button is pressed."""
    st.divider()
    st.subheader("What if?")
    st.caption(
        "The speed-up at every draft length, from acceptance that was measured, what a drafted token costs, and what "
        "verifying several tokens at once costs on this model."
    )
    sources = _sources(comparison, target)
    if not sources:
        st.info(
            "Compare, or make a run that drafts (chains, no trees); its acceptance is what this stands on.",
            icon=":material/info:",
        )
        return
    # a new comparison is looked at first, and runs of the sidebar's target
    key = f"what_if_source_{comparison.id if comparison else target}"
    name = st.selectbox("Acceptance measured in", list(sources), key=key)
    source = sources[name]
    if reason := not_predicted(source.settings.specs[0]):
        st.info(f"{reason[:1].upper()}{reason[1:]}.", icon=":material/schedule:")
        return
    live = comparisons.costs(source.key)
    if live is None or not live.work.finished or not live.work.result:
        _measure(source, live)
        return
    _show(source, live.work.result, name)


def _sources(comparison: LiveComparison | None, target: str) -> dict[str, Source]:
    """The drafters of the comparison, then saved runs that drafted chains, those of `target` first.

    No prediction speaks of trees.
    """
    sources = {}
    if comparison and comparison.result:
        for name, rows in families_of(comparison.result).items():
            sources[f"this comparison: {name}"] = Source(rows, comparison.settings)
    try:
        runs, _ = RunStore().listing()
    except DraftscopeError:
        runs = []
    drafted = [run for run in runs if run.record.get("steps") and profile_of(run.record)]
    drafted.sort(key=lambda run: run.spec.target != target)  # of either kind the newest first, as they come
    for run in drafted[:MOST_RUNS]:
        spec = run.spec
        row = {**run.record, "name": spec.drafter, "drafter": spec.drafter, "draft_length": spec.draft_length}
        label = f"run of {run.created_at[:19]}: {spec.target}, {spec.drafter} {spec.draft_length} ({run.id})"
        sources[label] = Source([{**row, "speed_up": None}], CompareSettings((spec,), (Prompt("1", spec.prompt),)))
    return sources


def _measure(source: Source, live: LiveCosts | None) -> None:
    if live and not live.work.finished:
        show_progress(live.work, "what_if_stop", "measurements", keeps=False)
        return
    if live and live.work.error:
        warning_box(live.work.error, ":material/timer_off:")
    spec = source.settings.specs[0]
    if st.button(
        "Measure the costs",
        icon=":material/timer:",
        key="what_if_measure",
    ):
        try:
            comparisons.start_costs(source.key, source.settings, source.drafter)
        except DraftscopeError as failure:
            error_box(str(failure))
        else:
            st.rerun()
    st.caption(
        f"Times calls of **{plain(spec.target)}** for 1 to 17 tokens and proposals of **{plain(source.drafter)}**, "
        "each by itself."
    )


def _show(source: Source, costs: Costs, name: str) -> None:
    left, right = st.columns([3, 2])
    with right:
        supposed = _suppose(source, costs, name)
        st.markdown("**What verifying costs on this model**")
        plot(cost_chart(costs.verify), key="cost_chart")
        st.caption(
            f"A call for m new tokens in units of a call for one ({1000 * costs.plain_call_seconds:.3g} ms at a "
            f"context of {costs.context_tokens} tokens), medians."
        )
    found = family_prediction(source.rows, costs, **supposed)
    with left:
        if found.get("simulated"):
            st.badge("SIMULATED: every time is made up of the given prices", icon=":material/schedule:", color="orange")
        plot(prediction_chart(found), key="prediction_chart")
        st.markdown(
            f"Best draft length **{found['best_length']}**, predicted **{found['best_speed_up']:.2f}x**. The theory "
            "takes every token's acceptance for the same and verifying for free; it is drawn with an acceptance of "
            f"{found['acceptance']:.2f} and c = {found['c']:.3f}."
        )
        for point in found["points"]:
            st.markdown(
                f"{plain(point['name'])}: measured {point['measured']:.2f}x, predicted {point['predicted']:.2f}x; "
                f"{point['words']}."
            )


def _suppose(source: Source, costs: Costs, name: str) -> dict[str, Any]:
    """The sliders; what is not supposed is as measured."""
    draft = costs.draft[source.rows[0].get("proposal") or source.drafter]
    longest = max(source.rows, key=lambda row: row["draft_length"])
    supposed: dict[str, Any] = {}
    measured = float(longest["per_token_acceptance"])
    if st.toggle("Suppose another acceptance", key="what_if_own_acceptance"):
        supposed["acceptance"] = st.slider(
            "Acceptance of each token", 0.0, 1.0, round(measured, 2), 0.01, key=f"what_if_acceptance_{name}"
        )
    else:
        st.caption(f"Acceptance as measured, position by position; pooled {measured:.2f}.")
    c = draft.of_call(max(1, longest["draft_length"]))
    if st.toggle("Suppose another cost of a drafted token", key="what_if_own_c"):
        supposed["c"] = st.slider(
            "c, target calls a token", 0.0, max(1.0, round(c, 2)), round(c, 2), 0.01, key=f"what_if_c_{name}"
        )
    else:
        st.caption(f"A drafted token costs {c:.3f} target calls, as measured.")
    supposed["flat"] = st.toggle(
        "Suppose that verifying is free (v flat)",
        key="what_if_flat",
        help="v(m) = 1 for every m, as the theory has it.",
    )
    return supposed
