"""What a rule does with a draft, as probabilities instead of draws."""

from __future__ import annotations

from collections.abc import Sequence

from engine.sampling import Law

__all__ = ["Chances", "one_by_one"]

Chances = list[tuple[float, Law]]
"""For n = 0, 1, ... the probability that exactly n drafted tokens are kept, and the law of the target's token then."""


def one_by_one(keep_probs: Sequence[float], laws: Sequence[Law]) -> Chances:
    """The chances of a rule that tests the tokens in order, up to the first that it refuses.

    Parameters
    ----------
    keep_probs : sequence of float, length n
        The probability that each token is kept if those before it were.
    laws : sequence of Law, length n + 1
        The law of the target's token if that many tokens are kept.

    Examples
    --------
    >>> from engine.sampling import OneHot
    >>> [chance for chance, law in one_by_one([0.5, 0.25], [OneHot(0), OneHot(1), OneHot(2)])]
    [0.5, 0.375, 0.125]
    """
    chances: Chances = []
    reached = 1.0
    for keep_prob, law in zip(keep_probs, laws[:-1], strict=True):
        chances.append((reached * (1 - keep_prob), law))
        reached *= keep_prob
    return [*chances, (reached, laws[-1])]
