"""From measurements to the result of a benchmark: one object of plain data, which every output shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from engine.bench.costs import Costs
from engine.bench.identical import divergences, n_compared
from engine.bench.measure import Measurement, Measurements
from engine.bench.plan import OWN, Configuration, plain_of
from engine.bench.predict import Counts, pooled, predicted_by_the_paper, predicted_speed_up
from engine.bench.statistics import Estimate, Timings, median, speed, speed_ratio
from engine.bench.verdict import verdict
from engine.metrics import ratio

__all__ = ["SCHEMA", "result_of"]

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
    by_configuration: dict[Configuration, list[Measurement]] = {way: [] for way in plan.configurations}
    for run in measurements.runs:
        by_configuration[run.turn.configuration].append(run)
    categories = list(dict.fromkeys(prompt.category for prompt in plan.prompts))
    rows = [_row(way, by_configuration, categories, costs, compare=temperature == 0) for way in plan.configurations]
    drafting = [row for row in rows if row["engine"] == OWN and row["drafter"] != "none"]
    return {
        "schema": SCHEMA,
        "kind": "draftscope bench",
        "verdict": verdict(drafting, costs.verify if costs else ()),
        "partial": measurements.partial,
        "simulated": any(run.figures.simulated for run in measurements.runs if run.figures),
        "runs_done": len(measurements.runs),
        "runs_planned": plan.n_turns,
        **about,
        "costs": _costs(costs),
        "categories": categories,
        "configurations": rows,
        "against": _against(by_configuration),
        "runs": [_run(run) for run in measurements.runs],
    }


def _row(
    way: Configuration,
    by_configuration: Mapping[Configuration, Sequence[Measurement]],
    categories: Sequence[str],
    costs: Costs | None,
    *,
    compare: bool,
) -> dict[str, Any]:
    runs, plain, own_plain = by_configuration[way], by_configuration[plain_of(way)], by_configuration[Configuration()]
    own, base = _timings(runs), _timings(plain)
    by_category = {
        category: None if way.plain else _estimate(speed_ratio(_timings(runs, category), _timings(plain, category)))
        for category in categories
    }
    known = [estimate["value"] for estimate in by_category.values() if estimate]
    figures = [run.figures for run in runs if run.figures]
    counts = pooled(figures) if figures else None
    speed_up = None if way.plain else _estimate(speed_ratio(own, base))
    predicted, paper = _predictions(way, counts, costs)
    differing = divergences(runs, own_plain) if compare and way != Configuration() else None
    return {
        "name": way.name,
        "engine": way.engine,
        "drafter": way.drafter,
        "draft_length": way.draft_length,
        "runs": len(runs),
        "tokens": sum(len(run.ids) for run in runs),
        "tokens_per_second": speed(own),
        "median_tokens_per_second": median([run.n_timed / run.decode_seconds for run in runs if run.decode_seconds]),
        "prefill_seconds": median([run.prefill_seconds for run in runs]),
        "speed_up": speed_up,
        "by_category": by_category,
        "mean_over_categories": sum(known) / len(known) if known and not way.plain else None,
        "predicted_speed_up": predicted,
        "measured_over_predicted": speed_up["value"] / predicted if speed_up and predicted else None,
        "predicted_by_the_paper": paper,
        **_acceptance(runs, counts),
        "prompts_compared": None if differing is None else n_compared(runs, own_plain),
        "prompts_that_differ": None if differing is None else len(differing),
        "near_tie_differences": None if differing is None else sum(place.near_tie for place in differing),
        "divergences": None
        if differing is None
        else [asdict(place) | {"near_tie": place.near_tie} for place in differing],
    }


def _predictions(way: Configuration, counts: Counts | None, costs: Costs | None) -> tuple[float | None, float | None]:
    """The speed-up to expect from single calls, and what the paper's theorem says; None of plain and of rivals."""
    if counts is None or costs is None or way.plain:
        return None, None
    return (
        predicted_speed_up(counts, costs, way.drafter),
        predicted_by_the_paper(counts, costs, way.drafter, way.draft_length),
    )


def _acceptance(runs: Sequence[Measurement], counts: Counts | None) -> dict[str, Any]:
    drafted = sum(run.n_drafted for run in runs if run.n_drafted is not None)
    accepted = sum(run.n_accepted for run in runs if run.n_accepted is not None)
    told = any(run.n_drafted is not None for run in runs)
    return {
        "drafted": drafted if told else None,
        "accepted": accepted if told else None,
        "acceptance_rate": ratio(accepted, drafted),
        "steps": counts.steps if counts else None,
        "tokens_per_step": counts.tokens_per_step if counts else None,
        "per_token_acceptance": counts.per_token_acceptance if counts else None,
        "acceptance_by_position": [
            ratio(accepted, tested) for accepted, tested in zip(counts.accepted_at, counts.tested_at, strict=True)
        ]
        if counts
        else None,
        "draft_share": ratio(counts.draft_seconds, counts.decode_seconds) if counts else None,
        "verify_share": ratio(counts.verify_seconds, counts.decode_seconds) if counts else None,
        "overhead_share": ratio(counts.overhead_seconds, counts.decode_seconds) if counts else None,
        "near_ties": counts.near_ties if counts else None,
        "identities_ok": counts.identities_ok if counts else None,
    }


def _against(by_configuration: Mapping[Configuration, Sequence[Measurement]]) -> list[dict[str, Any]]:
    """Draftscope's plain decoding against every way of every rival."""
    own = _timings(by_configuration[Configuration()])
    return [
        {"name": way.name, "own_plain_over_it": _estimate(speed_ratio(own, _timings(runs)))}
        for way, runs in by_configuration.items()
        if way.engine != OWN
    ]


def _timings(runs: Iterable[Measurement], category: str | None = None) -> Timings:
    return {
        (run.turn.prompt.identity, run.turn.repeat): (run.n_timed, run.decode_seconds)
        for run in runs
        if category in (None, run.turn.prompt.category)
    }


def _estimate(estimate: Estimate | None) -> dict[str, Any] | None:
    return None if estimate is None else asdict(estimate)


def _costs(costs: Costs | None) -> dict[str, Any] | None:
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


def _run(run: Measurement) -> dict[str, Any]:
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
