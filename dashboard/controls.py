"""The sidebar: widgets to a `RunSpec` and the pace to show it at.

Every widget but the prompt and the stop texts is bound to the address; `state` keeps their values for a page that is
refreshed, for what a link filled in does not come into the address.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from dashboard import examples, state
from dashboard.boxes import warning_box
from dashboard.plain_text import plain
from dashboard.sampling_controls import sampling_fields
from dashboard.settings_link import ANY, BOUNDS, OWN_TEXT, check_bounds, read_spec, widgets_of
from engine import policies, rules
from engine.acceptance.tree import children_of
from engine.build import check
from engine.drafter_kinds import TREES
from engine.drafters.earlier_outputs import forget_outputs, outputs_of
from engine.drafters.ngram import Match
from engine.errors import DraftscopeError
from engine.heads import has_shipped_head
from engine.models import catalog
from engine.models.backends import BACKENDS
from engine.policies import POLICIES
from engine.rules import RULES
from engine.spec import RunSpec

__all__ = ["RULE_SETTINGS", "Settings", "drafters_for", "settings"]

DEFAULT = RunSpec()
REAL_MODEL = "smollm2-135m"
NO_SIMULATION = (DEFAULT.agreement, DEFAULT.target_call_seconds, DEFAULT.draft_call_seconds)
BOUND: dict[str, Any] = {"bind": "query-params"}

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
    target, embedded = _target()
    prompt, chat = _prompt(target, embedded)
    drafter = _drafter(target, embedded)
    draft_length = st.slider(
        "Draft length",
        *BOUNDS["draft_length"],
        DEFAULT.draft_length,
        key="draft_length",
        **BOUND,
        help="The most tokens that the drafter may guess at a step.",
    )
    length_policy, policy_settings = (DEFAULT.length_policy, {}) if drafter == "none" else _length_policy()
    rule, rule_settings = _rule()
    tree_width, tree_nodes = _tree(rule, drafter)
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
    ngram_max, ngram_match = (
        _ngram() if drafter in ("ngram", "eagle+ngram") else (DEFAULT.ngram_max, DEFAULT.ngram_match)
    )
    suffix = _suffix(target) if drafter.partition(":")[0] in ("suffix", "eagle+suffix") else {}
    exit_layer = _exit_layer() if drafter == "early-exit" else DEFAULT.exit_layer
    backend, exact_rows = (DEFAULT.backend, DEFAULT.exact_rows) if embedded else _backend()
    agreement, target_seconds, draft_seconds = _embedded_pair() if target == "markov" else NO_SIMULATION
    probe = PROBE if st.toggle("Explain every decision", True, key="explain", **BOUND, help=EXPLAIN_HELP) else 0
    logprobs = st.toggle("Log-probabilities", DEFAULT.logprobs, key="logprobs", **BOUND, help=LOGPROBS_HELP)
    spec = RunSpec(
        target=target,
        drafter=drafter,
        rule=rule,
        draft_length=draft_length,
        tree_width=tree_width,
        tree_nodes=tree_nodes,
        length_policy=length_policy,
        **sampling,
        max_tokens=int(max_tokens),
        stop=tuple(stop),
        seed=int(seed),
        prompt=prompt,
        chat=chat,
        ngram_max=ngram_max,
        ngram_match=ngram_match,
        exit_layer=exit_layer,
        agreement=agreement,
        target_call_seconds=target_seconds,
        draft_call_seconds=draft_seconds,
        backend=backend,
        exact_rows=exact_rows,
        probe=probe,
        logprobs=logprobs,
        **suffix,
        **rule_settings,
        **policy_settings,
    )
    return Settings(spec, _pace(), _trouble(spec))


def _fill_from_link() -> None:
    if text := state.take_spec():
        try:
            state.fill(widgets_of(read_spec(text)))
        except DraftscopeError as failure:
            state.notice(f"The settings of the link were not taken. {failure}")
        else:
            st.toast("The sidebar has the settings of the link. Press Run to start.", icon=":material/link:")


def _target() -> tuple[str, bool]:
    """The target's name, and whether it is one of the embedded ones."""
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


def _prompt(target: str, embedded: bool) -> tuple[str, bool]:
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
    return prompt or "", chat


def _drafter(target: str, embedded: bool) -> str:
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


