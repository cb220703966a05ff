"""What counted beginnings say of a rule: cells, the chi-square test, a sentence."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, Literal

from engine.build import BuiltRun
from engine.figure_text import counted, fixed
from engine.intervals import rate
from engine.lab.chi_square import LEAST_EXPECTED, ChiSquare, chi_square
from engine.lab.exact_law import Cell, law_cells
from engine.sampling import Law, Rows
from engine.text import text_with_controls

__all__ = ["CheckResult", "CheckedCell", "check_of"]

DIFFERS, WEAK = 1e-3, 0.05

Conclusion = Literal["differs", "weak sign", "no sign", "too few"]


@dataclass(frozen=True, slots=True)
class CheckedCell:
    """A beginning of the text: how often it is expected, and how often it came.

    Attributes
    ----------
    text : str
    expected : float
        Runs.
    observed : int
        Runs.
    low, high : float
        Runs: Wilson's 95 % interval (`engine.intervals`) of what was observed. It is of one cell alone; of twenty
        cells one may well be off.
    """

    text: str
    expected: float
    observed: int
    low: float
    high: float


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
            _checked(
                "all others" if cell.tokens is None else text_with_controls(tokenizer, cell.tokens),
                n_runs * cell.probability,
                count,
                n_runs,
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


def _checked(text: str, expected: float, observed: int, n_runs: int) -> CheckedCell:
    share = rate(observed, n_runs)
    assert share.low is not None
    assert share.high is not None
    return CheckedCell(text, expected, observed, n_runs * share.low, n_runs * share.high)


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
