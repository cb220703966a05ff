"""Random numbers keyed by (seed, position, purpose), and tokens drawn with them.

They come from numpy's counter-based Philox, after Salmon et al., *Parallel Random Numbers: As Easy
as 1, 2, 3* (SC 2011); no stream is shared, so the draw at a position does not depend on what
happened before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from numbers import Integral

import numpy as np

from engine.errors import SettingError
from engine.sampling.law_kinds import Law

__all__ = ["Noise", "Purpose"]


class Purpose(IntEnum):
    """What a random number is for: no two purposes at one position share a draw."""

    DRAFT = 0
    ACCEPT = 1
    TARGET = 2


@dataclass(frozen=True, slots=True)
class Noise:
    """Uniform numbers in [0, 1) keyed by (seed, position, purpose).

    Examples
    --------
    >>> Noise(7).uniform(12, Purpose.ACCEPT) == Noise(7).uniform(12, Purpose.ACCEPT)
    True
    """

    seed: int

    def __post_init__(self) -> None:
        if not (isinstance(self.seed, Integral) and 0 <= self.seed < 2**64):
            raise SettingError(f"seed is {self.seed}; it must be a whole number from 0 to 2**64 - 1")

    def uniform(self, position: int, purpose: Purpose) -> float:
        """The number for the token at absolute `position` (prompt included)."""
        counter: Sequence[int] = (0, position, int(purpose), 0)
        return float(np.random.Generator(np.random.Philox(key=self.seed, counter=counter)).random())

    def draw(self, law: Law, position: int, purpose: Purpose) -> int:
        """A token drawn from `law` with the number for that position and purpose."""
        return law.draw(self.uniform(position, purpose))
