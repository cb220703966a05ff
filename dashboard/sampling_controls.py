"""The part of the sidebar that says how logits become a law: temperature, truncation, penalties, arithmetic."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dashboard.settings_link import ANY, BOUND, BOUNDS
from engine.sampling import ARITHMETICS
from engine.spec import RunSpec

__all__ = ["sampling_fields"]

DEFAULT = RunSpec()

RANGED = (
    (
        "min_p",
        "Min-p",
        "Keep the tokens that are at least this share as probable as the best one. 0 keeps every token.",
    ),
    (
        "repetition_penalty",
        "Repetition penalty",
        "Divides the logits of tokens in prompt and output (multiplies negative ones). 1 changes nothing.",
    ),
    ("frequency_penalty", "Frequency penalty", "Off the logit of a token for every time that it is in the output."),
    ("presence_penalty", "Presence penalty", "Off the logit of a token that is in the output, however often."),
)
"""Sliders of the law, by the field of `RunSpec`."""

ARITHMETIC_HELP = (
    "What exponentiates and adds up a row: float, or whole numbers with a table. The second is exact for its own, "
    "very slightly different law, and not faster."
)


def sampling_fields() -> dict[str, Any]:
    """Draw the widgets, and give the fields of a `RunSpec` that say how logits become a law."""
    temperature = st.slider(
        "Temperature",
        *BOUNDS["temperature"],
        DEFAULT.temperature,
        0.05,
        key="temperature",
        **BOUND,
        help="0 takes the most probable token.",
    )
    with st.expander("Truncation and penalties"):
        top_k = st.number_input("Top-k", *ANY, DEFAULT.top_k, key="top_k", help="0 keeps every token.", **BOUND)
        top_p = st.slider(
            "Top-p", *BOUNDS["top_p"], DEFAULT.top_p, 0.01, key="top_p", help="1 keeps every token.", **BOUND
        )
        ranged = {name: _ranged(label, name, help_text) for name, label, help_text in RANGED}
        arithmetic = st.selectbox("Arithmetic", list(ARITHMETICS), key="arithmetic", help=ARITHMETIC_HELP, **BOUND)
    return {"temperature": temperature, "top_k": int(top_k), "top_p": top_p, **ranged, "arithmetic": arithmetic}


def _ranged(label: str, name: str, help_text: str) -> float:
    value: float = st.slider(label, *BOUNDS[name], getattr(DEFAULT, name), 0.05, key=name, help=help_text, **BOUND)
    return value
