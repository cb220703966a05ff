"""A run described as plain data; `engine.build` makes it.

A `RunSpec` is what passes between command line, page, store and engine, what a shared link and an
exported run carry.  Its defaults are the defaults of Draftscope.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Self, cast

import numpy as np

from engine.acceptance import ExactRejection
from engine.drafters.ngram import Match
from engine.drafters.suffix_settings import Choice, Speculation
from engine.errors import SettingError
from engine.lengths import Confident, FixedLength
from engine.sampling import Arithmetic, Sampling

__all__ = ["RunSpec", "versions"]

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class RunSpec:
    """Everything that decides what a run emits.

    Attributes
    ----------
    target : str
        A name of the catalogue, or the path of a GGUF file.
    drafter : str
        "none", "ngram", "model" (the target's shipped partner), "model:NAME", "eagle" (the
        target's shipped draft head), "eagle:PATH", "eagle+ngram" (prompt lookup where the last
        tokens occurred before, else the head), "eagle+ngram:PATH", "suffix", "eagle+suffix",
        "eagle+suffix:PATH", "recycling" or "early-exit"; see `engine.drafter_kinds`.
    rule : str
        "exact", "block", "sample-match", "gumbel", "tree-independent", "tree-distinct", "tree-match" (lossless),
        "lenience", "ensemble", "typical" or "naive" (lossy); see `engine.rules`.
    draft_length : int
        Tokens to draft at a step, 0 to 32; the most, whatever the length policy.
    tree_width : int
        Most guesses for the same place, 1 (a chain) to 8, where the rule takes trees and a model drafts; all else
        drafts chains. The draft length is then the depth of the tree.
    tree_nodes : int
        Most tokens of a tree, 1 to 32.
    length_policy : str
        How many of them: a name of `engine.policies.POLICIES`. "confident": a draft head, the
        lookup beside it and suffix decoding draft fewer where they are not sure. "fixed": always as many.
    confidence_threshold, entropy_bound, start_threshold : float
        The parameter of "confidence-threshold", "entropy-bound" and "draft-and-verify", each 0 to 1.
    temperature, top_k, top_p, min_p, repetition_penalty, frequency_penalty, presence_penalty, arithmetic
        See `engine.sampling.Sampling`.
    max_tokens : int
        Most tokens to emit.
    stop : tuple of str
        Texts that end the run.
    seed : int
        Key of all random numbers.
    prompt : str
        The text to continue or, with a chat template, what the user says.
    chat : bool
        Put the prompt into the model's chat template, if it has one.
    ngram_max, ngram_match
        Longest n-gram and which match wins: see `PromptLookup` and, in front of a head, `LookupFirst`.
    suffix_factor, suffix_offset, suffix_min_prob
        How far suffix decoding goes: see `engine.drafters.suffix_settings.Speculation`.
    suffix_choice : str
        Which continuation it takes: "frequent" or "recent".
    suffix_outputs : bool
        Whether it also looks at what earlier runs of the process emitted, and remembers this one.
        What is drafted, and so what is drawn at a temperature above 0, then depends on those runs.
    exit_layer : int
        Layers that an early exit goes through; 0 takes two thirds of them.
    acceptance_probability : float
        The naive rule's parameter.
    lenience : float
        Of the rule lenience, 0.000001 to 1: 1 is the exact rule.
    ensemble_weight : float
        Of the rule ensemble: the target's share of the mixture, 0 to 1, and 1 is the exact rule.
    typical_threshold, typical_scale : float
        Of the rule typical, 0 to 1: what it asks for at most, and how that falls where the target is open.
    agreement : float
        How far the embedded draft agrees with its target, -1 to 1.
    target_call_seconds, draft_call_seconds : float
        Simulated cost of a call of the embedded pair; 0 and 0 mean real time.
    backend : str
        What runs GGUF files: "auto", "numba", "ort" or "numpy"; see `engine.models.catalog.load`.
    exact_rows : bool
        Whether a row is to be the same, bit for bit, alone and in a block.
    probe : int
        Alternatives to keep of every step as its evidence, 0 (none) to 32; decides nothing.
    logprobs : bool
        Note the target's own log-probability of every emitted token; decides nothing.

    Examples
    --------
    >>> spec = RunSpec(prompt="The draft")
    >>> RunSpec.from_json(spec.to_json()) == spec
    True
    """

    target: str = "markov"
    drafter: str = "model"
    rule: str = ExactRejection.name
    draft_length: int = 4
    tree_width: int = 4
    tree_nodes: int = 16
    length_policy: str = Confident.name
    confidence_threshold: float = 0.4
    entropy_bound: float = 0.4
    start_threshold: float = 0.6
    temperature: float = Sampling().temperature
    top_k: int = Sampling().top_k
    top_p: float = Sampling().top_p
    min_p: float = Sampling().min_p
    repetition_penalty: float = Sampling().repetition_penalty
    frequency_penalty: float = Sampling().frequency_penalty
    presence_penalty: float = Sampling().presence_penalty
    arithmetic: str = Sampling().arithmetic
    max_tokens: int = 128
    stop: tuple[str, ...] = ()
    seed: int = 0
    prompt: str = ""
    chat: bool = True
    ngram_max: int = 3
    ngram_match: Match = "recent"
    suffix_factor: float = Speculation().factor
    suffix_offset: float = Speculation().offset
    suffix_min_prob: float = Speculation().min_prob
    suffix_choice: Choice = "frequent"
    suffix_outputs: bool = False
    exit_layer: int = 0
    acceptance_probability: float = 0.1
    lenience: float = 0.5
    ensemble_weight: float = 0.8
    typical_threshold: float = 0.09
    typical_scale: float = 0.3
    agreement: float = 0.0
    target_call_seconds: float = 0.0
    draft_call_seconds: float = 0.0
    backend: str = "auto"
    exact_rows: bool = True
    probe: int = 0
    logprobs: bool = False

    @property
    def sampling(self) -> Sampling:
        """How logits become a law.

        Raises
        ------
        SettingError
            If a value is out of range.
        """
        return Sampling(
            self.temperature,
            self.top_k,
            self.top_p,
            self.min_p,
            self.repetition_penalty,
            self.frequency_penalty,
            self.presence_penalty,
            cast(Arithmetic, self.arithmetic),
        )

    def to_json(self) -> str:
        """The spec as one JSON object."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The spec that `to_json` wrote.

        Raises
        ------
        SettingError
            If the text is no such object, comes from a newer schema, or has a field that is
            unknown or of the wrong type.
        """
        try:
            data = json.loads(text)
        except ValueError as failure:
            raise SettingError(f"a run spec must be a JSON object; this is not JSON: {failure}") from None
        if not isinstance(data, dict):
            raise SettingError(f"a run spec must be a JSON object; this is {text.strip()[:40]}")
        data.setdefault("length_policy", FixedLength.name)  # what a spec meant before there was a choice
        schema = data.pop("schema", SCHEMA)
        if schema != SCHEMA:
            raise SettingError(f"the run spec has schema {schema}; this version of Draftscope reads schema {SCHEMA}")
        return cls(**_checked_fields(cls, data))


KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", tuple: "a list of texts"}
"""What a field must be, in words for those who never saw Python."""


def _checked_fields(cls: type[RunSpec], data: Mapping[str, Any]) -> dict[str, Any]:
    defaults = {field.name: field.default for field in fields(cls)}
    checked: dict[str, Any] = {}
    for name, value in data.items():
        if name not in defaults:
            raise SettingError(f"a run spec has no field {name!r}; it has {', '.join(defaults)}")
        expected = type(defaults[name])
        if expected is tuple and isinstance(value, list) and all(isinstance(item, str) for item in value):
            value = tuple(value)
        if expected is float and type(value) is int:
            with suppress(OverflowError):  # a whole number that no float holds is told as it stands
                value = float(value)
        if type(value) is not expected:
            given = json.dumps(value, ensure_ascii=False)[:80]
            raise SettingError(f"the run spec's {name} is {given}; it must be {KINDS[expected]}")
        checked[name] = value
    return checked


def versions() -> dict[str, str]:
    """The versions that a run was made with: Draftscope, Python, numpy."""
    try:
        own = version("draftscope")
    except PackageNotFoundError:
        own = "not installed"
    return {"draftscope": own, "python": platform.python_version(), "numpy": np.__version__}
