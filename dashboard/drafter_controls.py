"""The part of the sidebar that says what guesses, and the settings that belong to it alone."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dashboard.settings_link import ANY, BOUND, BOUNDS
from engine.drafters.combined import SURE_GREEDY, SURE_WARM
from engine.drafters.earlier_outputs import forget_outputs, outputs_of
from engine.heads import has_shipped_head
from engine.lengths.confident import FIRST, FURTHER
from engine.models import catalog
from engine.spec import RunSpec

__all__ = ["drafter_field", "drafter_fields", "drafters_for"]

DEFAULT = RunSpec()

DRAFTER_WORDS = {
    "none": "Plain decoding, the baseline.",
    "ngram": "Prompt lookup: copies what followed the same words before.",
    "suffix": "Suffix decoding: copies what most often followed, the further the longer the match is.",
    "recycling": "Token recycling: proposes what the target last found most probable behind each token.",
    "early-exit": "The target's own first layers: no other model, but each guess costs much of a call.",
    "model": "The draft model that comes with the target.",
    "eagle": "A small trained head that reads what the target thinks.",
    "eagle+ngram": "Prompt lookup where the last words occurred before, else the trained head.",
    "eagle+suffix": "Suffix decoding where the last words occurred before, else the trained head.",
}


def drafter_field(target: str, embedded: bool) -> str:
    """Draw the choice of the drafter."""
    drafter: str = st.selectbox(
        "Drafter",
        drafters_for(target),
        key="drafter_embedded" if embedded else "drafter_head" if has_shipped_head(target) else "drafter",
        accept_new_options=True,
        **BOUND,
        help="What guesses. For a model of your own, type model: and its name or the path of its GGUF file.",
    )
    own = f"model:{target}"
    st.caption(
        DRAFTER_WORDS.get(
            drafter,
            "The target as its own draft: a guess costs as much as it can save."
            if drafter == own
            else "A model as draft. Where its tokens are others than the target's, it drafts those that both have.",
        )
    )
    return drafter


def drafters_for(target: str) -> list[str]:
    """The drafters to choose from for a target; others may be typed."""
    others = [entry.name for entry in catalog.entries() if entry.ready and entry.kind != "embedded"]
    embedded = any(entry.name == target and entry.kind == "embedded" for entry in catalog.entries())
    heads = ["eagle+ngram", "eagle+suffix", "eagle"] if has_shipped_head(target) else []
    first, last = (["model"], []) if embedded else (heads, ["early-exit"])
    names = [*first, "ngram", "suffix", "recycling", *last, "none"]
    return names + [f"model:{name}" for name in ([target] if embedded else others)]


def drafter_fields(target: str, drafter: str) -> dict[str, Any]:
    """Draw the widgets of the drafter's own settings, if it has any."""
    kind = drafter.partition(":")[0]
    if kind in ("ngram", "eagle+ngram"):
        return _ngram()
    if kind in ("suffix", "eagle+suffix"):
        return _suffix(target)
    return _exit_layer() if kind == "early-exit" else {}


def _ngram() -> dict[str, Any]:
    """The settings of prompt lookup, by their names in a `RunSpec`."""
    with st.expander("Prompt lookup"):
        longest = st.slider(
            "Longest n-gram", *BOUNDS["ngram_max"], DEFAULT.ngram_max, key="ngram_max", **BOUND,
            help=f"eagle+ngram looks for {SURE_GREEDY} tokens at least, above temperature 0 for {SURE_WARM}: fewer are "
            "no match to trust.",
        )  # fmt: skip
        match = st.selectbox(
            "Match",
            ["recent", "first"],
            key="ngram_match",
            **BOUND,
            help="Which earlier occurrence is copied: the most recent, or the first.",
        )
    return {"ngram_max": longest, "ngram_match": match}


def _suffix(target: str) -> dict[str, Any]:
    """The settings of suffix decoding, by their names in a `RunSpec`."""
    with st.expander("Suffix decoding"):
        factor = st.slider(
            "Drafted per matched token", *BOUNDS["suffix_factor"], DEFAULT.suffix_factor, 0.25,
            key="suffix_factor", **BOUND,
            help="A match of m tokens allows a draft of this times m, and the offset more.",
        )  # fmt: skip
        offset = st.slider("Offset", *BOUNDS["suffix_offset"], DEFAULT.suffix_offset, 1.0, key="suffix_offset", **BOUND)
        min_prob = st.slider(
            "Least probability", *BOUNDS["suffix_min_prob"], DEFAULT.suffix_min_prob, 0.05, key="suffix_min_prob",
            **BOUND, help="A draft ends where it, as a whole, is less likely to be kept; judged by counts. The length "
            f"policy confident ends it below {FURTHER} in any case (the first token below {FIRST}).",
        )  # fmt: skip
        choice = st.selectbox(
            "Continuation", ["frequent", "recent"], key="suffix_choice", **BOUND,
            help="Which is taken: the most frequent, or the one seen last.",
        )  # fmt: skip
        outputs = st.toggle(
            "Earlier outputs too", DEFAULT.suffix_outputs, key="suffix_outputs", **BOUND,
            help="Also copy from what earlier runs of this target emitted, and remember this one. They are kept in "
            "the memory of this program alone. At a temperature above 0 a run then depends on those before it.",
        )  # fmt: skip
        if outputs:
            n_outputs = outputs_of(target, choice).n_outputs
            label = f"Forget {n_outputs} earlier output{'s'[: n_outputs > 1]}"
            st.button(
                label if n_outputs else "No earlier outputs yet",
                key="forget_outputs",
                on_click=forget_outputs,
                disabled=not n_outputs,
                icon=":material/delete:",
            )
    return {
        "suffix_factor": factor,
        "suffix_offset": offset,
        "suffix_min_prob": min_prob,
        "suffix_choice": choice,
        "suffix_outputs": outputs,
    }


def _exit_layer() -> dict[str, Any]:
    layer = st.number_input(
        "Exit layer",
        *ANY,
        DEFAULT.exit_layer,
        key="exit_layer",
        **BOUND,
        help="How many of the target's layers a guess goes through; 0 takes two thirds of them.",
    )
    return {"exit_layer": int(layer)}
