"""Where the drafts of a run fail: by kind of token, by position, by proposal, and in the text."""

from __future__ import annotations

import streamlit as st

from dashboard.boxes import error_box
from dashboard.charts import kinds_chart, positions_chart
from dashboard.components.shaded import shaded_text
from dashboard.frames import kinds_frame, positions_frame, proposals_frame
from dashboard.state import run_failures
from dashboard.views.plot import plot
from engine.errors import DraftscopeError
from engine.failures import Failures

__all__ = ["where_drafts_fail"]

PROPOSALS = {
    "proposal": st.column_config.TextColumn("proposal"),
    "rejected": st.column_config.NumberColumn("rejected", help="How often it was refused."),
    "tested": st.column_config.NumberColumn("tested", help="How often it was judged."),
    "draft_prob": st.column_config.NumberColumn("draft", format="%.3f", help="Mean probability under the draft's law."),
    "target_prob": st.column_config.NumberColumn("target", format="%.3f", help="The same under the target's law."),
    "instead": st.column_config.TextColumn("what the target said instead", width="large"),
}


def where_drafts_fail(run_id: str, *, key: str) -> None:
    """An expander for a run that has ended; its events are looked at when it is opened, never before."""
    expander = st.expander(
        "Where drafts fail", icon=":material/troubleshoot:", key=f"{key}_failures", on_change="rerun"
    )
    if not expander.open:
        return
    with expander:
        try:
            found = run_failures(run_id)
        except DraftscopeError as failure:
            error_box(str(failure))
            return
        if not found.kinds:
            st.info("This run drafted nothing, so no draft could fail.", icon=":material/info:")
            return
        _charts(found, key)
        st.markdown("**Most refused proposals**, and what the target said instead")
        st.dataframe(
            proposals_frame(found.proposals),
            hide_index=True,
            column_config=PROPOSALS,
            placeholder="n/a",
            height=min(320, 38 + 35 * max(1, len(found.proposals))),
            key=f"{key}_proposals",
        )
        st.markdown("**The text**, shaded by how likely the draft at each place was to be kept")
        shaded_text(found.text, key=f"{key}_shaded_{run_id}")


def _charts(found: Failures, key: str) -> None:
    left, right = st.columns(2)
    with left:
        st.markdown(
            "**Acceptance by kind of token**",
            help="Accepted / tested drafted tokens of each kind; docs/metrics.md defines the kinds. The siblings of a "
            "tree count one by one here, and once for their place by position.",
        )
        plot(kinds_chart(kinds_frame(found.kinds)), key=f"{key}_kinds")
    with right:
        st.markdown(
            "**Acceptance by position**",
            help="Accepted / tested (conditional): of the drafts that got as far. Accepted / drafted (survival): of "
            "all drafts that proposed the position; it can rise, for a late one may be drafted by few steps only.",
        )
        plot(positions_chart(positions_frame(found.positions)), key=f"{key}_positions")
