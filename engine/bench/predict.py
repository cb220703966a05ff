"""Predicted speed-up, from costs measured by themselves and acceptance measured in the runs.

Leviathan's theorem 3.8 without its assumptions: acceptance may differ from position to position,
drafts may be short, and verifying more rows may cost more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from engine.bench.costs import Costs, DraftCost
from engine.metrics import Figures, ratio
from engine.theory import speed_up

__all__ = [
    "Counts",
    "drafted_by_position",
    "of_trees",
    "pooled",
    "predicted_by_the_paper",
    "predicted_speed_up",
    "speed_up_of_steps",
    "step_cost",
]


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts and seconds of several runs of one configuration, added up.

    `drafted_at[i]`, `tested_at[i]` and `accepted_at[i]` belong to draft position i + 1.
    """

    runs: int
    steps: int
    tokens: int
    drafted: int
    accepted: int
    rejected: int
    discarded: int
    near_ties: int
    drafted_at: tuple[int, ...]
    tested_at: tuple[int, ...]
    accepted_at: tuple[int, ...]
    draft_seconds: float
    verify_seconds: float
    overhead_seconds: float
    decode_seconds: float
    identities_ok: bool

    @property
    def per_token_acceptance(self) -> float | None:
        """Accepted over tested tokens: the papers' alpha."""
        return ratio(self.accepted, self.accepted + self.rejected)

    @property
    def tokens_per_step(self) -> float | None:
        """What a step yields."""
        return ratio(self.tokens, self.steps)


def pooled(runs: Iterable[Figures]) -> Counts:
    """The counts of several runs, added up before anything is divided."""
    all_runs = list(runs)
    longest = max((len(run.per_position) for run in all_runs), default=0)

    def at(name: str) -> tuple[int, ...]:
        return tuple(
            sum(getattr(run.per_position[place], name) for run in all_runs if place < len(run.per_position))
            for place in range(longest)
        )

    return Counts(
        runs=len(all_runs),
        steps=sum(run.steps for run in all_runs),
        tokens=sum(run.tokens_generated for run in all_runs),
        drafted=sum(run.drafted for run in all_runs),
        accepted=sum(run.accepted for run in all_runs),
        rejected=sum(run.rejected for run in all_runs),
        discarded=sum(run.discarded for run in all_runs),
        near_ties=sum(run.near_ties for run in all_runs),
        drafted_at=at("drafted"),
        tested_at=at("tested"),
        accepted_at=at("accepted"),
        draft_seconds=sum(run.draft_seconds for run in all_runs),
        verify_seconds=sum(run.verify_seconds for run in all_runs),
        overhead_seconds=sum(run.overhead_seconds for run in all_runs),
        decode_seconds=sum(run.decode_seconds for run in all_runs),
        identities_ok=all(run.identities_ok for run in all_runs),
    )


def of_trees(record: Mapping[str, Any]) -> bool:
    """Whether more tokens were drafted than places, which siblings share; no prediction speaks of such drafts.

    Parameters
    ----------
    record : mapping
        A run's record, or a row of a comparison or of a benchmark; see `drafted_by_position`.

    Examples
    --------
    >>> of_trees({"drafted": 7, "drafted_at": [4, 3]}), of_trees({"drafted": 12, "drafted_at": [4, 3]})
    (False, True)
    >>> of_trees({"drafted": 12, "per_position": [{"drafted": 4}, {"drafted": 3}]})
    True
    """
    drafted, at = record.get("drafted"), drafted_by_position(record)
    return drafted is not None and at is not None and drafted > sum(at)


def drafted_by_position(record: Mapping[str, Any]) -> list[int] | None:
    """The steps that drafted at least 1, 2, ... tokens in a row; None if the record does not say.

    Parameters
    ----------
    record : mapping
        Has `per_position` (`engine.report.Report.record`) or `drafted_at` (`engine.bench.rows`).
    """
    if "per_position" in record:
        return [position["drafted"] for position in record["per_position"]]
    at = record.get("drafted_at")
    return None if at is None else list(at)


def predicted_speed_up(counts: Counts, costs: Costs, proposal: str) -> float | None:
    """What a configuration should gain by its counts and the costs of single calls.

    See `speed_up_of_steps`; `proposal` is the drafter's name in `costs.draft`.
    """
    if not counts.steps:
        return None
    return speed_up_of_steps(
        [n_steps / counts.steps for n_steps in counts.drafted_at],
        [n_steps / counts.steps for n_steps in counts.accepted_at],
        costs.draft[proposal],
        costs.verify_cost,
        discarded=counts.discarded / counts.steps,
    )


def speed_up_of_steps(
    drafted: Sequence[float],
    kept: Sequence[float],
    draft: DraftCost,
    verify_cost: Callable[[int], float],
    *,
    discarded: float = 0.0,
) -> float:
    """Tokens that a step yields, over what it costs in plain calls of the target.

    A step yields 1 + sum over positions of the share of steps that kept it, less what was discarded.
    It costs the drafter's proposal and the mean of v(drafted + 1).

    Parameters
    ----------
    drafted, kept : sequence of float
        The share of steps that draft, and keep, at least 1, 2, ... tokens.
    draft : DraftCost
    verify_cost : callable
        v(m), the cost of a call for m rows.
    discarded : float, default 0
        Tokens of a step, on average, that an end token, a stop string or a limit cut off again.

    Examples
    --------
    >>> speed_up_of_steps([1.0], [0.6], DraftCost(0.0, 0.25, ()), lambda n_rows: 1.0, discarded=0.1)
    1.2
    """
    return (1 + sum(kept) - discarded) / step_cost(drafted, draft, verify_cost)


def step_cost(drafted: Sequence[float], draft: DraftCost, verify_cost: Callable[[int], float]) -> float:
    """What a step costs in plain calls of the target: the drafter's proposal and the verification.

    Parameters
    ----------
    drafted : sequence of float
        The share of steps that draft at least 1, 2, ... tokens; never rising.
    draft : DraftCost
    verify_cost : callable
        v(m), the cost of a call for m rows.

    Examples
    --------
    Half of the steps draft one token, the others none:

    >>> step_cost([0.5], DraftCost(0.1, 0.2, ()), lambda n_rows: 1.0 + 0.4 * (n_rows - 1))
    1.4
    """
    verify = sum(
        (here - further) * verify_cost(n_drafted + 1)
        for n_drafted, (here, further) in enumerate(pairwise([1.0, *drafted, 0.0]))
        if here > further
    )
    return draft.per_step + draft.per_token * sum(drafted) + verify


def predicted_by_the_paper(counts: Counts, costs: Costs, proposal: str, draft_length: int) -> float | None:
    """Theorem 3.8 with the pooled alpha and c: every step drafts all it may, and verifying costs one plain call."""
    alpha = counts.per_token_acceptance
    return None if alpha is None else speed_up(alpha, draft_length, costs.draft[proposal].of_call(draft_length))
