"""How far to guess: a policy that is asked before every step and told every outcome."""

from __future__ import annotations

from numbers import Integral
from typing import Protocol

from engine.errors import SettingError

__all__ = ["MAX_DRAFT_LENGTH", "FixedLength", "LengthPolicy"]

MAX_DRAFT_LENGTH = 32


class LengthPolicy(Protocol):
    """Decides how many tokens to draft in the next step."""

    def next_length(self) -> int:
        """Tokens to draft at most; 0 makes the step a plain one."""

    def observe(self, n_drafted: int, n_accepted: int) -> None:
        """Learn how the last step went."""


class FixedLength:
    """The same draft length at every step.

    Parameters
    ----------
    length : int, default 4
        From 0 (plain decoding) to 32.

    Raises
    ------
    SettingError
        If it is out of range.

    Examples
    --------
    >>> FixedLength(4).next_length()
    4
    """

    def __init__(self, length: int = 4) -> None:
        if not (isinstance(length, Integral) and 0 <= length <= MAX_DRAFT_LENGTH):
            raise SettingError(f"the draft length is {length}; it must be a whole number from 0 to {MAX_DRAFT_LENGTH}")
        self.length: int = length

    def next_length(self) -> int:
        """The fixed length."""
        return self.length

    def observe(self, n_drafted: int, n_accepted: int) -> None:
        """Nothing to learn."""
