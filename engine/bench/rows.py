"""One configuration's row of a result: speed, acceptance, costs, predictions and texts, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from engine.bench.costs import Costs
from engine.bench.identical import divergences, n_compared
from engine.bench.measure import Measurement, Measurements
from engine.bench.plan import Configuration, Plan, plain_of
from engine.bench.predict import Counts, of_trees, pooled, predicted_by_the_paper, predicted_speed_up
from engine.bench.statistics import Estimate, Timings, median, speed, speed_ratio
from engine.metrics import Figures, ratio

__all__ = ["categories_of", "configuration_row", "estimate_data", "runs_of", "timings_of"]

IN_THE_RUNS = (
    "draft_seconds_per_token",
    "verify_seconds_per_token",
    "overhead_seconds_per_token",
    "rows_per_call",
    "draft_cost",
    "draft_cost_per_step",
    "verify_cost",
    "extra_overhead_cost",
)


def runs_of(measurements: Measurements) -> dict[Configuration, list[Measurement]]:
    """The runs by configuration, in the plan's order; a configuration without runs is there as well."""
    by_configuration: dict[Configuration, list[Measurement]] = {way: [] for way in measurements.plan.configurations}
    for run in measurements.runs:
        by_configuration[run.turn.configuration].append(run)
    return by_configuration


def categories_of(plan: Plan) -> list[str]:
    """The categories of the prompts, in their order."""
    return list(dict.fromkeys(prompt.category for prompt in plan.prompts))


def configuration_row(
    way: Configuration,
    by_configuration: Mapping[Configuration, Sequence[Measurement]],
    categories: Sequence[str],
    costs: Costs | None,
    *,
    compare: bool,
    proposal: str = "",
) -> dict[str, Any]:
    """Everything that was found of one configuration, beside the plain one of its engine.

    `compare` says whether its texts are held against those of Draftscope's plain decoding; `proposal` is what
    `costs` calls its drafter's proposals, the drafter's own name if it is empty.
    """
    runs, plain, own_plain = by_configuration[way], by_configuration[plain_of(way)], by_configuration[Configuration()]
    own, base = timings_of(runs), timings_of(plain)
    is_base = way == plain_of(way)
    by_category = {
        category: None
        if is_base
        else estimate_data(speed_ratio(timings_of(runs, category), timings_of(plain, category)))
        for category in categories
    }
    known = [estimate["value"] for estimate in by_category.values() if estimate]
    figures = [run.figures for run in runs if run.figures]
    counts = pooled(figures) if figures else None
    speed_up = None if is_base else estimate_data(speed_ratio(own, base))
    with_prefill = speed_ratio(timings_of(runs, prefill=True), timings_of(plain, prefill=True))
    acceptance = _acceptance(runs, counts)
    predicted, paper = (None, None) if of_trees(acceptance) else _predictions(way, counts, costs, proposal)
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
        "speed_up_with_prefill": None if is_base else estimate_data(with_prefill),
        "by_category": by_category,
        "mean_over_categories": sum(known) / len(known) if known and not is_base else None,
        "predicted_speed_up": predicted,
        "measured_over_predicted": speed_up["value"] / predicted if speed_up and predicted else None,
        "predicted_by_the_paper": paper,
        **acceptance,
        **_costs_in_the_runs(counts, [run.figures for run in plain if run.figures]),
        "prompts_compared": None if differing is None else n_compared(runs, own_plain),
        "prompts_that_differ": None if differing is None else len(differing),
        "near_tie_differences": None if differing is None else sum(place.near_tie for place in differing),
        "divergences": None
        if differing is None
        else [asdict(place) | {"near_tie": place.near_tie} for place in differing],
    }


def _predictions(
    way: Configuration, counts: Counts | None, costs: Costs | None, proposal: str
) -> tuple[float | None, float | None]:
    """The speed-up to expect from single calls, and what the paper's theorem says; None of plain and of rivals."""
    if counts is None or costs is None or way.plain:
        return None, None
    name = proposal or way.drafter
    return predicted_speed_up(counts, costs, name), predicted_by_the_paper(counts, costs, name, way.draft_length)


def _acceptance(runs: Sequence[Measurement], counts: Counts | None) -> dict[str, Any]:
    drafted = sum(run.n_drafted for run in runs if run.n_drafted is not None)
    accepted = sum(run.n_accepted for run in runs if run.n_accepted is not None)
    told = any(run.n_drafted is not None for run in runs)
    return {
        "drafted": drafted if told else None,
        "accepted": accepted if told else None,
        "discarded": counts.discarded if counts else None,
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
        "drafted_at": list(counts.drafted_at) if counts else None,
        "accepted_at": list(counts.accepted_at) if counts else None,
        "near_ties": counts.near_ties if counts else None,
        "identities_ok": counts.identities_ok if counts else None,
    }


def _costs_in_the_runs(counts: Counts | None, plain: Sequence[Figures]) -> dict[str, Any]:
    """Seconds of a token by what they were spent on, and what was paid, in plain calls of the target of these runs."""
    if counts is None:
        return dict.fromkeys(IN_THE_RUNS)
    base = pooled(plain)
    plain_call = ratio(base.verify_seconds, base.steps) or 0.0
    extra = counts.overhead_seconds - counts.steps * (ratio(base.overhead_seconds, base.steps) or 0.0)
    return {
        "draft_seconds_per_token": ratio(counts.draft_seconds, counts.tokens),
        "verify_seconds_per_token": ratio(counts.verify_seconds, counts.tokens),
        "overhead_seconds_per_token": ratio(counts.overhead_seconds, counts.tokens),
        "rows_per_call": ratio(counts.drafted + counts.steps, counts.steps),
        "draft_cost": ratio(counts.draft_seconds, counts.drafted * plain_call),
        "draft_cost_per_step": ratio(counts.draft_seconds, counts.steps * plain_call),
        "verify_cost": ratio(counts.verify_seconds, counts.steps * plain_call),
        "extra_overhead_cost": ratio(extra, counts.steps * plain_call),
    }


def timings_of(runs: Iterable[Measurement], category: str | None = None, *, prefill: bool = False) -> Timings:
    """Tokens and seconds of every run of a category, or of all; with their prefill if asked for."""
    return {
        (run.turn.prompt.identity, run.turn.repeat): (
            (len(run.ids), run.prefill_seconds + run.decode_seconds) if prefill else (run.n_timed, run.decode_seconds)
        )
        for run in runs
        if category in (None, run.turn.prompt.category)
    }


def estimate_data(estimate: Estimate | None) -> dict[str, Any] | None:
    """An estimate as plain data."""
    return None if estimate is None else asdict(estimate)
