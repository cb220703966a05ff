"""Which configurations are compared: from run specs, or from words such as "eagle+ngram:3,rule=naive"."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import fields, replace
from typing import Any

from engine.bench.plan import Configuration
from engine.errors import SettingError
from engine.spec import RunSpec

__all__ = ["MOST_CONFIGURATIONS", "OF_A_CONFIGURATION", "configurations_from", "spec_from_words"]

MOST_CONFIGURATIONS = 4
"""Configurations beside the plain baseline."""

TRUTHS = {"true": True, "false": False}

OF_A_CONFIGURATION = (
    "rule",
    "tree_width",
    "tree_nodes",
    "length_policy",
    "confidence_threshold",
    "entropy_bound",
    "start_threshold",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repetition_penalty",
    "frequency_penalty",
    "presence_penalty",
    "arithmetic",
    "ngram_max",
    "ngram_match",
    "suffix_factor",
    "suffix_offset",
    "suffix_min_prob",
    "suffix_choice",
    "suffix_outputs",
    "exit_layer",
    "acceptance_probability",
    "lenience",
    "ensemble_weight",
    "typical_threshold",
    "typical_scale",
    "agreement",
)
"""Settings in which configurations may differ, besides drafter and draft length."""


def configurations_from(specs: Sequence[RunSpec], *, most: int = MOST_CONFIGURATIONS) -> tuple[Configuration, ...]:
    """The plain baseline, with the settings of the first spec, and a configuration for every spec that drafts.

    Parameters
    ----------
    specs : sequence of RunSpec
        One to `most`. Target, length, seed and all else that all runs share is the first one's.
    most : int, default 4

    Raises
    ------
    SettingError
        If there is none, there are too many, two are the same, or they differ in what must be shared.

    Examples
    --------
    >>> specs = [RunSpec(drafter="model"), RunSpec(drafter="ngram", temperature=0.5)]
    >>> [way.name for way in configurations_from(specs)]
    ['plain', 'model 4', 'ngram 4, temperature 0.5']
    >>> specs = [RunSpec(length_policy=policy) for policy in ("fixed", "cost-aware")]
    >>> [way.name for way in configurations_from(specs)]
    ['plain', 'model 4, length policy fixed', 'model 4, length policy cost-aware']
    """
    if not 1 <= len(specs) <= most:
        raise SettingError(f"there are {len(specs)} configurations; compare 1 to {most}, and plain decoding is added")
    base = specs[0]
    for field in fields(RunSpec):
        shared = field.name not in (*OF_A_CONFIGURATION, "drafter", "draft_length", "prompt")
        if shared and any(getattr(spec, field.name) != getattr(base, field.name) for spec in specs):
            raise SettingError(f"the configurations differ in {field.name}; a comparison needs the same in all")
    racing = len({spec.length_policy for spec in specs if spec.drafter != "none"}) > 1
    named = {"length_policy"} if racing else set()  # where policies are compared each is named
    ways = [_configuration(spec, base, named) for spec in specs]
    for place, way in enumerate(ways):
        if way in ways[:place]:
            raise SettingError(f"the configuration {way.name} is there twice; change one of them")
    return (Configuration(), *(way for way in ways if way != Configuration()))


def spec_from_words(words: str, base: RunSpec) -> RunSpec:
    """A spec from "DRAFTER[:DRAFT LENGTH][,SETTING=VALUE]...", all else as in `base`.

    Parameters
    ----------
    words : str
        Such as "ngram:4", "model:smollm2-135m:2" or "model:4,rule=naive,temperature=0.5".
    base : RunSpec

    Raises
    ------
    SettingError
        If a setting is unknown or its value is not of its type, or nothing would be drafted.

    Examples
    --------
    >>> spec = spec_from_words("eagle+ngram:3,temperature=0.5", RunSpec())
    >>> spec.drafter, spec.draft_length, spec.temperature
    ('eagle+ngram', 3, 0.5)
    """
    drafter, *settings = words.split(",")
    name, colon, length = drafter.rpartition(":")
    changes: dict[str, Any] = {"drafter": drafter}
    if colon and length.removeprefix("-").isdecimal():
        changes |= {"drafter": name, "draft_length": int(length)}
    if changes["drafter"] == "none":
        raise SettingError(f"{words!r} is plain decoding, which is always compared with; name a drafter that guesses")
    types: dict[str, Any] = {field.name: type(field.default) for field in fields(RunSpec)}
    for setting in settings:
        key, _, value = setting.partition("=")
        key = key.strip().replace("-", "_")
        if key not in OF_A_CONFIGURATION:
            raise SettingError(
                f"{setting.strip()!r} in {words!r} is no setting of a configuration; "
                f"write NAME=VALUE with one of {', '.join(OF_A_CONFIGURATION)}"
            )
        try:
            changes[key] = TRUTHS[value.strip().lower()] if types[key] is bool else types[key](value.strip())
        except (ValueError, KeyError):
            expected = "true or false" if types[key] is bool else "a number"
            raise SettingError(f"{key} is {value.strip()!r} in {words!r}; {expected} is expected") from None
    return replace(base, **changes)


def _configuration(spec: RunSpec, base: RunSpec, named: Collection[str]) -> Configuration:
    named = () if spec.drafter == "none" else named
    changes = tuple(
        (name, getattr(spec, name))
        for name in OF_A_CONFIGURATION
        if name in named or getattr(spec, name) != getattr(base, name)
    )
    length = 0 if spec.drafter == "none" else spec.draft_length
    return Configuration(drafter=spec.drafter, draft_length=length, changes=changes)
