"""The part of the sidebar that says what decodes: target, prompt, what runs the model."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dashboard import examples
from dashboard.plain_text import plain
from dashboard.settings_link import ANY, BOUND, BOUNDS, OWN_TEXT
from engine.models import catalog
from engine.models.backends import BACKENDS
from engine.spec import RunSpec

__all__ = ["REAL_MODEL", "model_fields", "prompt_fields", "target_field"]

DEFAULT = RunSpec()
REAL_MODEL = "smollm2-135m"


def target_field() -> tuple[str, bool]:
    """Draw the choice of the target: its name, and whether it is one of the embedded ones."""
    entries = {entry.name: entry for entry in catalog.entries() if entry.ready}
    names = sorted(entries, key=lambda name: (name != REAL_MODEL, entries[name].kind == "embedded", name))
    target = st.selectbox(
        "Target",
        names,
        key="target",
        accept_new_options=True,
        **BOUND,
        help="The model whose output counts. To use another GGUF file, type its path.",
    )
    if target in entries:
        st.caption(plain(entries[target].description))
    return str(target), target in entries and entries[target].kind == "embedded"


def prompt_fields(target: str, embedded: bool) -> dict[str, Any]:
    """Draw the widgets of the prompt."""
    choices = examples.NUMBERS if target == "noisy" else examples.CONTINUE if embedded else examples.CHAT
    kind = "words" if not embedded else target
    example = st.selectbox("Prompt", [*choices, OWN_TEXT], key=f"example_{kind}", persist_state="session")
    prompt = st.text_area(
        "Its text",
        choices.get(example, ""),
        key=f"prompt_{kind}_{example}",
        persist_state="session",
        height=120,
        label_visibility="collapsed",
        placeholder="Write a prompt",
    )
    chat = DEFAULT.chat
    if not embedded:
        chat = st.toggle(
            "Chat template", chat, key="chat", **BOUND, help="Put the prompt into the model's own template."
        )
    return {"prompt": prompt or "", "chat": chat}


def model_fields(target: str, embedded: bool) -> dict[str, Any]:
    """Draw the widgets of what runs a file, or of the embedded pair."""
    if not embedded:
        return _backend()
    return _embedded_pair() if target == "markov" else {}


def _backend() -> dict[str, Any]:
    with st.expander("Backend"):
        backend = st.selectbox(
            "Backend",
            list(BACKENDS),
            key="backend",
            **BOUND,
            help="What runs the model: numba (4 or 8 bits, needs AVX2, compiles for about half a minute the first "
            "time) and ort (ONNX Runtime, 8 bits) are fast, numpy (32 bits) is the reference. auto takes the first "
            "that can run it.",
        )
        exact_rows = st.toggle(
            "Exact rows",
            DEFAULT.exact_rows,
            key="exact_rows",
            **BOUND,
            help="Rows of the target are the same, bit for bit, alone and in a block, so that speculative text "
            "at temperature 0 equals plain text.",
        )
    return {"backend": str(backend), "exact_rows": bool(exact_rows)}


def _embedded_pair() -> dict[str, Any]:
    with st.expander("Embedded pair", expanded=True):
        agreement = st.slider(
            "Agreement",
            *BOUNDS["agreement"],
            DEFAULT.agreement,
            0.05,
            key="agreement",
            **BOUND,
            help="How well the draft guesses: 1 is the target's own law, 0 the plain bigram, -1 the worst.",
        )
        target_ms = st.number_input(
            "Simulated target call, ms",
            *ANY,
            0,
            5,
            key="target_ms",
            **BOUND,
            help="The pair is instant, so its real speed means nothing. Give its calls a price to see when it pays; "
            "every time is then marked SIMULATED.",
        )
        draft_ms = st.number_input("Simulated draft call, ms", *ANY, 0, 1, key="draft_ms", **BOUND)
    return {
        "agreement": agreement,
        "target_call_seconds": target_ms / 1000,
        "draft_call_seconds": draft_ms / 1000,
    }