def _length_policy() -> tuple[str, dict[str, Any]]:
    """The policy's name, and the settings that it reads."""
    policy = st.selectbox(
        "Length policy",
        list(POLICIES),
        key="length_policy",
        **BOUND,
        help="How many tokens to guess at each step, up to the draft length. Under a lossless rule no policy changes "
        "the law of the text.",
    )
    st.caption(POLICIES[policy](DEFAULT).guarantee)
    return policy, {
        name: st.slider(
            POLICY_SETTINGS[name][0],
            *BOUNDS[name],
            getattr(DEFAULT, name),
            0.01,
            key=name,
            **BOUND,
            help=POLICY_SETTINGS[name][1],
        )
        for name in policies.PARAMETERS.get(policy, ())
    }


def _rule() -> tuple[str, dict[str, Any]]:
    """The rule's name, and the settings that it reads."""
    rule = st.selectbox(
        "Acceptance rule", list(RULES), key="rule", **BOUND, help="How a drafted token is kept or refused."
    )
    chosen = {
        name: st.slider(
            RULE_SETTINGS[name][0],
            *BOUNDS[name],
            getattr(DEFAULT, name),
            0.01,
            key=name,
            **BOUND,
            help=RULE_SETTINGS[name][1],
        )
        for name in rules.PARAMETERS.get(rule, ())
    }
    about = RULES[rule](replace(DEFAULT, **chosen))
    if about.lossless:
        st.caption(f"Lossless. {about.guarantee}")
    else:
        warning_box(f"Lossy. {about.guarantee}", ":material/warning:")
    return rule, chosen


def _tree(rule: str, drafter: str) -> tuple[int, int]:
    """The shape of a tree, asked for where one can be drafted."""
    if not children_of(RULES[rule](DEFAULT)):
        return DEFAULT.tree_width, DEFAULT.tree_nodes
    if drafter.partition(":")[0] not in TREES:
        st.caption("Only a model drafts trees; this drafter drafts chains, which the rule judges as well.")
        return DEFAULT.tree_width, DEFAULT.tree_nodes
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
    return int(width), int(nodes)


def drafters_for(target: str) -> list[str]:
    """The drafters to choose from for a target; others may be typed."""
    others = [entry.name for entry in catalog.entries() if entry.ready and entry.kind != "embedded"]
    embedded = any(entry.name == target and entry.kind == "embedded" for entry in catalog.entries())
    heads = ["eagle+ngram", "eagle+suffix", "eagle"] if has_shipped_head(target) else []
    first, last = (["model"], []) if embedded else (heads, ["early-exit"])
    names = [*first, "ngram", "suffix", "recycling", *last, "none"]
    return names + [f"model:{name}" for name in ([target] if embedded else others)]


def _ngram() -> tuple[int, Match]:
    with st.expander("Prompt lookup"):
        longest = st.slider("Longest n-gram", *BOUNDS["ngram_max"], DEFAULT.ngram_max, key="ngram_max", **BOUND)
        match = st.selectbox(
            "Match",
            ["recent", "first"],
            key="ngram_match",
            **BOUND,
            help="Which earlier occurrence is copied: the most recent, or the first.",
        )
    return longest, match


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
            **BOUND, help="A draft ends where it, as a whole, is less likely to be kept; judged by counts.",
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


def _exit_layer() -> int:
    layer = st.number_input(
        "Exit layer",
        *ANY,
        DEFAULT.exit_layer,
        key="exit_layer",
        **BOUND,
        help="How many of the target's layers a guess goes through; 0 takes two thirds of them.",
    )
    return int(layer)


def _backend() -> tuple[str, bool]:
    with st.expander("Backend"):
        backend = st.selectbox(
            "Backend",
            list(BACKENDS),
            key="backend",
            **BOUND,
            help="What runs the model: ort (ONNX Runtime, 8 bit) is faster, numpy (32 bit) is the reference. "
            "auto takes ort where it can.",
        )
        exact_rows = st.toggle(
            "Exact rows",
            DEFAULT.exact_rows,
            key="exact_rows",
            **BOUND,
            help="Rows of the target are the same, bit for bit, alone and in a block, so that speculative text "
            "at temperature 0 equals plain text.",
        )
    return str(backend), bool(exact_rows)


def _embedded_pair() -> tuple[float, float, float]:
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
    return agreement, target_ms / 1000, draft_ms / 1000


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
