"""The same draft length at every step."""

from __future__ import annotations

from numbers import Integral

from engine.errors import SettingError
from engine.lengths.base import MAX_DRAFT_LENGTH

__all__ = ["FixedLength"]


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
