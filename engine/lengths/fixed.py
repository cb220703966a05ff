"""The same draft length at every step."""

from __future__ import annotations

from engine.lengths.base import NamedPolicy, checked_length

__all__ = ["FixedLength"]


class FixedLength(NamedPolicy):
    """The same draft length at every step, after Leviathan et al., arXiv 2211.17192.

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

    name = "fixed"
    guarantee = "Drafts to the draft length at every step."
    source = "Leviathan et al. 2023, arXiv 2211.17192"
    needs = "nothing"

    def __init__(self, length: int = 4) -> None:
        self.length = checked_length(length)
