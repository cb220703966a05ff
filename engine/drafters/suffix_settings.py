"""What may be set of suffix decoding: how far its proposals go, and which continuation is taken.

After Oliaro et al., *SuffixDecoding* (arXiv 2411.04975), with the defaults of vLLM's method "suffix".
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import Literal

from engine.errors import SettingError

__all__ = ["DEPTH", "Choice", "Speculation"]

Choice = Literal["frequent", "recent"]
"""Which continuation: the most frequent (of several, the one seen last), or the one seen last."""

MOST = 32
DEPTH = 32
"""Tokens of a path: the longest match and the proposal behind it together, where they occurred more than once."""


@dataclass(frozen=True, slots=True)
class Speculation:
    """How far a proposal goes.

    Attributes
    ----------
    factor, offset : float, default 1.0, 0.0
        A match of m tokens allows floor(factor * m + offset) tokens. 0 to 32, and -32 to 32.
    min_prob : float, default 0.1
        The least estimated probability, 0 to 1, that a token and all before it are kept.

    Raises
    ------
    SettingError
        If a value is outside its range, or no match would allow a token.

    Examples
    --------
    >>> Speculation(factor=2).allowed(3, limit=4), Speculation(factor=2).allowed(3, limit=32)
    (4, 6)
    """

    factor: float = 1.0
    offset: float = 0.0
    min_prob: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.factor <= MOST:
            raise SettingError(f"the suffix factor is {self.factor}; it must be a number from 0 to {MOST}")
        if not -MOST <= self.offset <= MOST:
            raise SettingError(f"the suffix offset is {self.offset}; it must be a number from -{MOST} to {MOST}")
        if not 0 <= self.min_prob <= 1:
            raise SettingError(f"suffix decoding's least probability is {self.min_prob}; it must be from 0 to 1")
        if self.allowed(DEPTH - 1, limit=1) < 1:
            raise SettingError(
                f"with the suffix factor {self.factor} and the offset {self.offset} no match is long enough, and it "
                "would never propose a token; raise one of them"
            )

    def allowed(self, n_matched: int, limit: int) -> int:
        """How many tokens may follow a match of so many."""
        return min(limit, floor(self.factor * n_matched + self.offset))
