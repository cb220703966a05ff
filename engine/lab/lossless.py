"""Is a rule lossless? The law of one step on a small pair, as figures, tables and a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from engine.figure_text import counted, fixed
from engine.lab.enumerate import Proposal, StepLaw, enumerate_step
from engine.lab.small_pair import SmallPair
from engine.rules import RULES
from engine.spec import RunSpec

__all__ = ["SAME", "Figure", "Lossless", "SmallTable", "lossless"]

SAME = 1e-12
"""Laws that differ by less are the same: what is left is rounding."""

MOST_SEQUENCES = 8


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with what it is called and what it means."""

    name: str
    title: str
    value: float
    detail: str

    @property
    def text(self) -> str:
        """The number with four digits behind the point."""
        return fixed(self.value, 4)


@dataclass(frozen=True, slots=True)
class SmallTable:
    """A few rows of words and numbers."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Lossless:
    """What a rule makes of a pair.

    Attributes
    ----------
    step : StepLaw
    same : bool
        Whether all the tokens of the step have the target's law.
    sentence : str
    figures : tuple of Figure
        "distance_first", "distance_all", "expected_accepted" and "tokens_per_step".
    tables : tuple of SmallTable
        Acceptance by position, distance by number of tokens, and the rows of tokens that are furthest off.
    """

    step: StepLaw
    same: bool
    sentence: str
    figures: tuple[Figure, ...]
    tables: tuple[SmallTable, ...]

    @property
    def first_off(self) -> tuple[bool, ...]:
        """For each token, whether its probability to come first is not the target's."""
        output, target = self.step.beginning(1)
        return tuple(bool(off) for off in np.abs(output - target) > SAME)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data."""
        output, target = self.step.beginning(1)
        return {
            "schema": 1,
            "kind": "draftscope lossless",
            "same": self.same,
            "sentence": self.sentence,
            **{figure.name: figure.value for figure in self.figures},
            "kept": list(self.step.kept),
            "survival": list(self.step.survival),
            "conditional": list(self.step.conditional),
            "first_output": output.tolist(),
            "first_target": target.tolist(),
            "output": self.step.output.tolist(),
            "target": self.step.target.tolist(),
        }


def lossless(spec: RunSpec, pair: SmallPair, *, draft_length: int = 1, proposal: Proposal | None = None) -> Lossless:
    """Enumerate one step of a rule.

    Parameters
    ----------
    spec : RunSpec
        Its rule, and the rule's parameters; nothing else of it matters.
    pair : SmallPair
    draft_length : int, default 1
    proposal : optional
        See `enumerate_step`.

    Raises
    ------
    DraftscopeError
        If a parameter cannot be used, or the rule cannot judge such a draft.

    Examples
    --------
    >>> pair = SmallPair((0.5, 0.3, 0.2), (0.6, 0.3, 0.1))
    >>> lossless(RunSpec(), pair).same
    True
    >>> found = lossless(RunSpec(), pair, proposal="argmax, softmax handed over")
    >>> found.same, round(found.figures[0].value, 4)
    (False, 0.3333)
    """
    rule = RULES[spec.rule](spec)
    step = enumerate_step(rule, pair.target_row, pair.draft_row, draft_length=draft_length, proposal=proposal)
    n_tokens = draft_length + 1
    same = step.distance(n_tokens) <= SAME
    return Lossless(step, same, _sentence(step, same, lossless=rule.lossless), _figures(step), _tables(step, pair))


def _figures(step: StepLaw) -> tuple[Figure, ...]:
    n_tokens = step.draft_length + 1
    return (
        Figure("distance_first", "Distance, first token", _clean(step.distance(1)),
               "total variation; 0 is the target's law"),
        Figure("distance_all", f"Distance, {counted(n_tokens, 'token')}", _clean(step.distance(n_tokens)),
               "of all tokens that a step can emit"),
        Figure("expected_accepted", "Accepted a step", step.expected_accepted,
               f"expected, of {step.draft_length} drafted"),
        Figure("tokens_per_step", "Tokens per step", step.expected_accepted + 1, "expected: one is the target's own"),
    )  # fmt: skip


def _tables(step: StepLaw, pair: SmallPair) -> tuple[SmallTable, ...]:
    places = zip(range(1, step.draft_length + 1), step.survival, step.conditional, strict=True)
    by_position = SmallTable(
        "Acceptance by position",
        ("position", "kept, with all before", "kept, if reached"),
        tuple((str(place), fixed(survival, 4), fixed(conditional, 4)) for place, survival, conditional in places),
    )
    lengths = range(1, step.draft_length + 2)
    by_length = SmallTable(
        "Distance of the first n tokens",
        ("n", "total variation"),
        tuple((str(n), fixed(_clean(step.distance(n)), 4)) for n in lengths),
    )
    return (by_position, by_length, _furthest(step, pair))


def _furthest(step: StepLaw, pair: SmallPair) -> SmallTable:
    sequences = list(product(range(len(pair.names)), repeat=step.draft_length + 1))
    off = np.abs(step.output - step.target)
    order = sorted(sequences, key=lambda tokens: (-round(float(off[tokens]), 12), -step.target[tokens], tokens))
    return SmallTable(
        "Furthest off",
        ("tokens", "comes out", "target"),
        tuple(
            (
                " ".join(pair.names[token] for token in tokens),
                fixed(step.output[tokens], 4),
                fixed(step.target[tokens], 4),
            )
            for tokens in order[:MOST_SEQUENCES]
            if off[tokens] > SAME
        ),
    )


def _sentence(step: StepLaw, same: bool, *, lossless: bool) -> str:
    n_tokens = step.draft_length + 1
    if same and lossless:
        return f"Lossless: what comes out has exactly the target's law, over {counted(n_tokens, 'token')}."
    if same:
        return (
            "Here what comes out has the target's law. The rule does not promise that: with other laws it has another."
        )
    words = (
        f"Not the target's law: the distance is {fixed(step.distance(n_tokens), 4)} over {counted(n_tokens, 'token')}"
    )
    if step.distance(1) > SAME:
        words += f", {fixed(step.distance(1), 4)} for the first"
    if lossless:
        words += ". The rule would be lossless, but it is told another law than the one that the draft was made by"
    return f"{words}."


def _clean(distance: float) -> float:
    """The distance without rounding."""
    return distance if distance > SAME else 0.0
