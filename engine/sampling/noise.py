"""Random numbers keyed by (seed, position, purpose), and tokens drawn with them.

Those of a draft are keyed by its step as well. They come from the counter-based Philox of
Salmon et al., *Parallel Random Numbers: As Easy as 1, 2, 3* (SC 2011); no stream is shared, so a
draw does not depend on what happened before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from engine.errors import SettingError
from engine.sampling import philox
from engine.sampling.law_kinds import Law, OneHot

__all__ = ["Noise", "Purpose"]


PLACES = 2**32  # a step is shorter, so that no two places of a tree share a number


class Purpose:
    """What a random number is for, as a whole number: no two purposes at one position share a draw."""

    DRAFT: Final = 0
    ACCEPT: Final = 1
    TARGET: Final = 2


@dataclass(frozen=True, slots=True)
class Noise:
    """Uniform numbers in [0, 1) keyed by (seed, position, purpose), and those of a draft by its step as well.

    A position may be drafted several times, until a step gets to judge it. Its numbers for drafting and
    for accepting are new at every step (`of_step`), so that whoever has seen what became of an earlier
    guess, such as a length policy, knows nothing of the next. The target's number is the position's own.

    Parameters
    ----------
    seed : int
        A whole number from 0 to 2**64 - 1.
    step_start : int, optional
        The position at which the step begins; see `of_step`.

    Raises
    ------
    SettingError
        If the seed is out of range.

    Examples
    --------
    >>> noise = Noise(7)
    >>> noise.uniform(12, Purpose.DRAFT) == noise.of_step(12).uniform(12, Purpose.DRAFT)
    True
    >>> noise.of_step(12).uniform(13, Purpose.DRAFT) == noise.of_step(13).uniform(13, Purpose.DRAFT)
    False
    """

    seed: int
    step_start: int | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.seed, (int, Integral)) and 0 <= self.seed < 2**64):  # nearly always an int
            raise SettingError(f"seed is {self.seed}; it must be a whole number from 0 to 2**64 - 1")

    def of_step(self, start: int) -> Self:
        """The numbers of the step that begins at absolute position `start`."""
        return type(self)(self.seed, start)

    def uniform(self, position: int, purpose: int, place: int = 0) -> float:
        """The number for the token at absolute `position` (prompt included); in a tree, for one place of that depth."""
        return philox.uniform(int(self.seed), self._counter(position, purpose, place))

    def uniforms(self, n: int, position: int, purpose: int, place: int = 0) -> NDArray[np.float64]:
        """As many numbers as asked for, the first of them that of `uniform`; shape (n,)."""
        counter = (0, *self._counter(position, purpose, place))
        return np.random.Generator(np.random.Philox(key=self.seed, counter=counter)).random(n)

    def in_step(self, position: int, purpose: int) -> int:
        """What tells the numbers of different steps for one position apart: the token's place in its step."""
        return 0 if self.step_start is None or purpose == Purpose.TARGET else position - self.step_start

    def draw(self, law: Law, position: int, purpose: int, place: int = 0) -> int:
        """A token drawn from `law` with the number for that position, purpose and place."""
        if isinstance(law, OneHot):  # needs no number
            return law.token
        return law.draw(self.uniform(position, purpose, place))

    def _counter(self, position: int, purpose: int, place: int) -> tuple[int, int, int]:
        return int(position), int(purpose), int(self.in_step(position, purpose) + place * PLACES)
