"""From measurements to the result of a comparison: one object of plain data, which every output shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from engine.acceptance import AcceptanceRule
from engine.bench.costs import Costs
from engine.bench.machine import was_busy
from engine.bench.measure import Measurements
from engine.bench.plan import Configuration
from engine.bench.rows import categories_of, configuration_row, runs_of
from engine.bench.summary import costs_data, run_data
from engine.compare.choices import OF_A_CONFIGURATION
from engine.compare.judgement import comparable, judged, judged_text
from engine.compare.predictions import families_of, family_prediction
from engine.compare.proposals import proposal_of, proposals_of
from engine.spec import RunSpec

__all__ = ["SCHEMA", "comparison_of"]

SCHEMA = 1


def comparison_of(
    measurements: Measurements,
    base: RunSpec,
    rules: Mapping[Configuration, AcceptanceRule],
    costs: Costs | None = None,
    *,
    about: Mapping[str, Any],
) -> dict[str, Any]:
    """Everything that a comparison found.

    Parameters
    ----------
    measurements : Measurements
        Complete or partial.
    base : RunSpec
        The settings that all runs share, and the plain baseline's.
    rules : mapping
        The acceptance rule of each configuration.
    costs : Costs, optional
        Of single calls; without them nothing is predicted.
    about : mapping
        Machine, load and the like; taken over as they are.

    Returns
    -------
    dict
        Plain data; the keys are described in `docs/compare.md`.
    """
    plan = measurements.plan
    by_configuration = runs_of(measurements)
    categories = categories_of(plan)
    specs = {way: way.spec(base, "") for way in plan.configurations}
    proposals = proposals_of(own for way, own in specs.items() if not way.plain)
    simulated = any(run.figures.simulated for run in measurements.runs if run.figures)
    rows = []
    for way, own in specs.items():
        proposal = proposals.get(proposal_of(own), "")
        alike = comparable(own.sampling, base.sampling)
        row = configuration_row(way, by_configuration, categories, costs, compare=alike, proposal=proposal)
        row |= {"proposal": proposal or None, "simulated": simulated}
        rows.append(_with_judgement(row, own, base, rules[way], is_base=way == Configuration()))
    settings = asdict(base) | {"stop": list(base.stop)}
    result = {
        "schema": SCHEMA,
        "kind": "draftscope comparison",
        "partial": measurements.partial,
        "simulated": simulated,
        "busy": not simulated and was_busy(about),
        "runs_done": len(measurements.runs),
        "runs_planned": plan.n_turns,
        "prompts": len(plan.prompts),
        "repeats": plan.repeats,
        "settings": {name: value for name, value in settings.items() if name not in _OF_ONE_RUN},
        **about,
        "costs": costs_data(costs),
        "categories": categories,
        "configurations": rows,
        "runs": [run_data(run) for run in measurements.runs],
    }
    if costs:
        result["predictions"] = {name: family_prediction(own, costs) for name, own in families_of(result).items()}
    return result


_OF_ONE_RUN = frozenset(("drafter", "draft_length", "prompt"))


def _with_judgement(
    row: dict[str, Any], own: RunSpec, base: RunSpec, rule: AcceptanceRule, *, is_base: bool
) -> dict[str, Any]:
    """The row with its settings and, unless it is the baseline itself, what is said of it."""
    verdict, sentence = (None, "the baseline") if is_base else judged(row)
    text, text_sentence = (
        (None, "the baseline")
        if is_base
        else judged_text(
            row,
            lossless=rule.lossless,
            rule=rule.name,
            sampling=own.sampling,
            plain_sampling=base.sampling,
        )
    )
    return {
        **row,
        "settings": {name: getattr(own, name) for name in OF_A_CONFIGURATION},
        "lossless": rule.lossless,
        "verdict": verdict,
        "sentence": sentence,
        "text": text,
        "text_sentence": text_sentence,
    }
