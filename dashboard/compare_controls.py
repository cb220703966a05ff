"""The widgets of the page Compare: configurations, prompts, repeats. Like `controls`, it reads widgets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from dashboard.controls import Settings
from dashboard.drafter_controls import drafters_for
from dashboard.settings_link import check_bounds
from engine.bench.prompts import Prompt, built_in_prompts, one_of_each, parse_prompts
from engine.compare.choices import MOST_CONFIGURATIONS
from engine.compare.run import CompareSettings, plan_of
from engine.errors import DraftscopeError, PromptError
from engine.lengths import MAX_DRAFT_LENGTH
from engine.policies import POLICIES
from engine.rules import RULES
from engine.spec import RunSpec

__all__ = ["CompareChoice", "compare_controls"]

ONE, UPLOADED, BUILT_IN = "The sidebar's prompt", "A prompt set", "The built-in prompts"
KEPT: dict[str, Any] = {"persist_state": "session"}
FIRST_PROMPTS = 8


@dataclass(frozen=True, slots=True)
class CompareChoice:
    """What the page says.

    Attributes
    ----------
    settings : CompareSettings or None
        None if there is nothing to compare.
    n_runs : int
        How many runs that would be.
    trouble : str
        Why it cannot be started, in words for a user; empty if it can.
    """

    settings: CompareSettings | None
    n_runs: int = 0
    trouble: str = ""


def compare_controls(chosen: Settings) -> CompareChoice:
    """Draw the widgets and read them; the sidebar's settings are the first configuration."""
    base = chosen.spec
    with st.container(border=True, key="compare_choice"):
        specs = (base, *_others(base))
        prompts, source, trouble = _prompts(base)
        repeats = st.number_input(
            "Repeats", 1, 50, 3, key="compare_repeats", **KEPT, width=180,
            help="Of every configuration on every prompt. The runs of a repeat are made in turns, in an order that is "
            "shuffled anew each time.",
        )  # fmt: skip
    if trouble:
        return CompareChoice(None, trouble=trouble)
    settings = CompareSettings(specs, prompts, int(repeats), source)
    try:
        check_bounds(base)
        return CompareChoice(settings, plan_of(settings).n_turns)
    except DraftscopeError as failure:
        return CompareChoice(None, trouble=str(failure))


def _others(base: RunSpec) -> list[RunSpec]:
    st.markdown("**Configurations**")
    st.caption(
        f"Plain decoding and the sidebar's: drafter {_shown(base.drafter)}, draft length {base.draft_length}, length "
        f"policy {base.length_policy}, rule {base.rule}, temperature {base.temperature:g}. "
        f"Add up to {MOST_CONFIGURATIONS - 1} more:"
    )
    n_more: int = st.segmented_control(
        "More configurations", range(MOST_CONFIGURATIONS), default=1, required=True, key="compare_more",
        label_visibility="collapsed", **KEPT,
    )  # fmt: skip
    return [_other(base, place) for place in range(1, n_more + 1)]


def _other(base: RunSpec, place: int) -> RunSpec:
    """One more configuration; it begins as the next drafter, then as other draft lengths of the sidebar's."""
    names = drafters_for(base.target)
    others = [name for name in names if name not in (base.drafter, "none") and ":" not in name]
    start = others[place - 1] if place <= len(others) else base.drafter
    length = base.draft_length if start != base.drafter else max(1, base.draft_length + 2 * place - 1)
    drafter_box, length_box, policy_box, rule_box, temperature_box = st.columns(
        [3, 2, 3, 2, 2], vertical_alignment="bottom"
    )
    key = f"compare_{place}_{base.target}_{base.drafter}"
    drafter = drafter_box.selectbox(
        f"Drafter {place + 1}", names, names.index(start) if start in names else 0, key=f"{key}_drafter",
        accept_new_options=True, **KEPT,
    )  # fmt: skip
    draft_length = length_box.number_input(
        "Draft length", 0, MAX_DRAFT_LENGTH, min(length, MAX_DRAFT_LENGTH), key=f"{key}_length", **KEPT
    )
    policy = policy_box.selectbox(
        "Length policy", list(POLICIES), list(POLICIES).index(base.length_policy), key=f"{key}_policy", **KEPT
    )
    rule = rule_box.selectbox("Rule", list(RULES), list(RULES).index(base.rule), key=f"{key}_rule", **KEPT)
    temperature = temperature_box.number_input(
        "Temperature", 0.0, 2.0, base.temperature, 0.05, key=f"{key}_{base.temperature}_temperature", **KEPT
    )
    return replace(
        base,
        drafter=str(drafter),
        draft_length=int(draft_length),
        length_policy=str(policy),
        rule=str(rule),
        temperature=float(temperature),
    )


def _prompts(base: RunSpec) -> tuple[tuple[Prompt, ...], str, str]:
    """The prompts, where they came from, and what is wrong with them."""
    st.markdown("**Prompts**")
    kind = st.segmented_control(
        "Prompts", [ONE, UPLOADED, BUILT_IN], default=ONE, required=True, key="compare_prompts",
        label_visibility="collapsed", **KEPT,
    )  # fmt: skip
    if kind == ONE:
        return (Prompt("1", base.prompt),), "the page", ""
    if kind == BUILT_IN:
        return _some(built_in_prompts()), "built in", ""
    file = st.file_uploader(
        "A text file with one prompt a line, JSON lines with prompt and category, or Spec-Bench's question.jsonl",
        type=["txt", "jsonl", "json"],
        key="compare_file",
    )
    if file is None:
        return (), "", "choose a file of prompts"
    try:
        return _some(parse_prompts(_text(file.getvalue(), file.name), file.name)), file.name, ""
    except PromptError as failure:
        return (), "", str(failure)


def _text(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        raise PromptError(f"{name} is no UTF-8 text: {failure}; save it as UTF-8") from None


def _some(prompts: tuple[Prompt, ...]) -> tuple[Prompt, ...]:
    """As many of the prompts as the user wants, from the categories in turn."""
    if len(prompts) == 1:
        return prompts
    n_prompts = st.number_input(
        f"How many of its {len(prompts)} prompts", 1, len(prompts), min(FIRST_PROMPTS, len(prompts)),
        key=f"compare_n_{len(prompts)}", width=260, help="They are taken from the categories in turn.", **KEPT,
    )  # fmt: skip
    return one_of_each(prompts, int(n_prompts))


def _shown(name: str) -> str:
    return f"`{name.replace('`', '')}`"
