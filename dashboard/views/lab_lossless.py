"""The lab's question *Lossless?*: two small laws as bars to drag, and the exact law of what a rule makes of them."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from dashboard import state
from dashboard.components.laws import LAWS_KEY, law_bars
from dashboard.controls import Settings
from dashboard.frames import lossless_data
from dashboard.plain_text import plain
from dashboard.rule_controls import RULE_SETTINGS
from dashboard.settings_link import BOUNDS
from engine.acceptance import NaiveThreshold
from engine.errors import DraftscopeError
from engine.lab.cases import CASES, CHAIN_RULES, Case
from engine.lab.enumerate import LONGEST_DRAFT, PROPOSALS, Proposal
from engine.lab.lossless import Lossless, lossless
from engine.lab.small_pair import FEWEST_TOKENS, MOST_TOKENS, SmallPair
from engine.rules import RULE_PARAMETERS, RULES
from engine.spec import RunSpec

__all__ = ["lossless_tab"]

KEY = "lossless_"
FIRST = CASES[0]
BY_TITLE = {case.title: case for case in CASES}
PROPOSAL_HELP = (
    "sampled: drawn from the draft's law. argmax: always its most probable token, as lookups do. In the other two the "
    "rule is told a law that the draft was not made by."
)


@st.fragment
def lossless_tab(chosen: Settings) -> None:
    """Draw the tab; the sidebar has no part in it."""
    st.markdown(
        "Drag the bars of a target and a draft. One step is enumerated, every draft and every outcome: what comes out "
        "is exact, nothing is drawn. The sidebar has no part in this."
    )
    case = st.selectbox(
        "Worked case",
        list(BY_TITLE),
        key=f"{KEY}case",
        on_change=_take_case,
        persist_state="session",
        help="Sets everything below; change it from there.",
    )
    st.caption(BY_TITLE[case].words)
    spec, draft_length, proposal, shift = _choices()
    laws = state.laws(LAWS_KEY, FIRST.pair.target, FIRST.pair.draft)
    found: Lossless | None = None
    trouble = ""
    pair = FIRST.pair
    try:
        pair = SmallPair(tuple(laws.target), tuple(laws.draft), shift)
        found = lossless(spec, pair, draft_length=draft_length, proposal=proposal)
    except DraftscopeError as failure:
        trouble = str(failure)
    law_bars(
        pair.names,
        laws.target,
        laws.draft,
        revision=laws.revision,
        sent=laws.sent,
        result=lossless_data(found) if found else None,
        trouble=trouble,
    )


def _choices() -> tuple[RunSpec, int, Proposal, float]:
    """Rule with its parameters, draft length, proposal, and the shift of the target's logits."""
    with st.container(horizontal=True, vertical_alignment="top", key=f"{KEY}choices"):
        rule = st.selectbox("Rule", CHAIN_RULES, key=f"{KEY}rule", width=190, persist_state="session")
        draft_length = st.segmented_control(
            "Draft length",
            range(1, LONGEST_DRAFT + 1),
            default=FIRST.draft_length,
            required=True,
            key=f"{KEY}draft_length",
            persist_state="session",
        )
        st.segmented_control(
            "Tokens",
            range(FEWEST_TOKENS, MOST_TOKENS + 1),
            default=len(FIRST.pair.target),
            required=True,
            key=f"{KEY}n_tokens",
            on_change=_resize,
            persist_state="session",
        )
        proposal = st.selectbox(
            "The draft is", PROPOSALS, key=f"{KEY}proposal", width=290, persist_state="session", help=PROPOSAL_HELP
        )
        spec, shift = _parameters(rule)
    about = RULES[rule](spec)
    st.caption(plain(f"{'Lossless' if about.lossless else 'Lossy'}. {about.guarantee} {about.source}."))
    return spec, int(draft_length), proposal, shift


def _parameters(rule: str) -> tuple[RunSpec, float]:
    spec, shift = RunSpec(rule=rule), 0.0
    for name in RULE_PARAMETERS.get(rule, ()):
        words, meaning = RULE_SETTINGS[name]
        chosen = st.slider(
            words, *BOUNDS[name], getattr(spec, name), 0.01,
            key=f"{KEY}{name}", width=220, persist_state="session", help=meaning,
        )  # fmt: skip
        spec = replace(spec, **{name: chosen})
    if spec.rule == NaiveThreshold.name:
        shift = st.slider(
            "Added to the target's logits", -5.0, 5.0, 0.0, 0.5, key=f"{KEY}shift", width=220, persist_state="session",
            help="A constant on all of them changes no law.",
        )  # fmt: skip
    return spec, shift


def _take_case() -> None:
    case = BY_TITLE[state.value(f"{KEY}case")]
    state.set_laws(case.pair.target, case.pair.draft)
    state.fill({f"{KEY}{name}": value for name, value in _widgets(case).items()})


def _widgets(case: Case) -> dict[str, object]:
    return {
        "rule": case.rule,
        "draft_length": case.draft_length,
        "n_tokens": len(case.pair.target),
        "proposal": case.proposal,
        "shift": case.pair.target_shift,
        **dict(case.settings),
    }


def _resize() -> None:
    laws = state.laws(LAWS_KEY, FIRST.pair.target, FIRST.pair.draft)
    pair = SmallPair(tuple(laws.target), tuple(laws.draft)).resized(int(state.value(f"{KEY}n_tokens")))
    state.set_laws(pair.target, pair.draft)
