"""A confidence threshold that moves, so that a given share of what is drafted is kept."""

from __future__ import annotations

from engine.lengths.base import NamedPolicy, StepOutcome, checked_length
from engine.lengths.prospect import Prospect
from engine.lengths.threshold import checked_share

__all__ = ["AdaptiveThreshold"]

GOAL = 0.9  # of the acceptance rate
MEMORY = 0.5  # beta 1: the weight of the acceptance rate so far
STEP = 0.01  # epsilon
INERTIA = 0.9  # beta 2: the weight of the threshold so far


class AdaptiveThreshold(NamedPolicy):
    """Stop behind a token whose probability under the draft is below a threshold that moves with the acceptance.

    Draft & Verify (Zhang et al., arXiv 2309.08168). Behind every draft the acceptance rate r
    becomes (r + accepted / drafted) / 2. The threshold t then moves a tenth of the way to t + 0.01 if r is
    below 0.9; else to t - 0.01, but not if the draft was as long as it may be, when no lower threshold
    would make it longer. r begins at 0.9. The token at which it stops stays in the draft.

    Parameters
    ----------
    length : int, default 4
        The most tokens to draft, 0 to 32.
    threshold : float, default 0.6
        Where it begins, from 0 to 1.

    Raises
    ------
    SettingError
        If a value is out of range.

    Examples
    --------
    >>> policy = AdaptiveThreshold(4, 0.6)
    >>> policy.observe(StepOutcome(n_drafted=2, n_accepted=0)); round(policy.threshold, 6)
    0.601
    >>> for _ in range(9):
    ...     policy.observe(StepOutcome(n_drafted=2, n_accepted=2))
    >>> round(policy.threshold, 6)
    0.596
    """

    name = "draft-and-verify"
    guarantee = (
        "Stops behind a token that the draft gave less than a threshold, which rises while less than 0.9 of what is "
        "drafted is kept, and falls while more is."
    )
    source = "Draft & Verify: Zhang et al. 2023, arXiv 2309.08168"
    needs = "the draft's law"

    def __init__(self, length: int = 4, threshold: float = 0.6) -> None:
        self.length = checked_length(length)
        self.threshold = checked_share("the first threshold", threshold)
        self._acceptance_rate = GOAL

    def behind(self, prospect: Prospect, token: int) -> bool:
        """Whether the token was probable enough."""
        prob = prospect.prob(token)
        if prob is None or prob >= self.threshold:
            return True
        self.reason = f"the draft gave its last token {prob:.2f}, and the threshold is at {self.threshold:.3f}"
        return False

    def observe(self, outcome: StepOutcome) -> None:
        """See the class."""
        if not outcome.n_drafted:
            return
        rate = outcome.n_accepted / outcome.n_in_branch
        self._acceptance_rate = MEMORY * self._acceptance_rate + (1 - MEMORY) * rate
        aim = self.threshold
        if self._acceptance_rate < GOAL:
            aim += STEP
        elif outcome.n_drafted < self.length:
            aim -= STEP
        self.threshold = min(max(INERTIA * self.threshold + (1 - INERTIA) * aim, 0.0), 1.0)
