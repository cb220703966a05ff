"""When a guess is worth making: a drafter that knows how sure it is stands back where it is not.

The survival of a guess is the chance that it and all guesses before it in the step are kept. One
more guess pays where its survival is larger than what it adds to the cost of the step, in tokens at
the present speed: draft while S_{i+1} > rho * (c + v(i + 2) - v(i + 1)), with rho the tokens per
plain call, c the cost of a draft token and v the cost curve of verification, in plain calls (the
renewal-reward form of Leviathan et al., arXiv 2211.17192, theorem 3.8). Where rho is 1.4, c is 0.06,
v(2) is 1.13 and every further row adds 0.2 to 0.3, that gives the two numbers below: the first guess
of a head costs little more, because the head has been asked anyway.

The decision falls before a token is drawn, and looks at the law and not at the token, so it says
nothing of which token comes: the exact rule stays exact.
"""

from __future__ import annotations

from engine.lengths.base import NamedPolicy, checked_length
from engine.lengths.prospect import Prospect

__all__ = ["FIRST", "FURTHER", "Confident"]

FIRST = 0.15
"""The least survival of the first guess of a step."""

FURTHER = 0.35
"""Of every further one."""


class Confident(NamedPolicy):
    """Draft while the drafter itself gives the guess enough of a chance; one that cannot tell goes on.

    Parameters
    ----------
    length : int, default 4
        The most tokens to draft, 0 to 32.

    Raises
    ------
    SettingError
        If the length is out of range.

    Examples
    --------
    >>> policy = Confident()
    >>> policy.before(Prospect(0, survival=0.2)), policy.before(Prospect(1, survival=0.2)), policy.before(Prospect(1))
    (True, False, True)
    """

    name = "confident"
    guarantee = (
        "A draft head, the lookup beside it and suffix decoding stand back where they are not sure; other drafters go "
        "to the draft length."
    )
    source = "Leviathan et al. 2023, arXiv 2211.17192, theorem 3.8, with costs that were measured once"
    needs = "a drafter that knows its chances"

    def __init__(self, length: int = 4) -> None:
        self.length = checked_length(length)
        self.reason = "the drafter is not sure enough of a further guess" if length else ""

    def before(self, prospect: Prospect) -> bool:
        """Whether its survival is enough."""
        least = FURTHER if prospect.n_before else FIRST
        return prospect.survival is None or prospect.survival >= least

    def behind(self, prospect: Prospect, token: int) -> bool:
        """Whether a further guess could be enough: its survival is at most that of this one."""
        return prospect.survival is None or prospect.survival >= FURTHER
