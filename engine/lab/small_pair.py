"""A pair of laws over two to five tokens, the same at every position: what a user drags, and the worked cases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.errors import SettingError

__all__ = ["FEWEST_TOKENS", "MOST_TOKENS", "SmallPair"]

FEWEST_TOKENS, MOST_TOKENS = 2, 5
NAMES = "abcde"


@dataclass(frozen=True, slots=True)
class SmallPair:
    """Target and draft over the same few tokens.

    Parameters
    ----------
    target, draft : tuple of float
        Probabilities, or any numbers that are not negative and not all 0: they are made to sum to 1.
    target_shift : float, default 0.0
        Added to all of the target's logits, which are the logarithms of its probabilities otherwise. It changes no
        law, but it changes what a rule does that looks at raw logits.

    Raises
    ------
    SettingError
        If the laws have different lengths, fewer than two or more than five tokens, or a number cannot be used.

    Examples
    --------
    >>> SmallPair((1, 1), (3.0, 1.0)).draft
    (0.75, 0.25)
    """

    target: tuple[float, ...]
    draft: tuple[float, ...]
    target_shift: float = 0.0

    def __post_init__(self) -> None:
        for name in ("target", "draft"):
            object.__setattr__(self, name, _normalised(name, getattr(self, name)))
        if len(self.target) != len(self.draft):
            raise SettingError(
                f"the target has {len(self.target)} tokens and the draft {len(self.draft)}; both need the same"
            )
        if not math.isfinite(self.target_shift):
            raise SettingError(f"the shift of the target's logits is {self.target_shift}; it must be a number")

    @property
    def names(self) -> tuple[str, ...]:
        """What the tokens are called: a, b, c, ..."""
        return tuple(NAMES[: len(self.target)])

    def target_row(self, tokens: tuple[int, ...]) -> NDArray[np.float64]:
        """The target's logits, whatever the tokens before."""
        return _logarithms(self.target) + self.target_shift

    def draft_row(self, tokens: tuple[int, ...]) -> NDArray[np.float64]:
        """The draft's logits, whatever the tokens before."""
        return _logarithms(self.draft)

    def resized(self, n_tokens: int) -> SmallPair:
        """The pair over another number of tokens: the last ones go, or new ones come that are as probable as the mean.

        Examples
        --------
        >>> SmallPair((0.5, 0.5), (1.0, 0.0)).resized(3).target
        (0.3333333333333333, 0.3333333333333333, 0.3333333333333333)
        """
        return SmallPair(_resized(self.target, n_tokens), _resized(self.draft, n_tokens), self.target_shift)


def _normalised(name: str, numbers: Sequence[float]) -> tuple[float, ...]:
    if not FEWEST_TOKENS <= len(numbers) <= MOST_TOKENS:
        raise SettingError(f"the {name} has {len(numbers)} tokens; {FEWEST_TOKENS} to {MOST_TOKENS} are enumerated")
    if not all(math.isfinite(number) and number >= 0 for number in numbers) or not 0 < sum(numbers) < math.inf:
        raise SettingError(
            f"the {name}'s probabilities are {', '.join(map(str, numbers))}; none may be negative, and not all 0"
        )
    total = math.fsum(numbers)
    return tuple(float(number) / total for number in numbers)


def _resized(probs: tuple[float, ...], n_tokens: int) -> tuple[float, ...]:
    kept = probs[:n_tokens]
    if sum(kept) == 0:
        return (1.0,) * n_tokens
    return kept + (sum(kept) / len(kept),) * (n_tokens - len(kept))


def _logarithms(probs: tuple[float, ...]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):  # a probability of 0 is a logit of -inf
        logits: NDArray[np.float64] = np.log(np.array(probs))
    return logits
