"""What is measured, and in which order: every configuration on every prompt and repeat, interleaved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from engine.bench.prompts import Prompt
from engine.build import build
from engine.errors import DraftscopeError, SettingError
from engine.lengths import MAX_DRAFT_LENGTH
from engine.spec import RunSpec

__all__ = [
    "OWN",
    "Configuration",
    "Plan",
    "Turn",
    "configurations_of",
    "optional_settings",
    "plain_of",
    "usable_drafters",
]

OWN = "draftscope"
"""The engine of the configurations that are not a rival's."""

USUAL = ("ngram", "model", "eagle", "eagle+ngram")
"""The kinds of drafter that are measured where none is named."""

OPTIONAL_SETTINGS = ("backend", "exact_rows", "length_policy")
"""Settings of a run that are passed through where `RunSpec` has them."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """One way to decode, to be compared with the plain way of the same engine.

    `changes` are settings of a `RunSpec`, by name, in which it differs from all others besides.

    Examples
    --------
    >>> Configuration(drafter="model", draft_length=4, changes=(("rule", "naive"),)).name
    'model 4, rule naive'
    """

    engine: str = OWN
    drafter: str = "none"
    draft_length: int = 0
    changes: tuple[tuple[str, Any], ...] = ()

    @property
    def plain(self) -> bool:
        """Whether nothing is drafted."""
        return self.drafter == "none"

    @property
    def name(self) -> str:
        """How reports call it, such as "plain", "ngram 4" or "llama.cpp plain"."""
        way = "plain" if self.plain else f"{self.drafter} {self.draft_length}"
        way = ", ".join([way, *(f"{setting.replace('_', ' ')} {value}" for setting, value in self.changes)])
        return way if self.engine == OWN else f"{self.engine} {way}"

    def spec(self, base: RunSpec, prompt: str) -> RunSpec:
        """The run that this configuration makes of a prompt; all else is `base`'s."""
        return replace(base, drafter=self.drafter, draft_length=self.draft_length, prompt=prompt, **dict(self.changes))


@dataclass(frozen=True, slots=True)
class Turn:
    """One run to make."""

    repeat: int
    prompt: Prompt
    configuration: Configuration


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that is to be measured.

    Attributes
    ----------
    configurations : tuple of Configuration
        The first is the plain one of Draftscope.
    prompts : tuple of Prompt
    repeats : int
        At least 1.
    seed : int
        Decides the order.

    Examples
    --------
    >>> plan = Plan(configurations_of(["ngram"], [2, 4]), (Prompt("1", "Hello"),), repeats=1, seed=0)
    >>> sorted(turn.configuration.name for turn in plan.turns())
    ['ngram 2', 'ngram 4', 'plain']
    """

    configurations: tuple[Configuration, ...]
    prompts: tuple[Prompt, ...]
    repeats: int
    seed: int

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise SettingError(f"there are {self.repeats} repeats; at least 1 is needed")

    @property
    def n_turns(self) -> int:
        """How many runs there are."""
        return len(self.configurations) * len(self.prompts) * self.repeats

    def turns(self) -> Iterator[Turn]:
        """All runs in order: repeat by repeat, prompt by prompt, the configurations shuffled anew each time."""
        generator = np.random.default_rng(self.seed)
        for repeat in range(self.repeats):
            for prompt in self.prompts:
                for place in generator.permutation(len(self.configurations)):
                    yield Turn(repeat, prompt, self.configurations[place])


def configurations_of(drafters: Iterable[str], lengths: Sequence[int]) -> tuple[Configuration, ...]:
    """Plain, and every drafter at every draft length.

    Raises
    ------
    SettingError
        If a draft length is not a whole number from 1 to 32.
    """
    for length in lengths:
        if not 1 <= length <= MAX_DRAFT_LENGTH:
            raise SettingError(f"the draft length is {length}; it must be from 1 to {MAX_DRAFT_LENGTH} here")
    return (
        Configuration(),
        *(Configuration(drafter=drafter, draft_length=length) for drafter in drafters for length in lengths),
    )


def plain_of(configuration: Configuration) -> Configuration:
    """The plain way of the same engine: what a configuration is compared with."""
    return Configuration(engine=configuration.engine)


def usable_drafters(base: RunSpec) -> tuple[list[str], dict[str, str]]:
    """The usual kinds of drafter that the target of `base` can be run with, and why not for the others.

    A kind that only stands for another one, as "model" may do, is left out for that other one.
    """
    usable: dict[str, str] = {}  # the drafter's own name to the kind
    skipped: dict[str, str] = {}
    for kind in USUAL:
        try:
            name = build(replace(base, drafter=kind)).drafter.name
        except DraftscopeError as failure:
            skipped[kind] = str(failure)
            continue
        if name in usable:
            skipped[usable[name]] = f"for this target it is the same as {kind}"
        usable[name] = kind
    return [kind for kind in USUAL if kind in usable.values()], skipped


def optional_settings() -> dict[str, str | bool]:
    """The settings of `OPTIONAL_SETTINGS` that `RunSpec` has, with their defaults."""
    return {field.name: field.default for field in fields(RunSpec) if field.name in OPTIONAL_SETTINGS}  # type: ignore[misc]  # their defaults are plain values
