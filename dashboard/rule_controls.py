"""The part of the sidebar that says how far is drafted and what is kept: length policy, rule, trees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import streamlit as st

from dashboard.boxes import warning_box
from dashboard.settings_link import BOUND, BOUNDS
from engine.acceptance.tree import children_of
from engine.drafter_kinds import TREES
from engine.policies import POLICIES, POLICY_PARAMETERS
from engine.rules import RULE_PARAMETERS, RULES
from engine.spec import RunSpec

__all__ = ["RULE_SETTINGS", "policy_fields", "rule_fields", "tree_fields"]

DEFAULT = RunSpec()

RULE_SETTINGS = {
    "lenience": (
        "Lenience",
        "The draft's probability counts this much of it in the test: the lower, the more is kept. 1 is the exact rule.",
    ),
    "ensemble_weight": (
        "Weight of the target",
        "The text follows this much of the target's law and the rest of the draft's. 1 is the exact rule.",
    ),
    "typical_threshold": (
        "Threshold",
        "A guess is kept if the target gives it more than this, or less where it is open.",
    ),
    "typical_scale": (
        "Scale",
        "Where the target is open, scale * exp(-entropy) is asked for instead, if that is below the threshold.",
    ),
    "acceptance_probability": (
        "Its “acceptance probability”",
        "exp(draft logit - target logit) is held against 1 / (1 - this): a larger value accepts less.",
    ),
}
"""What the settings of the rules are called, and what they do."""

POLICY_SETTINGS = {
    "confidence_threshold": (
        "Confidence threshold",
        "The least probability under the draft behind which it goes on. 0 always goes on.",
    ),
    "entropy_bound": (
        "Entropy bound",
        "What 1 - sqrt(0.2 x entropy) must reach for a guess to be made. 0.4 is reached up to 1.8 nats.",
    ),
    "start_threshold": ("First threshold", "Where the threshold begins; it then follows what is kept."),
}
"""The same for the length policies."""


def policy_fields() -> dict[str, Any]:
    """Draw the widgets of the length policy: its name, and the settings that it reads."""
    policy = st.selectbox(
        "Length policy",
        list(POLICIES),
        key="length_policy",
        **BOUND,
        help="How many tokens to guess at each step, up to the draft length. Under a lossless rule no policy changes "
        "the law of the text.",
    )
    st.caption(POLICIES[policy](DEFAULT).guarantee)
    return {"length_policy": policy, **_sliders(POLICY_PARAMETERS.get(policy, ()), POLICY_SETTINGS)}


def rule_fields() -> dict[str, Any]:
    """Draw the widgets of the acceptance rule: its name, and the settings that it reads."""
    rule = st.selectbox(
        "Acceptance rule", list(RULES), key="rule", **BOUND, help="How a drafted token is kept or refused."
    )
    chosen = _sliders(RULE_PARAMETERS.get(rule, ()), RULE_SETTINGS)
    about = RULES[rule](replace(DEFAULT, **chosen))
    if about.lossless:
        st.caption(f"Lossless. {about.guarantee}")
    else:
        warning_box(f"Lossy. {about.guarantee}", ":material/warning:")
    return {"rule": rule, **chosen}


def _sliders(names: Iterable[str], words: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    """A slider for each of these fields of a `RunSpec`, with its label and its help."""
    return {
        name: st.slider(
            words[name][0], *BOUNDS[name], getattr(DEFAULT, name), 0.01, key=name, **BOUND, help=words[name][1]
        )
        for name in names
    }


def tree_fields(rule: str, drafter: str) -> dict[str, Any]:
    """Draw the widgets of a tree's shape, where one can be drafted."""
    if not children_of(RULES[rule](DEFAULT)):
        return {}
    if drafter.partition(":")[0] not in TREES:
        st.caption("Only a model drafts trees; this drafter drafts chains, which the rule judges as well.")
        return {}
    width = st.slider(
        "Tree width",
        *BOUNDS["tree_width"],
        DEFAULT.tree_width,
        key="tree_width",
        **BOUND,
        help="Most guesses for the same place; 1 is a chain. The draft length is the depth of the tree.",
    )
    nodes = st.slider(
        "Tree tokens",
        *BOUNDS["tree_nodes"],
        DEFAULT.tree_nodes,
        key="tree_nodes",
        **BOUND,
        help="Most tokens of a tree; they are verified together, in one call of the target.",
    )
    return {"tree_width": int(width), "tree_nodes": int(nodes)}
