"""A whole benchmark, from settings to result."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.bench.against import RIVALS, Rival, RivalEngine, check_installed, open_rival
from engine.bench.costs import Costs, measure_costs, not_predicted
from engine.bench.machine import load_average, machine, peak_memory_bytes, threads_used
from engine.bench.measure import OwnEngine, Runner, check_prompts, measure_plan
from engine.bench.plan import OWN, Plan, Turn, configurations_of, usable_drafters
from engine.bench.prompts import Prompt
from engine.bench.summary import result_of
from engine.build import build
from engine.errors import PromptError, SettingError
from engine.models import catalog
from engine.models.base import LoadProgress
from engine.spec import RunSpec

__all__ = ["DEFAULT_LENGTHS", "BenchSettings", "Progress", "before_runs", "counting", "run_bench", "silent"]

DEFAULT_LENGTHS = (1, 2, 3, 4, 5, 6)

Progress = Callable[[str, int, int], None]
"""Told what is done, how many runs are behind and how many there are."""

ROOM_TOKENS = 80
"""Context of a rival beyond prompt and answer: its longest draft and some more."""


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """What to measure.

    Attributes
    ----------
    base : RunSpec
        Target, temperature, most tokens, seed and all else that the runs share; its drafter, draft
        length and prompt have no meaning here.
    prompts : tuple of Prompt
    prompts_source : str
        Where they came from, for the report.
    drafters : tuple of str, optional
        All that the target can be run with, if not given.
    lengths : tuple of int
        Draft lengths, 1 to 32.
    repeats : int
    rivals : tuple of str
        Of `engine.bench.against.RIVALS`.
    """

    base: RunSpec
    prompts: tuple[Prompt, ...]
    prompts_source: str = "built in"
    drafters: tuple[str, ...] | None = None
    lengths: tuple[int, ...] = DEFAULT_LENGTHS
    repeats: int = 3
    rivals: tuple[str, ...] = ()


def silent(doing: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


def before_runs(progress: Progress, n_turns: int) -> LoadProgress:
    """What to tell how far a model is loaded, so that `progress` is told before the first of `n_turns` runs."""
    return lambda doing, done, total: progress(f"{doing}: {done} of {total}" if total else doing, 0, n_turns)


def counting(progress: Progress, plan: Plan) -> Callable[[Turn], None]:
    """What to call after every run of a plan, so that `progress` is told how many are behind."""
    n_done = 0

    def told(turn: Turn) -> None:
        nonlocal n_done
        n_done += 1
        progress(turn.configuration.name, n_done, plan.n_turns)

    return told


def run_bench(settings: BenchSettings, progress: Progress = silent) -> dict[str, Any]:
    """Measure, and give the result (`engine.bench.summary.result_of`).

    Raises
    ------
    DraftscopeError
        If a setting, a prompt or a model cannot be used, or a rival's package is not installed.
    KeyboardInterrupt
        If one came before anything was measured; later it makes the result a partial one.
    """
    base, prompts = settings.base, settings.prompts
    if not prompts:
        raise PromptError("there are no prompts to measure on; give at least one")
    rival_file = _rival_file(settings)
    started, load_before = datetime.now(UTC), load_average()
    progress("loading", 0, 0)
    begin = time.perf_counter()
    target = build(_plain(base, prompts[0]), before_runs(progress, 0)).loaded
    load_seconds = time.perf_counter() - begin
    backend: str = getattr(target.model, "backend", "")
    drafters, skipped = _drafters(settings)
    own_plan = Plan(configurations_of(drafters, settings.lengths), prompts, settings.repeats, base.seed)
    ids = check_prompts(own_plan, base)
    costs: Costs | None = None
    if not not_predicted(base):
        progress("measuring single calls", 0, 0)
        text = "\n\n".join(prompt.text for prompt in prompts)
        costs = measure_costs(base, drafters, settings.lengths, text)
    own_memory = peak_memory_bytes()

    rivals = _rivals(settings, rival_file, ids, threads_used(backend), progress)
    runners: dict[str, Runner] = {OWN: OwnEngine(base), **{name: engine for name, (_, engine) in rivals.items()}}
    theirs = tuple(way for _, engine in rivals.values() for way in engine.configurations)
    plan = Plan((*own_plan.configurations, *theirs), prompts, settings.repeats, base.seed)
    progress("warming up", 0, plan.n_turns)
    measurements = measure_plan(plan, runners, counting(progress, plan))
    if not measurements.runs:
        raise KeyboardInterrupt
    about = {
        "started": started.isoformat(timespec="seconds"),
        "settings": _described(settings, drafters),
        "backend": backend or None,
        "backend_note": target.note or None,
        "machine": machine([package for rival, _ in rivals.values() for package in rival.packages], backend=backend),
        "load_before": load_before,
        "load_after": load_average(),
        "load_seconds": load_seconds,
        "peak_memory_bytes": own_memory if settings.rivals else peak_memory_bytes(),
        "skipped": skipped,
        "not_predicted": not_predicted(base),
        "how_rivals_are_timed": {name: rival.how_timed for name, (rival, _) in rivals.items()},
    }
    return result_of(measurements, costs, temperature=base.temperature, about=about)


def _plain(base: RunSpec, prompt: Prompt) -> RunSpec:
    return configurations_of((), ())[0].spec(base, prompt.text)


def _drafters(settings: BenchSettings) -> tuple[list[str], dict[str, str]]:
    """The drafters to measure, and why others are left out; those asked for must be usable."""
    if settings.drafters is None:
        return usable_drafters(_plain(settings.base, settings.prompts[0]))
    for configuration in configurations_of(settings.drafters, settings.lengths[:1]):
        build(configuration.spec(settings.base, settings.prompts[0].text))
    return list(settings.drafters), {}


def _rival_file(settings: BenchSettings) -> Path:
    """The GGUF that rivals read; the checks that need no model come first."""
    for name in settings.rivals:
        check_installed(name)
    target = settings.base.target
    path = Path(target).expanduser() if target.lower().endswith(".gguf") else catalog.path_of(target)
    if settings.rivals and path is None:
        raise SettingError(f"{' and '.join(RIVALS)} need a GGUF file, and {target} has none here; name another target")
    return path or Path()


def _rivals(
    settings: BenchSettings, path: Path, ids: Mapping[str, Sequence[int]], threads: int | None, progress: Progress
) -> dict[str, tuple[Rival, RivalEngine]]:
    """The rivals asked for, loaded, each with room for the longest prompt and its answer."""
    longest = max(map(len, ids.values())) + settings.base.max_tokens + ROOM_TOKENS
    loaded = {}
    for name in settings.rivals:
        progress(f"loading {name}", 0, 0)
        rival = open_rival(name, path, threads=threads, context_tokens=longest)
        engine = RivalEngine(rival, ids, max_tokens=settings.base.max_tokens, temperature=settings.base.temperature)
        loaded[name] = (rival, engine)
    return loaded


def _described(settings: BenchSettings, drafters: list[str]) -> dict[str, Any]:
    run = {name: value for name, value in asdict(settings.base).items() if name not in _OF_ONE_RUN}
    run["stop"] = list(run["stop"])  # as JSON has it
    return {
        **run,
        "drafters": drafters,
        "lengths": list(settings.lengths),
        "repeats": settings.repeats,
        "prompts": len(settings.prompts),
        "prompts_source": settings.prompts_source,
        "rivals": list(settings.rivals),
    }


_OF_ONE_RUN = frozenset(("drafter", "draft_length", "prompt"))
