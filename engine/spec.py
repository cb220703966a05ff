"""A run described as plain data, and built from it.

A `RunSpec` is what passes between command line, page, store and engine, what a shared link and an
exported run carry.  Its defaults are the defaults of Draftscope.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Self

import numpy as np

from engine.acceptance import AcceptanceRule, ExactRejection, NaiveThreshold
from engine.acceptance.naive import NO_LOGITS
from engine.decode import decode
from engine.drafters import Drafter, ModelDrafter, NoDraft, PromptLookup
from engine.drafters.confidence import ALWAYS_SURE, Confidence
from engine.drafters.ngram import Match
from engine.errors import PromptError, SettingError
from engine.heads import eagle, eagle_and_lookup, has_shipped_head
from engine.lengths import FixedLength
from engine.models import catalog
from engine.models.backends import check_backend
from engine.models.base import LoadedModel, Model, Progress
from engine.models.vocabulary import check_vocabulary
from engine.probe import check_probe
from engine.sampling import Noise, Sampling
from engine.stopping import Cancelled, never
from engine.values import Event

__all__ = ["DRAFTERS", "LENGTH_POLICIES", "RULES", "BuiltRun", "RunSpec", "build", "check", "versions"]

SCHEMA = 1

DRAFTERS = ("none", "ngram", "model", "eagle", "eagle+ngram")
"""The kinds of drafter; `model:NAME` names a model, `eagle:PATH` a draft head of one's own."""

NAMED = ("model", "eagle", "eagle+ngram")
"""The kinds that take a name or a path behind a colon."""

LENGTH_POLICIES: dict[str, Confidence] = {"confident": Confidence(), "fixed": ALWAYS_SURE}
"""How far a draft head, and the lookup beside it, go: as far as they are sure, or to the draft length."""


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
        tokens occurred before, else the head) or "eagle+ngram:PATH".
    rule : str
        "exact" or "naive".
    draft_length : int
        Tokens to draft at a step, 0 to 32.
    length_policy : str
        "confident": a draft head, and the lookup beside it, draft fewer where they are not sure.
        "fixed": always as many, which is what the other drafters do in any case.
    temperature, top_k, top_p
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
        Longest n-gram and which match wins: see `PromptLookup`.
    acceptance_probability : float
        The naive rule's parameter.
    agreement : float
        How far the embedded draft agrees with its target, -1 to 1.
    target_call_seconds, draft_call_seconds : float
        Simulated cost of a call of the embedded pair; 0 and 0 mean real time.
    backend : str
        What runs GGUF files: "auto", "numpy" or "ort"; see `engine.models.catalog.load`.
    exact_rows : bool
        Whether a row is to be the same, bit for bit, alone and in a block.
    probe : int
        Alternatives to keep of every step as its evidence, 0 (none) to 32; decides nothing.

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
    length_policy: str = "confident"
    temperature: float = Sampling().temperature
    top_k: int = Sampling().top_k
    top_p: float = Sampling().top_p
    max_tokens: int = 128
    stop: tuple[str, ...] = ()
    seed: int = 0
    prompt: str = ""
    chat: bool = True
    ngram_max: int = 3
    ngram_match: Match = "recent"
    acceptance_probability: float = 0.1
    agreement: float = 0.0
    target_call_seconds: float = 0.0
    draft_call_seconds: float = 0.0
    backend: str = "auto"
    exact_rows: bool = True
    probe: int = 0

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
            raise SettingError(f"a run spec must be a JSON object; this is a {type(data).__name__}")
        data.setdefault("length_policy", "fixed")  # what a spec meant before there was a choice
        schema = data.pop("schema", SCHEMA)
        if schema != SCHEMA:
            raise SettingError(f"the run spec has schema {schema}; this version of Draftscope reads schema {SCHEMA}")
        return cls(**_checked_fields(cls, data))


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
            value = float(value)
        if type(value) is not expected:
            raise SettingError(f"the run spec's {name} is {value!r}; expected {expected.__name__}")
        checked[name] = value
    return checked


def versions() -> dict[str, str]:
    """The versions that a run was made with: Draftscope, Python, numpy."""
    try:
        own = version("draftscope")
    except PackageNotFoundError:
        own = "not installed"
    return {"draftscope": own, "python": platform.python_version(), "numpy": np.__version__}


@dataclass(frozen=True, slots=True)
class BuiltRun:
    """A spec with its parts made and its prompt encoded, ready to decode once."""

    spec: RunSpec
    loaded: LoadedModel
    drafter: Drafter
    rule: AcceptanceRule
    lengths: FixedLength
    sampling: Sampling
    prompt: tuple[int, ...]

    def events(self, cancelled: Cancelled = never) -> Iterator[Event]:
        """Decode; see `engine.decode.decode`."""
        timing = {} if self.loaded.clock is None else {"clock": self.loaded.clock}
        return decode(
            self.loaded.model,
            self.drafter,
            self.prompt,
            rule=self.rule,
            lengths=self.lengths,
            sampling=self.sampling,
            max_tokens=self.spec.max_tokens,
            stop=self.spec.stop,
            end_tokens=self.loaded.tokenizer.end_tokens,
            tokenizer=self.loaded.tokenizer,
            seed=self.spec.seed,
            probe=self.spec.probe,
            cancelled=cancelled,
            **timing,
        )


