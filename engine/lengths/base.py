"""What a length policy is: how far to draft, decided before a step, within it, and from every outcome.

Exactness asks two things of a policy. A token that was drawn is never dropped because of its value:
what a policy says behind it is of the tokens after it. And what it remembers must say nothing of draws
still to come: a guess that nobody judged is drawn anew at the next step, with a number of its own
(`engine.sampling.Noise.of_step`).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from numbers import Integral
from typing import Protocol

from engine.errors import SettingError
from engine.lengths.prospect import Prospect

__all__ = [
    "ALWAYS",
    "MAX_DRAFT_LENGTH",
    "Always",
    "GoOn",
    "LengthPolicy",
    "NamedPolicy",
    "StepOutcome",
    "checked_length",
]

MAX_DRAFT_LENGTH = 32


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """How a step went.

    Attributes
    ----------
    n_drafted, n_accepted : int
        Tokens that were drafted, and kept; of a tree, in its longest branch.
    draft_seconds, verify_seconds : float
        What the proposal and the target's call took, by the run's own clock.
    kept_whole : bool
        No drafted token was refused, though a tree may have had a longer branch than the one that was kept.

    Examples
    --------
    >>> StepOutcome(4, 2).n_in_branch, StepOutcome(4, 2, kept_whole=True).n_in_branch
    (4, 2)
    """

    n_drafted: int
    n_accepted: int
    draft_seconds: float = 0.0
    verify_seconds: float = 0.0
    kept_whole: bool = False

    @property
    def n_in_branch(self) -> int:
        """How many tokens might have been kept on the way that was gone: all of a chain, in a tree those of its branch.

        Of a branch in which a token was refused it is not known how far it went on; it counts as the longest.
        """
        return self.n_accepted if self.kept_whole else self.n_drafted


class GoOn(Protocol):
    """What a drafter asks within a draft. One that knows nothing of its guesses need not ask."""

    @property
    def reason(self) -> str:
        """Why it last said no, or gave the length 0, in words for a user; empty if there is nothing to say."""

    def before(self, prospect: Prospect) -> bool:
        """Whether a token is to be drawn: decided by its law, before anybody knows the token."""

    def behind(self, prospect: Prospect, token: int) -> bool:
        """Whether to go on behind a token that was drawn from that guess, and that stays in the draft."""


class Always:
    """Goes on to the length that was asked for.

    Examples
    --------
    >>> ALWAYS.before(Prospect(0)), ALWAYS.behind(Prospect(0), token=7)
    (True, True)
    """

    reason = ""

    def before(self, prospect: Prospect) -> bool:
        """Always."""
        return True

    def behind(self, prospect: Prospect, token: int) -> bool:
        """Always."""
        return True


ALWAYS = Always()
"""What a drafter is given where nothing but the length limits it."""


class LengthPolicy(GoOn, Protocol):
    """Decides how many tokens to draft, and is told every outcome.

    A policy of your own may inherit from it: within a draft it then always goes on, and learns nothing.
    """

    reason: str = ""

    @abstractmethod
    def next_length(self) -> int:
        """The most tokens to draft in the next step; 0 makes it a plain one, and no drafter is asked."""

    def before(self, prospect: Prospect) -> bool:
        """See `GoOn.before`."""
        return True

    def behind(self, prospect: Prospect, token: int) -> bool:
        """See `GoOn.behind`."""
        return True

    def observe(self, outcome: StepOutcome) -> None:
        """Learn how the last step went."""
        return


class NamedPolicy(LengthPolicy, Protocol):
    """A policy that can be chosen by name.

    Attributes
    ----------
    name : str
    guarantee : str
        What it does, in a sentence for a user.
    source : str
        Where it comes from.
    needs : str
        What it looks at.
    length : int
        The most tokens that it drafts.
    """

    name: str
    guarantee: str
    source: str
    needs: str
    length: int

    def next_length(self) -> int:
        """The most, always."""
        return self.length


def checked_length(length: int) -> int:
    """The most tokens that a policy may ask for.

    Raises
    ------
    SettingError
        If it is no whole number from 0 to 32.
    """
    if not (isinstance(length, Integral) and 0 <= length <= MAX_DRAFT_LENGTH):
        raise SettingError(f"the draft length is {length}; it must be a whole number from 0 to {MAX_DRAFT_LENGTH}")
    return length
