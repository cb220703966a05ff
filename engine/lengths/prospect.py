"""What a drafter shows of a guess, each number worked out only when a policy asks for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from engine.laws import entropy
from engine.sampling import Law, OneHot, Sampling, law

__all__ = ["Prospect", "spread"]


class Prospect:
    """A guess of a draft, just before or just behind the draw of its token.

    Parameters
    ----------
    n_before : int
        Tokens drafted before it in this step.
    survival : float, optional
        The chance that it and all guesses before it are kept, as the drafter itself judges it; None
        for a drafter that cannot tell.
    law : callable, optional
        Gives its law, see `spread`; without one the drafter has none, as a lookup.

    Examples
    --------
    >>> prospect = Prospect(0, law=lambda: spread(np.log([0.5, 0.25, 0.25]), OneHot(0)))
    >>> round(prospect.prob(0), 6), round(prospect.entropy, 6), Prospect(0).entropy
    (0.5, 1.039721, None)
    """

    def __init__(self, n_before: int, *, survival: float | None = None, law: Callable[[], Law] | None = None) -> None:
        self.n_before = n_before
        self.survival = survival
        self._give_law = law

    @cached_property
    def law(self) -> Law | None:
        """How sure the drafter is of what: the law of the guess, see `spread`; None where it has none."""
        return None if self._give_law is None else self._give_law()

    @property
    def entropy(self) -> float | None:
        """Of the law, in nats."""
        return None if self.law is None else entropy(self.law)

    def prob(self, token: int) -> float | None:
        """Of a token, under the law."""
        return None if self.law is None else self.law.prob(token)


def spread(logits: NDArray[np.floating], drawn_from: Law) -> Law:
    """The law that a guess is drawn from or, where that is a certain choice, the softmax of its logits.

    At temperature 0 the law that is drawn from is one-hot and says nothing of how sure a draft is. The
    softmax does (temperature 1, no top-k, no top-p), which is also what transformers looks at there.

    Examples
    --------
    >>> spread(np.log([0.5, 0.5]), OneHot(0)).dense(2).tolist()
    [0.5, 0.5]
    """
    return law(logits, Sampling(temperature=1)) if isinstance(drawn_from, OneHot) else drawn_from
