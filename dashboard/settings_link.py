"""A link that fills the sidebar: a `RunSpec` as JSON in the address, and what it may say.

A link may come from anybody. It is checked in full before any widget is touched: its fields and
types, their ranges, and that it names models of the catalogue alone, so that opening it reads no
file. It starts nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any
from urllib.parse import quote

from engine.build import check
from engine.drafters.tree import MOST_WIDTH
from engine.errors import SettingError
from engine.heads import has_shipped_head
from engine.lengths import MAX_DRAFT_LENGTH
from engine.models import catalog
from engine.models.backends import BACKENDS
from engine.policies import POLICIES
from engine.rules import RULES
from engine.sampling import ARITHMETICS
from engine.spec import RunSpec
from engine.tree import MOST_NODES

__all__ = [
    "ANY",
    "BOUND",
    "BOUNDS",
    "OWN_TEXT",
    "SIDEBAR",
    "address_of",
    "check_bounds",
    "not_taken",
    "read_spec",
    "widgets_of",
]

OWN_TEXT = "My own text"
LONGEST_LINK = 20_000

BOUNDS: dict[str, tuple[Any, Any]] = {
    "draft_length": (0, MAX_DRAFT_LENGTH),
    "confidence_threshold": (0.0, 1.0),
    "entropy_bound": (0.0, 1.0),
    "start_threshold": (0.0, 1.0),
    "tree_width": (1, MOST_WIDTH),
    "tree_nodes": (1, MOST_NODES),
    "acceptance_probability": (0.0, 0.99),
    "lenience": (0.01, 1.0),
    "ensemble_weight": (0.0, 1.0),
    "typical_threshold": (0.0, 1.0),
    "typical_scale": (0.0, 1.0),
    "temperature": (0.0, 2.0),
    "top_k": (0, 100_000),
    "top_p": (0.01, 1.0),
    "min_p": (0.0, 1.0),
    "repetition_penalty": (0.5, 3.0),
    "frequency_penalty": (-2.0, 2.0),
    "presence_penalty": (-2.0, 2.0),
    "max_tokens": (1, 20_000),
    "seed": (0, 2**53 - 1),
    "ngram_max": (1, 8),
    "suffix_factor": (0.0, 8.0),
    "suffix_offset": (-8.0, 8.0),
    "suffix_min_prob": (0.0, 1.0),
    "exit_layer": (0, 200),
    "agreement": (-1.0, 1.0),
    "target_ms": (0, 10_000),
    "draft_ms": (0, 10_000),
}
"""What the sidebar's widgets go from and to."""

BOUND: dict[str, Any] = {"bind": "query-params"}
"""A widget with these stands in the address, so that a refreshed page keeps it."""

ANY = (None, None)
"""No bounds for a field: Streamlit would leave a number beyond them in the field and go on with the one before it."""

OTHERWISE = {"drafter", "stop", "prompt", "probe", "target_call_seconds", "draft_call_seconds"}
"""Settings whose widgets have other keys, or another unit."""

SAME = tuple(field.name for field in fields(RunSpec) if field.name not in OTHERWISE)
"""Settings that a widget of that key holds as they are."""

CHOICES: dict[str, tuple[str, ...]] = {
    "rule": tuple(RULES),
    "length_policy": tuple(POLICIES),
    "ngram_match": ("recent", "first"),
    "suffix_choice": ("frequent", "recent"),
    "backend": BACKENDS,
    "arithmetic": ARITHMETICS,
}
"""What its boxes offer."""

SIDEBAR = (*SAME, "target_ms", "draft_ms", "explain", "stop_at", "drafter", "example_", "prompt_")
"""How the keys of its widgets begin."""


def address_of(spec: RunSpec) -> str:
    """The query of a link to these settings.

    Examples
    --------
    >>> address_of(RunSpec(prompt="a&b"))[:23], address_of(RunSpec(prompt="a&b")).count("&")
    ('?spec=%7B%22schema%22%3', 0)
    """
    return f"?spec={quote(spec.to_json(), safe='', errors='replace')}"


