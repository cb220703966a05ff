"""The statistical check: the first tokens of many runs, counted, against the exact law of the target.

Every run has a seed of its own, so that the runs are independent; drafter and length policy begin anew in each.
What is expected comes from the target's rows alone (`engine.lab.exact_law`), what is observed from `decode` with
all its parts: drafter, rule, length policy. A small p-value says that they do not go together. A large one is no
proof: a small difference needs many runs to be seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from math import sqrt
from typing import Any, Literal

from engine.build import BuiltRun, build
from engine.errors import DraftscopeError, SettingError
from engine.figure_text import counted, fixed
from engine.lab.chi_square import LEAST_EXPECTED, ChiSquare, chi_square
from engine.lab.exact_law import Cell, law_cells
from engine.models.base import LoadedModel
from engine.sampling import Law, Rows
from engine.spec import RunSpec
from engine.stopping import Cancelled, Stopped, never
from engine.text import text_with_controls
from engine.values import Finished, Step

__all__ = [
    "MOST_RUNS",
    "MOST_TOKENS",
    "CheckResult",
    "CheckedCell",
    "check_of",
    "check_settings",
    "statistical_check",
]

MOST_RUNS = 100_000
MOST_TOKENS = 4
DIFFERS, WEAK = 1e-3, 0.05
LARGEST_VOCABULARY = 2000
"""Of a target whose law is followed here; the embedded ones have fewer."""

Conclusion = Literal["differs", "weak sign", "no sign", "too few"]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class CheckedCell:
    """A beginning of the text: how often it is expected and how often it came; `spread` is the standard deviation."""

    text: str
    expected: float
    observed: int
    spread: float


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What was counted, and what it says.

    Attributes
    ----------
    runs, runs_planned : int
        Fewer than planned if it was stopped.
    tokens : int
        Looked at in each run.
    steps, drafted, accepted : int
        Of all runs, as far as they were looked at.
    cells : tuple of CheckedCell
        The most expected first; all that are expected too seldom are one, the last.
    statistic : float or None
        None stands for infinity: something impossible was seen.
    degrees, p_value
        See `ChiSquare`.
    conclusion : {"differs", "weak sign", "no sign", "too few"}
        "too few" runs: none of the beginnings is expected often enough to be a cell of its own.
    sentence : str
        The same, for a reader.
    rule, drafter, lossless
        What was checked, and whether the rule is said to keep the law.
    seed : int
        Of the first run; the others follow.
    """

    runs: int
    runs_planned: int
    tokens: int
    steps: int
    drafted: int
    accepted: int
    cells: tuple[CheckedCell, ...]
    statistic: float | None
    degrees: int
    p_value: float
    conclusion: Conclusion
    sentence: str
    rule: str
    drafter: str
    lossless: bool
    seed: int

    @property
    def about(self) -> str:
        """What was counted and tested, in words."""
        statistic = "infinite" if self.statistic is None else fixed(self.statistic)
        return (
            f"{counted(self.runs, 'run')}, {counted(self.steps, 'step')}, {self.accepted} of {self.drafted} drafted "
            f"tokens accepted; {counted(len(self.cells), 'cell')}, chi-square {statistic} with "
            f"{counted(self.degrees, 'degree')} of freedom"
        )

    @property
    def partial(self) -> bool:
        """Whether it was stopped."""
        return self.runs < self.runs_planned

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, with all cells."""
        return {"schema": 1, "kind": "draftscope check", **asdict(self), "partial": self.partial}


def check_settings(spec: RunSpec, n_runs: int, n_tokens: int) -> None:
    """Refuse numbers that cannot be used, without loading anything.

    Raises
    ------
    SettingError
        If a number is out of range, or the seeds would not fit.
    """
    if not 1 <= n_runs <= MOST_RUNS:
        raise SettingError(f"there are {n_runs} runs; a check takes 1 to {MOST_RUNS}")
    if not 1 <= n_tokens <= MOST_TOKENS:
        raise SettingError(f"{n_tokens} tokens of each run are to be looked at; a check looks at 1 to {MOST_TOKENS}")
    if spec.seed + n_runs > 2**64:
        raise SettingError(f"the seed is {spec.seed}; with {n_runs} runs it must be at most {2**64 - n_runs}")


def statistical_check(
    spec: RunSpec,
    *,
    n_runs: int = 2000,
    n_tokens: int = 2,
    progress: Progress | None = None,
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
    built = build(spec)
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


def check_of(
    counts: Counter[tuple[int, ...]], built: BuiltRun, *, n_tokens: int, n_planned: int, totals: Counter[str]
) -> CheckResult:
    """Hold counted beginnings against the law of the target of a run.

    Parameters
    ----------
    counts : Counter
        How many runs began with which tokens.
    built : BuiltRun
        Gives target, prompt and sampling.
    n_tokens, n_planned : int
    totals : Counter
        "steps", "drafted" and "accepted" of all runs.
    """
    n_runs = counts.total()
    tokenizer = built.loaded.tokenizer

    def follow(tokens: tuple[int, ...]) -> Law:
        ids = [*built.prompt, *tokens]
        return Rows(built.loaded.model.logits(ids), built.sampling, lambda index: ids).law(0)

    cells = law_cells(follow, n_tokens, least=LEAST_EXPECTED / n_runs, end_tokens=tokenizer.end_tokens)
    others = n_runs - sum(counts[cell.tokens] for cell in cells if cell.tokens is not None)
    if others and cells[-1].tokens is not None:
        cells = (*cells, Cell(None, 0.0))  # something came that cannot come
    observed = [others if cell.tokens is None else counts[cell.tokens] for cell in cells]
    test = chi_square(observed, [n_runs * cell.probability for cell in cells])
    conclusion = _conclusion(test, nothing_told=all(cell.tokens is None for cell in cells))
    return CheckResult(
        runs=n_runs,
        runs_planned=n_planned,
        tokens=n_tokens,
        steps=totals["steps"],
        drafted=totals["drafted"],
        accepted=totals["accepted"],
        cells=tuple(
            CheckedCell(
                "all others" if cell.tokens is None else text_with_controls(tokenizer, cell.tokens),
                n_runs * cell.probability,
                count,
                sqrt(n_runs * cell.probability * (1 - cell.probability)),
            )
            for cell, count in zip(cells, observed, strict=True)
        ),
        statistic=test.statistic if test.statistic < float("inf") else None,
        degrees=test.degrees,
        p_value=test.p_value,
        conclusion=conclusion,
        sentence=_sentence(test, conclusion, observed, lossless=built.rule.lossless),
        rule=built.rule.name,
        drafter=built.drafter.name,
        lossless=built.rule.lossless,
        seed=built.spec.seed,
    )


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


def _conclusion(test: ChiSquare, *, nothing_told: bool) -> Conclusion:
    if nothing_told:
        return "too few"
    return "differs" if test.p_value < DIFFERS else "weak sign" if test.p_value < WEAK else "no sign"


def _sentence(test: ChiSquare, conclusion: Conclusion, observed: list[int], *, lossless: bool) -> str:
    if conclusion == "too few":
        return (
            f"Too few runs to tell anything: no beginning is expected {LEAST_EXPECTED:g} times in "
            f"{counted(sum(observed), 'run')}. Make more runs, or look at fewer tokens of each."
        )
    if test.statistic == float("inf"):
        return f"Differs: {counted(observed[-1], 'run')} began in a way that the target never does."
    if test.degrees == 0:
        return "Nothing can differ: the law has one outcome at these settings, and every run gave it."
    p_value = f"p = {test.p_value:.2g}" if test.p_value >= 1e-9 else "p < 1e-9"
    if conclusion == "differs":
        return f"Differs: {p_value}." + (" The rule is said to be lossless, so something is wrong." if lossless else "")
    if conclusion == "weak sign":
        return (
            f"A weak sign of a difference: {p_value}. One in {1 / test.p_value:.0f} checks of the target itself "
            "looks so; check again with another seed, or with more runs."
        )
    return f"No sign of a difference: {p_value}." + (
        "" if lossless else " The rule is lossy, so more runs may well show one."
    )
