"""From measurements to the result of a benchmark: one object of plain data, which every output shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.bench.costs import Costs
from engine.bench.measure import Measurement, Measurements
from engine.bench.plan import OWN, Configuration
from engine.bench.rows import categories_of, configuration_row, estimate_data, runs_of, timings_of
from engine.bench.statistics import speed_ratio
from engine.bench.verdict import verdict

__all__ = ["SCHEMA", "costs_data", "result_of", "run_data"]

SCHEMA = 1


def result_of(
    measurements: Measurements, costs: Costs | None, *, temperature: float, about: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything that a benchmark found.

    Parameters
    ----------
    measurements : Measurements
    costs : Costs or None
        None if they were not measured; nothing is predicted then.
    temperature : float
        Above 0 a drafter changes the text by design, so texts are not compared.
    about : mapping
        Settings, machine, load and the like; taken over as they are.

    Returns
    -------
    dict
        Plain data; the keys are described in `docs/bench.md`.
    """
    plan = measurements.plan
    by_configuration = runs_of(measurements)
    categories = categories_of(plan)
    rows = [
        configuration_row(way, by_configuration, categories, costs, compare=temperature == 0)
        for way in plan.configurations
    ]
    drafting = [row for row in rows if row["engine"] == OWN and row["drafter"] != "none"]
    return {
        "schema": SCHEMA,
        "kind": "draftscope bench",
        "verdict": verdict(drafting),
        "partial": measurements.partial,
        "simulated": any(run.figures.simulated for run in measurements.runs if run.figures),
        "runs_done": len(measurements.runs),
        "runs_planned": plan.n_turns,
        **about,
        "costs": costs_data(costs),
        "categories": categories,
        "configurations": rows,
        "against": _against(by_configuration),
        "runs": [run_data(run) for run in measurements.runs],
    }


def _against(by_configuration: Mapping[Configuration, Sequence[Measurement]]) -> list[dict[str, Any]]:
    """Draftscope's plain decoding against every way of every rival."""
    own = timings_of(by_configuration[Configuration()])
    return [
        {"name": way.name, "own_plain_over_it": estimate_data(speed_ratio(own, timings_of(runs)))}
        for way, runs in by_configuration.items()
        if way.engine != OWN
    ]


def costs_data(costs: Costs | None) -> dict[str, Any] | None:
    """Costs as plain data."""
    if costs is None:
        return None
    return {
        "context_tokens": costs.context_tokens,
        "plain_call_seconds": costs.plain_call_seconds,
        "verify": list(costs.verify),
        "draft": {
            name: {
                "per_step": cost.per_step,
                "per_token": cost.per_token,
                "by_length": [
                    {"draft_length": length, "tokens": tokens, "cost": paid} for length, tokens, paid in cost.by_length
                ],
            }
            for name, cost in costs.draft.items()
        },
    }


def run_data(run: Measurement) -> dict[str, Any]:
    """One run as plain data."""
    return {
        "configuration": run.turn.configuration.name,
        "prompt": run.turn.prompt.identity,
        "repeat": run.turn.repeat,
        "tokens": len(run.ids),
        "tokens_timed": run.n_timed,
        "decode_seconds": run.decode_seconds,
        "prefill_seconds": run.prefill_seconds,
        "steps": run.figures.steps if run.figures else None,
        "drafted": run.n_drafted,
        "accepted": run.n_accepted,
    }