def read_spec(text: str) -> RunSpec:
    """The settings of a link.

    Raises
    ------
    DraftscopeError
        If it is not one that `address_of` makes, or the sidebar cannot show what it says.
    """
    if len(text) > LONGEST_LINK:
        raise SettingError(f"the link is {len(text)} characters long; at most {LONGEST_LINK} are read")
    spec = _spec_of(text)
    check(spec)
    ready = {entry.name for entry in catalog.entries() if entry.ready}
    kind, _, named = spec.drafter.partition(":")
    for role, name in (("target", spec.target), ("drafter", named)):
        if name and name not in ready:
            raise SettingError(
                f"the link's {role} is {name!r}; a link may name models that are here, and no files: "
                f"{', '.join(sorted(ready))}. Get or add the model first"
            )
    if kind.startswith("eagle") and named:
        raise SettingError(f"the link's drafter is {spec.drafter!r}; a link may not name a file")
    _milliseconds(spec)
    check_bounds(spec, whose="the link's ")
    return spec


def _spec_of(text: str) -> RunSpec:
    try:
        if isinstance(json.loads(text), dict):
            return RunSpec.from_json(text)
    except SettingError:
        raise
    except (ValueError, RecursionError):
        pass
    raise SettingError("the link is damaged, so that its settings cannot be read; ask for it again")


def check_bounds(spec: RunSpec, *, whose: str = "") -> None:
    """Refuse what the sidebar does not go to.

    Raises
    ------
    SettingError

    Examples
    --------
    >>> check_bounds(RunSpec(max_tokens=-5))
    Traceback (most recent call last):
    engine.errors.SettingError: max_tokens is -5; the sidebar goes from 1 to 20000
    """
    values = {name: getattr(spec, name) for name in BOUNDS if not name.endswith("_ms")}
    values["target_ms"] = round(1000 * spec.target_call_seconds)
    values["draft_ms"] = round(1000 * spec.draft_call_seconds)
    for name, value in values.items():
        low, high = BOUNDS[name]
        if not low <= value <= high:
            raise SettingError(f"{whose}{name} is {value}; the sidebar goes from {low} to {high}")


def not_taken(address: Mapping[str, str]) -> dict[str, str]:
    """What of an address no widget of the sidebar could have written, by its name, in words.

    Examples
    --------
    >>> not_taken({"seed": "7", "max_tokens": "-5", "ngram_match": "last"})["max_tokens"]
    "max_tokens is '-5'; the sidebar goes from 1 to 20000"
    >>> not_taken({"ngram_match": "last"})
    {'ngram_match': "ngram_match is 'last'; choose recent or first"}
    """
    told = {
        name: f"{name} is {address[name][:40]!r}; the sidebar goes from {low} to {high}"
        for name, (low, high) in BOUNDS.items()
        if name in address and not _within(address[name], low, high)
    }
    for name, choices in {**CHOICES, "target": _targets(address)}.items():
        if name in address and address[name] not in choices:
            *others, last = choices
            words = f"{', '.join(others)} or {last}" if others else last
            told[name] = f"{name} is {address[name][:40]!r}; choose {words}"
    return told


def _targets(address: Mapping[str, str]) -> list[str]:
    """The models that are here, and the path of a file, which may be typed."""
    typed = address.get("target", "")
    ready = sorted(entry.name for entry in catalog.entries() if entry.ready)
    return [typed] if catalog.is_path(typed) else ready


def _within(text: str, low: float, high: float) -> bool:
    try:
        value = float(text)
    except ValueError:
        return False
    return low <= value <= high and (isinstance(low, float) or value.is_integer())


def widgets_of(spec: RunSpec) -> dict[str, Any]:
    """The value of every widget of the sidebar, by its key, for settings that `read_spec` gave."""
    kinds = {entry.name: entry.kind for entry in catalog.entries()}
    embedded = kinds[spec.target] == "embedded"
    drafter = "drafter_embedded" if embedded else "drafter_head" if has_shipped_head(spec.target) else "drafter"
    prompts = spec.target if embedded else "words"
    return {
        **{name: getattr(spec, name) for name in SAME},
        **_milliseconds(spec),
        drafter: spec.drafter,
        "explain": spec.probe > 0,
        "stop_at": list(spec.stop),
        f"example_{prompts}": OWN_TEXT,
        f"prompt_{prompts}_{OWN_TEXT}": spec.prompt,
    }


def _milliseconds(spec: RunSpec) -> dict[str, int]:
    milliseconds = {}
    for name, seconds in (("target_ms", spec.target_call_seconds), ("draft_ms", spec.draft_call_seconds)):
        whole = 0 <= seconds <= 1e6 and abs(seconds * 1000 - round(seconds * 1000)) < 1e-6
        if not whole:
            raise SettingError(
                f"the link's {name[:-3]}_call_seconds is {seconds}; the sidebar takes whole milliseconds"
            )
        milliseconds[name] = round(seconds * 1000)
    return milliseconds
