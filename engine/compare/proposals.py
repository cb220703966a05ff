"""What a drafter's proposal depends on, so that each way to propose is timed with its own settings, and once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any

from engine.rules import RULES
from engine.sampling import Sampling
from engine.spec import RunSpec

__all__ = ["Proposal", "proposal_of", "proposals_of", "timed_together"]

LOOKUP = ("ngram_max", "ngram_match")
SAMPLING = tuple(field.name for field in fields(RunSpec) if field.name in {of.name for of in fields(Sampling)})
"""The settings that make a law of logits."""

SUFFIX = ("suffix_factor", "suffix_offset", "suffix_min_prob", "suffix_choice", "suffix_outputs")
DEPENDS_ON = {
    "ngram": LOOKUP,
    "suffix": SUFFIX,
    "early-exit": (*SAMPLING, "exit_layer"),
    "model": (*SAMPLING, "agreement"),
    "eagle": SAMPLING,
    "eagle+ngram": (*SAMPLING, *LOOKUP),
    "eagle+suffix": (*SAMPLING, *SUFFIX),
}
"""By the kind of drafter, what its proposals depend on; a length policy does not make a token dearer."""

GREEDY = tuple(name for name, make_rule in RULES.items() if make_rule(RunSpec()).greedy_draft)
"""The rules for which a draft takes its most probable token, whatever the temperature."""

COPY_FIRST = ("eagle+ngram", "eagle+suffix")
"""The kinds that copy, or ask a head, by the temperature at which they are judged, under those rules too."""

Proposal = tuple[tuple[str, Any], ...]
"""A drafter and the settings that its proposals depend on, as pairs of a name and a value."""


def proposal_of(spec: RunSpec) -> Proposal:
    """What the proposals of a run depend on, beside its target; some rules have the draft take its most probable token.

    Examples
    --------
    >>> proposal_of(RunSpec(drafter="ngram", temperature=0.5))
    (('drafter', 'ngram'), ('ngram_max', 3), ('ngram_match', 'recent'))
    """
    kind = spec.drafter.partition(":")[0]
    if spec.rule in GREEDY and kind not in COPY_FIRST:
        spec = replace(spec, temperature=0.0)
    settings = DEPENDS_ON.get(kind, ())
    return tuple((name, getattr(spec, name)) for name in ("drafter", *settings))


def proposals_of(specs: Iterable[RunSpec]) -> dict[Proposal, str]:
    """The different proposals of some runs, each with a name: its drafter, for the first with that drafter.

    A further one with the same drafter is named with the settings in which it differs from the first.

    Examples
    --------
    >>> specs = [RunSpec(drafter="ngram", **more) for more in ({}, {"draft_length": 2}, {"ngram_max": 2})]
    >>> list(proposals_of(specs).values())
    ['ngram', 'ngram, ngram max 2']
    """
    firsts: dict[str, Proposal] = {}
    names: dict[Proposal, str] = {}
    for spec in specs:
        proposal = proposal_of(spec)
        first = firsts.setdefault(spec.drafter, proposal)
        differs = [f"{name.replace('_', ' ')} {value}" for name, value in proposal if (name, value) not in first]
        names.setdefault(proposal, ", ".join([spec.drafter, *differs]))
    return names


def timed_together(proposals: Iterable[Proposal], base: RunSpec) -> list[tuple[RunSpec, dict[str, Proposal]]]:
    """As few runs as do, each with proposals, by their drafters, that can be timed with its settings.

    Examples
    --------
    >>> specs = [RunSpec(drafter="ngram"), RunSpec(temperature=0.5), RunSpec(temperature=1.0)]
    >>> groups = timed_together(map(proposal_of, specs), specs[0])
    >>> [(spec.temperature, list(together)) for spec, together in groups]
    [(0.5, ['ngram', 'model']), (1.0, ['model'])]
    """
    groups: list[tuple[dict[str, Any], dict[str, Proposal]]] = []
    for proposal in proposals:
        (_, drafter), *settings = proposal
        for fixed, together in groups:
            if drafter not in together and all(fixed.get(name, value) == value for name, value in settings):
                break
        else:
            fixed, together = {}, {}
            groups.append((fixed, together))
        fixed |= settings
        together[drafter] = proposal
    return [(replace(base, **fixed), together) for fixed, together in groups]
