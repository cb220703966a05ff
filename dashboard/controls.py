"""The sidebar: widgets to a `RunSpec` and the pace to show it at.

Every widget but the prompt and the stop texts is bound to the address; `state` keeps their values for a page that is
refreshed, for what a link filled in does not come into the address.
"""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from dashboard import state
from dashboard.drafter_controls import drafter_field, drafter_fields
from dashboard.rule_controls import policy_fields, rule_fields, tree_fields
from dashboard.sampling_controls import sampling_fields
from dashboard.settings_link import ANY, BOUND, BOUNDS, check_bounds, read_spec, widgets_of
from dashboard.target_controls import model_fields, prompt_fields, target_field
from engine.build import check
from engine.errors import DraftscopeError
from engine.spec import RunSpec

__all__ = ["PROBE", "Settings", "settings"]

DEFAULT = RunSpec()

PROBE = 8
"""Alternatives to keep of every step; `docs/inspector.md` says what they cost."""

EXPLAIN_HELP = (
    f"Keep the {PROBE} most probable alternatives at every step, for the inspector beside the tokens. "
    "It changes no token, and its time is counted apart."
)

LOGPROBS_HELP = (
    "Note the target's own log-probability of every token, before temperature, penalties and truncation: see the "
    "inspector, the exports, and the perplexity of the text. It changes no token, and takes a little time."
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the sidebar says.

    Attributes
    ----------
    spec : RunSpec
    steps_per_second : float or None
        The pace to show it at; None is as it goes.
    trouble : str
        Why this run cannot be started, in words for a user; empty if it can.
    """

    spec: RunSpec
    steps_per_second: float | None
    trouble: str


def settings() -> Settings:
    """Draw the sidebar's widgets and read them; first fill them, if a link was opened."""
    _fill_from_link()
    target, embedded = target_field()
    prompt = prompt_fields(target, embedded)
    drafter = drafter_field(target, embedded)
    draft_length = st.slider(
        "Draft length",
        *BOUNDS["draft_length"],
        DEFAULT.draft_length,
        key="draft_length",
        **BOUND,
        help="The most tokens that the drafter may guess at a step.",
    )
    policy = {} if drafter == "none" else policy_fields()
    rule = rule_fields()
    tree = tree_fields(rule["rule"], drafter)
    sampling = sampling_fields()
    max_tokens = st.number_input("Max tokens", *ANY, DEFAULT.max_tokens, 16, key="max_tokens", **BOUND)
    stop = st.multiselect(
        "Stop at",
        DEFAULT.stop,
        key="stop_at",
        accept_new_options=True,
        placeholder="Type a text that ends the run",
        help="The run ends where one of these texts appears.",
    )
    seed = st.number_input("Seed", *ANY, DEFAULT.seed, key="seed", **BOUND)
    own = drafter_fields(target, drafter)
    model = model_fields(target, embedded)
    probe = PROBE if st.toggle("Explain every decision", True, key="explain", **BOUND, help=EXPLAIN_HELP) else 0
    logprobs = st.toggle("Log-probabilities", DEFAULT.logprobs, key="logprobs", **BOUND, help=LOGPROBS_HELP)
    spec = RunSpec(
        target=target,
        drafter=drafter,
        draft_length=draft_length,
        max_tokens=int(max_tokens),
        stop=tuple(stop),
        seed=int(seed),
        probe=probe,
        logprobs=logprobs,
        **{**prompt, **policy, **rule, **tree, **sampling, **own, **model},
    )
    return Settings(spec, _pace(), _trouble(spec))


def _fill_from_link() -> None:
    if text := state.take_spec():
        try:
            state.fill(widgets_of(read_spec(text)))
        except DraftscopeError as failure:
            state.notice(f"The settings of the link were not taken: {failure}.")
        else:
            st.toast("The sidebar has the settings of the link. Press Run to start.", icon=":material/link:")


def _pace() -> float | None:
    paced = st.toggle(
        "Slow motion",
        key="paced",
        **BOUND,
        help="Show a fixed number of steps a second; the figures stay the engine's.",
    )
    if not paced:
        return None
    return float(st.slider("Steps a second", 1, 200, 4, key="pace", **BOUND))


def _trouble(spec: RunSpec) -> str:
    try:
        check_bounds(spec)
        check(spec)
    except DraftscopeError as failure:
        return str(failure)
    return ""
