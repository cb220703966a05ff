"""Whether a configuration emits what plain decoding emits, and where it first does not.

At temperature 0 it should.  Where it does not, the lead of the plain run's best logit at that place
tells a near-tie, which rounding decides, from a real difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.bench.measure import Measurement
from engine.metrics import NEAR_TIE
from engine.side_by_side import first_difference

__all__ = ["Divergence", "divergences", "n_compared"]


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where a run first leaves the plain one.

    `position` counts emitted tokens from 0; `margin` is the lead of the plain run's best logit
    there, None where it is not known or one text only ends before the other.
    """

    prompt: str
    position: int
    margin: float | None

    @property
    def near_tie(self) -> bool:
        """Whether rounding alone may have decided it."""
        return self.margin is not None and self.margin < NEAR_TIE


def n_compared(runs: Sequence[Measurement], plain: Sequence[Measurement]) -> int:
    """How many prompts have a run that can be compared with a plain one."""
    cells = {(run.turn.prompt.identity, run.turn.repeat) for run in plain}
    return len({
        run.turn.prompt.identity for run in runs if (run.turn.prompt.identity, run.turn.repeat) in cells
    })  # fmt: skip


def divergences(runs: Sequence[Measurement], plain: Sequence[Measurement]) -> list[Divergence]:
    """The first divergence of every prompt that has one, over all repeats; earliest position first.

    Runs are compared with the plain run of the same prompt and repeat; those without one are left out.
    """
    plain_by_cell = {(run.turn.prompt.identity, run.turn.repeat): run for run in plain}
    found: dict[str, Divergence] = {}
    for run in runs:
        prompt = run.turn.prompt.identity
        other = plain_by_cell.get((prompt, run.turn.repeat))
        token = None if other is None else first_difference(run.ids, other.ids)
        if other is None or token is None:
            continue
        position = token - 1
        margin = other.margins[position] if position < min(len(other.margins), len(run.ids)) else None
        if prompt not in found or position < found[prompt].position:
            found[prompt] = Divergence(prompt, position, margin)
    return sorted(found.values(), key=lambda divergence: divergence.position)