RULES: dict[str, Callable[[RunSpec], AcceptanceRule]] = {
    ExactRejection.name: lambda spec: ExactRejection(),
    NaiveThreshold.name: lambda spec: NaiveThreshold(spec.acceptance_probability),
}
"""The acceptance rules by name, each made from the spec that asks for it."""


def build(spec: RunSpec, progress: Progress | None = None) -> BuiltRun:
    """Make the parts that a spec names; everything that can be checked without the model is checked before it.

    Parameters
    ----------
    spec : RunSpec
    progress : callable, optional
        Told (parts done, parts in all) while a model is compiled, which happens once.

    Raises
    ------
    DraftscopeError
        If a name is unknown, a value out of range, a file unusable, the prompt empty, or the
        draft's tokens are not the target's.

    Examples
    --------
    >>> from engine.metrics import measure
    >>> measure(build(RunSpec(prompt="The draft", max_tokens=5)).events()).tokens_generated
    5
    """
    check(spec)
    sampling = Sampling(spec.temperature, spec.top_k, spec.top_p)
    lengths = FixedLength(spec.draft_length)
    lookup = PromptLookup(spec.ngram_max, match=spec.ngram_match)
    confidence = LENGTH_POLICIES[spec.length_policy]
    kind, _, draft_name = spec.drafter.partition(":")
    rule = RULES[spec.rule](spec)
    loaded = _load(spec, spec.target, progress)
    tokenizer = loaded.tokenizer
    prompt = tokenizer.chat(spec.prompt) if spec.chat and tokenizer.has_chat_template else tokenizer.encode(spec.prompt)
    drafter: Drafter
    if kind == "none":
        drafter = NoDraft()
    elif kind == "ngram":
        drafter = lookup
    elif kind == "eagle+ngram":
        drafter = eagle_and_lookup(spec.target, loaded.model, draft_name, spec.ngram_max, spec.ngram_match, confidence)
    elif kind == "eagle" or (not draft_name and loaded.partner is None and has_shipped_head(spec.target)):
        drafter = eagle(spec.target, loaded.model, draft_name, confidence)
    else:
        drafter = ModelDrafter(_draft_model(spec, loaded, draft_name, progress), loaded.model.vocab_size)
    return BuiltRun(spec, loaded, drafter, rule, lengths, sampling, tuple(prompt))


def check(spec: RunSpec) -> None:
    """Refuse what can be refused without loading a model.

    Raises
    ------
    SettingError, PromptError
        If a name is unknown, a value out of range, or the prompt cannot be used.
    """
    Sampling(spec.temperature, spec.top_k, spec.top_p)
    FixedLength(spec.draft_length)
    PromptLookup(spec.ngram_max, match=spec.ngram_match)
    Noise(spec.seed)
    check_backend(spec.backend)
    check_probe(spec.probe)
    NaiveThreshold(spec.acceptance_probability)
    if spec.length_policy not in LENGTH_POLICIES:
        raise SettingError(f"the length policy is {spec.length_policy!r}; choose {' or '.join(LENGTH_POLICIES)}")
    if spec.rule not in RULES:
        raise SettingError(f"the rule is {spec.rule!r}; choose {' or '.join(RULES)}")
    if spec.max_tokens < 1:
        raise SettingError(f"max_tokens is {spec.max_tokens}; it must be at least 1")
    if "" in spec.stop:
        raise SettingError("a stop string is empty; give at least one character")
    if any("\ud800" <= character <= "\udfff" for character in spec.prompt):
        raise PromptError("the prompt has bytes that are no valid UTF-8; give it as UTF-8 text")
    if not spec.prompt.strip():
        raise PromptError("the prompt is empty; give some text to continue from")
    kind, _, draft_name = spec.drafter.partition(":")
    if kind not in DRAFTERS or spec.drafter.endswith(":") or (draft_name and kind not in NAMED):
        raise SettingError(
            f"the drafter is {spec.drafter!r}; choose {', '.join(DRAFTERS)}, model:NAME, eagle:PATH or eagle+ngram:PATH"
        )
    if kind in ("ngram", "eagle+ngram") and spec.rule == NaiveThreshold.name:
        raise SettingError(NO_LOGITS)


def _load(spec: RunSpec, name: str, progress: Progress | None) -> LoadedModel:
    return catalog.load(
        name,
        agreement=spec.agreement,
        target_call_seconds=spec.target_call_seconds,
        draft_call_seconds=spec.draft_call_seconds,
        backend=spec.backend,
        exact_rows=spec.exact_rows,
        progress=progress,
    )


def _draft_model(spec: RunSpec, loaded: LoadedModel, name: str, progress: Progress | None) -> Model:
    if not name:
        if loaded.partner is None:
            raise SettingError(
                f"{loaded.model.name} has no draft model that ships with it; "
                "name one with model:NAME, or choose ngram or none"
            )
        return loaded.partner
    if name == spec.target:
        return loaded.model.fork()
    draft = _load(spec, name, progress)
    check_vocabulary(loaded.tokenizer, draft.tokenizer)
    return draft.model
