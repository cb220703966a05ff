"""Stop where the draft's entropy bounds the chance of a further guess too low."""

from __future__ import annotations

import math

from engine.lengths.base import NamedPolicy, checked_length
from engine.lengths.prospect import Prospect
from engine.lengths.threshold import checked_share

__all__ = ["EntropyBound"]

FACTOR = 0.2
"""The paper's kappa."""


class EntropyBound(NamedPolicy):
    """Draft while 1 - sqrt(0.2 H) is at least a threshold, with H the entropy of the draft's law in nats.

    AdaEDL (Agrawal, Jeon, Lee, arXiv 2410.18351): the left side approximates a lower bound on the chance
    that the guess is kept. The decision falls before the token is drawn. The paper moves its threshold
    with the acceptance; here it stays, and `AdaptiveThreshold` is the policy that moves one. At
    temperature 0 the entropy is that of the softmax of the draft's logits. A lookup has no law and goes to
    the draft length.

    Parameters
    ----------
    length : int, default 4
        The most tokens to draft, 0 to 32.
    least : float, default 0.4
        What the bound must reach, from 0 to 1; 0.4 is reached up to 1.8 nats.

    Raises
    ------
    SettingError
        If a value is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from engine.sampling import Dense
    >>> policy = EntropyBound(4, 0.4)
    >>> [policy.before(Prospect(0, law=lambda n=n: Dense(np.full(n, 1 / n)))) for n in (2, 6, 7)]
    [True, True, False]
    """

    name = "entropy-bound"
    guarantee = "Stops before a guess for which 1 - sqrt(0.2 x entropy of the draft) is below the threshold."
    source = "AdaEDL: Agrawal et al. 2024, arXiv 2410.18351"
    needs = "the draft's law"

    def __init__(self, length: int = 4, least: float = 0.4) -> None:
        self.length = checked_length(length)
        self.least = checked_share("the entropy bound", least)

    def before(self, prospect: Prospect) -> bool:
        """Whether the bound is high enough."""
        entropy = prospect.entropy
        if entropy is None or (bound := 1 - math.sqrt(FACTOR * entropy)) >= self.least:
            return True
        self.reason = f"the draft's entropy of {entropy:.2f} nats promises an acceptance of {max(bound, 0):.2f} only"
        return False
