"""The statistical check: the first tokens of many runs, counted, against the exact law of the target.

Every run has a seed of its own, so that the runs are independent; drafter and length policy begin anew in each.
What is expected comes from the target's rows alone (`engine.lab.exact_law`), what is observed from `decode` with
all its parts: drafter, rule, length policy. A small p-value says that they do not go together. A large one is no
proof: a small difference needs many runs to be seen.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from engine.build import BuiltRun, build
from engine.errors import DraftscopeError, SettingError
from engine.lab.check_result import CheckResult, check_of
from engine.models.base import LoadedModel, LoadProgress, Progress
from engine.spec import RunSpec
from engine.stopping import Cancelled, Stopped, never
from engine.values import Finished, Step

__all__ = [
    "LONGEST_BEGINNING",
    "MOST_RUNS",
    "check_settings",
    "statistical_check",
]

MOST_RUNS = 100_000
LONGEST_BEGINNING = 4
LARGEST_VOCABULARY = 2000
"""Of a target whose law is followed here; the embedded ones have fewer."""


def check_settings(spec: RunSpec, n_runs: int, n_tokens: int) -> None:
    """Refuse numbers that cannot be used, without loading anything.

    Raises
    ------
    SettingError
        If a number is out of range, or the seeds would not fit.
    """
    if not 1 <= n_runs <= MOST_RUNS:
        raise SettingError(f"there are {n_runs} runs; a check takes 1 to {MOST_RUNS}")
    if not 1 <= n_tokens <= LONGEST_BEGINNING:
        raise SettingError(
            f"{n_tokens} tokens of each run are to be looked at; a check looks at 1 to {LONGEST_BEGINNING}"
        )
    if spec.seed + n_runs > 2**64:
        raise SettingError(f"the seed is {spec.seed}; with {n_runs} runs it must be at most {2**64 - n_runs}")


def statistical_check(
    spec: RunSpec,
    *,
    n_runs: int = 2000,
    n_tokens: int = 2,
    progress: Progress | None = None,
    loading: LoadProgress | None = None,
    cancelled: Cancelled = never,
) -> CheckResult:
    """Make the runs, and hold what they begin with against the target's law.

    Parameters
    ----------
    spec : RunSpec
        Target, drafter, rule and all else. Its seed is the first run's; `max_tokens`, `stop` and `probe` have no
        meaning here: nothing is cut within the tokens that are looked at.
    n_runs : int, default 2000
    n_tokens : int, default 2
    progress : callable, optional
        Told (runs done, runs in all).
    loading : callable, optional
        Told of the loading of the models; see `engine.build.build`.
    cancelled : callable, optional
        Asked before every run; True ends it, and what was counted until then is the result.

    Raises
    ------
    DraftscopeError
        If a setting cannot be used, the target's vocabulary is too large, or a run fails.
    Stopped
        If it was cancelled before the first run.

    Examples
    --------
    >>> result = statistical_check(RunSpec(prompt="The draft model", temperature=1.0), n_runs=200, n_tokens=1)
    >>> result.conclusion, result.runs, sum(cell.observed for cell in result.cells)
    ('no sign', 200, 200)
    """
    check_settings(spec, n_runs, n_tokens)
    spec = replace(spec, stop=(), probe=0, max_tokens=n_tokens + spec.draft_length + 1)
    built = build(spec, loading)
    _check_size(built.loaded)
    counts: Counter[tuple[int, ...]] = Counter()
    totals: Counter[str] = Counter()
    n_done = 0
    while n_done < n_runs and not cancelled():
        run = build(replace(spec, seed=spec.seed + n_done), loaded=built.loaded)
        counts[_beginning(run, n_tokens, totals)] += 1
        n_done += 1
        if progress:
            progress(n_done, n_runs)
    if not n_done:
        raise Stopped
    return check_of(counts, built, n_tokens=n_tokens, n_planned=n_runs, totals=totals)


def _beginning(run: BuiltRun, n_tokens: int, totals: Counter[str]) -> tuple[int, ...]:
    """The first tokens of a run; it goes no further than they do."""
    emitted: list[int] = []
    for event in run.events():
        if isinstance(event, Step):
            emitted.extend(event.emitted)
            totals.update(steps=1, drafted=event.n_drafted, accepted=event.n_accepted)
            if len(emitted) >= n_tokens:
                break
        elif isinstance(event, Finished) and event.reason == "error":
            raise DraftscopeError(f"the run with seed {run.spec.seed} ended: {event.error}")
    return tuple(emitted[:n_tokens])


def _check_size(loaded: LoadedModel) -> None:
    if loaded.model.vocab_size > LARGEST_VOCABULARY:
        raise SettingError(
            f"{loaded.model.name} has {loaded.model.vocab_size} tokens, and its law cannot be held against counts; "
            "choose an embedded target, markov or noisy"
        )
