"""A whole comparison, from settings to result."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from engine.acceptance import ExactRejection
from engine.bench.costs import Costs, measure_costs, not_predicted
from engine.bench.machine import load_average, machine
from engine.bench.measure import Measurements, OwnEngine, Seen, check_prompts, measure_plan, never_seen
from engine.bench.plan import OWN, Plan
from engine.bench.prompts import Prompt
from engine.bench.run import Progress, before_runs, counting, silent
from engine.build import build, check
from engine.compare.choices import MOST_CONFIGURATIONS, configurations_from
from engine.compare.proposals import proposals_of, timed_together
from engine.compare.result import comparison_of
from engine.errors import PromptError
from engine.spec import RunSpec
from engine.stopping import Cancelled, Stopped, never

__all__ = ["COSTED_LENGTHS", "CompareSettings", "costs_of", "plan_of", "run_comparison"]

COSTED_LENGTHS = (1, 2, 4, 8, 16)
"""Draft lengths at which a drafter's proposal is timed by itself."""


@dataclass(frozen=True, slots=True)
class CompareSettings:
    """What to compare.

    Attributes
    ----------
    specs : tuple of RunSpec
        One to `most` configurations; plain decoding with the settings of the first is added. Their
        prompts have no meaning here.
    prompts : tuple of Prompt
    repeats : int, default 3
    prompts_source : str
        Where the prompts came from, for the result.
    most : int, default 4
        Configurations that may be compared.
    new_seeds : bool, default False
        Whether each repeat has a seed of its own, the same for all configurations, so that at temperatures above 0
        the texts differ from repeat to repeat and the intervals tell of that as well.
    """

    specs: tuple[RunSpec, ...]
    prompts: tuple[Prompt, ...]
    repeats: int = 3
    prompts_source: str = "given"
    most: int = MOST_CONFIGURATIONS
    new_seeds: bool = False

    def __post_init__(self) -> None:
        """No probe: what is compared is decoding."""
        object.__setattr__(self, "specs", tuple(replace(spec, probe=0) for spec in self.specs))


def plan_of(settings: CompareSettings) -> Plan:
    """What will be measured, and in which order.

    Raises
    ------
    DraftscopeError
        If a setting cannot be used; nothing is loaded to find out.
    """
    if not settings.prompts:
        raise PromptError("there are no prompts to compare on; give at least one")
    ways = configurations_from(settings.specs, most=settings.most)
    plan = Plan(ways, settings.prompts, settings.repeats, settings.specs[0].seed)
    for way in plan.configurations:
        check(way.spec(settings.specs[0], settings.prompts[0].text))
    return plan


def run_comparison(
    settings: CompareSettings,
    progress: Progress = silent,
    *,
    seen: Seen = never_seen,
    cancelled: Cancelled = never,
    with_costs: bool = False,
) -> dict[str, Any]:
    """Measure, and give the result (`engine.compare.result.comparison_of`).

    Parameters
    ----------
    settings : CompareSettings
    progress : callable, optional
        Told what is done, how many runs are behind and how many there are.
    seen : callable, optional
        Given every event of every measured run, with its turn, as it happens.
    cancelled : callable, optional
        Asked before every step; True ends the comparison, and what was measured until then is kept.
    with_costs : bool, default False
        Measure single calls as well, so that the result has predictions, or says as `not_predicted` why not.

    Raises
    ------
    DraftscopeError
        If a setting, a prompt or a model cannot be used.
    Stopped
        If it was cancelled before anything was measured.
    KeyboardInterrupt
        If one came before anything was measured; later it makes the result a partial one.

    Examples
    --------
    >>> base = RunSpec(temperature=0, max_tokens=20, agreement=1.0, target_call_seconds=0.02, draft_call_seconds=0.002)
    >>> result = run_comparison(CompareSettings((base,), (Prompt("1", "The draft model"),)))
    >>> result["configurations"][1]["verdict"], result["simulated"]
    ('helps', True)
    """
    plan, base = plan_of(settings), settings.specs[0]
    started, load_before = datetime.now(UTC), load_average()
    progress("loading", 0, plan.n_turns)
    loading = before_runs(progress, plan.n_turns)
    built = {way: build(way.spec(base, plan.prompts[0].text), loading) for way in plan.configurations}
    check_prompts(plan, base)
    target = built[plan.configurations[0]].loaded
    backend: str = getattr(target.model, "backend", "")
    rules = {way: one.rule for way, one in built.items()}
    costs = None
    reason = not_predicted(base) if with_costs else None
    if with_costs and not reason:
        progress("measuring single calls", 0, plan.n_turns)
        costs = costs_of(settings, cancelled=cancelled)
    progress("warming up", 0, plan.n_turns)
    measurements: Measurements = measure_plan(
        plan,
        {OWN: OwnEngine(base, seen=seen, cancelled=cancelled, new_seeds=settings.new_seeds)},
        counting(progress, plan),
        cancelled,
    )
    if not measurements.runs:
        raise Stopped if cancelled() else KeyboardInterrupt
    about = {
        "started": started.isoformat(timespec="seconds"),
        "prompts_source": settings.prompts_source,
        "backend": backend or None,
        "backend_note": target.note or None,
        "machine": machine(backend=backend),
        "load_before": load_before,
        "load_after": load_average(),
        "not_predicted": reason,
    }
    return comparison_of(measurements, base, rules, costs, about=about)


def costs_of(
    settings: CompareSettings,
    drafters: Collection[str] | None = None,
    lengths: Sequence[int] = COSTED_LENGTHS,
    *,
    progress: Any = None,
    cancelled: Cancelled = never,
) -> Costs | None:
    """Costs of the target's calls for 1 to 17 rows and of proposals; None if calls take no time, or are instant.

    Proposals that depend on different settings are timed apart, each with its own settings and in units of
    a plain call beside it; `Costs.draft` has them by their names (`engine.compare.proposals.proposals_of`).

    Parameters
    ----------
    settings : CompareSettings
    drafters : collection of str, optional
        Time these alone; all that the configurations have, if not given.
    lengths : sequence of int
        Draft lengths at which proposals are timed.
    progress : callable, optional
        Told (calls made, calls in all).
    cancelled : callable, optional
        Asked before every call.

    Raises
    ------
    Stopped
        If it was cancelled.
    """
    if not_predicted(settings.specs[0]):
        return None
    text = "\n\n".join(prompt.text for prompt in settings.prompts)
    drafting = [spec for spec in settings.specs if spec.drafter != "none"]
    names = proposals_of(spec for spec in drafting if drafters is None or spec.drafter in drafters)
    base = replace(settings.specs[0], prompt=text, rule=ExactRejection.name)  # which goes with every drafter
    found: Costs | None = None
    groups = timed_together(names, base) or [(base, {})]
    for place, (spec, together) in enumerate(groups):
        told = progress and _part_of(progress, place, len(groups))
        costs = measure_costs(spec, list(together), lengths, text, progress=told, cancelled=cancelled)
        if costs is None:
            return None
        found = found or replace(costs, draft={})
        found.draft.update({names[proposal]: costs.draft[drafter] for drafter, proposal in together.items()})
    return found


def _part_of(progress: Any, place: int, n_parts: int) -> Any:
    """Progress of one of several parts of the same size as progress of the whole."""
    return lambda done, total: progress(place * total + done, n_parts * total)
