"""The figures of one rule over a whole trace, summed up from what it made of each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.acceptance.base import AcceptanceRule
from engine.lab.watcher import TraceStep
from engine.metrics import ratio

__all__ = ["RuleOnTrace", "summary"]

SAME = 1e-12
"""A distance below this is rounding."""


@dataclass(frozen=True, slots=True)
class RuleOnTrace:
    """One rule over the whole trace; what is undefined is None.

    Attributes
    ----------
    name : str
    lossless : bool
    own : bool
        Whether the run was made with it.
    refusal : str
        Why it could not judge some steps, in words for a user; empty if it could.
    steps : int
        Judged ones; those that drafted nothing are among them.
    drafted, accepted : int
    tokens_per_step : float or None
        With the run's draws.
    expected_tokens_per_step : float or None
        Over all draws, given the drafts.
    mean_bias, largest_bias : float or None
        Over the steps that drafted and where it is known.
    bias_unknown : float
        To within this the biases are known.
    without_bias : int
        Steps that drafted and where the bias is not known.
    other_first : int
        Steps where the rule would have asked for another first token.
    shared_numbers : bool or None
        None for most rules, and where no draft was drawn. For a rule that draws its own token at each position,
        whether the draft shared its random numbers: what it accepts with the run's draws hangs on that.
    """

    name: str
    lossless: bool
    own: bool
    refusal: str
    steps: int
    drafted: int
    accepted: int
    tokens_per_step: float | None
    expected_tokens_per_step: float | None
    mean_bias: float | None
    largest_bias: float | None
    bias_unknown: float
    without_bias: int
    other_first: int
    shared_numbers: bool | None

    @property
    def keeps_the_law(self) -> bool:
        """Whether the first token of every step is known to have the target's law, to within `bias_unknown`."""
        return not self.without_bias and (self.largest_bias is None or self.largest_bias <= SAME + self.bias_unknown)


def summary(
    rule: AcceptanceRule, steps: Sequence[TraceStep], refusal: str, *, own: bool, coupled: bool | None
) -> RuleOnTrace:
    """Sum up what a rule made of the steps that it judged.

    Parameters
    ----------
    rule : AcceptanceRule
    steps : sequence of TraceStep
    refusal : str
        Why it did not judge all of them; empty if it did.
    own : bool
        Whether the run was made with it.
    coupled : bool
        Whether drafts and target shared their random numbers; None if no draft was drawn.
    """
    judged = [(step, step.judged[rule.name]) for step in steps if rule.name in step.judged]
    drafting = [one for step, one in judged if step.drafted]
    biases = [one.bias for one in drafting if one.bias is not None]
    accepted = sum(one.accepted for _, one in judged)
    return RuleOnTrace(
        name=rule.name,
        lossless=rule.lossless,
        own=own,
        refusal=refusal,
        steps=len(judged),
        drafted=sum(step.drafted for step, _ in judged),
        accepted=accepted,
        tokens_per_step=ratio(accepted + len(judged), len(judged)),
        expected_tokens_per_step=ratio(sum(one.expected_tokens for _, one in judged), len(judged)),
        mean_bias=ratio(sum(biases), len(biases)),
        largest_bias=max(biases, default=None),
        bias_unknown=max((one.bias_unknown for _, one in judged), default=0.0),
        without_bias=len(drafting) - len(biases),
        other_first=sum(not one.own_first for _, one in judged),
        shared_numbers=coupled if rule.lossless and rule.needs == "nothing" else None,
    )
