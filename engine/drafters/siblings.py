"""Several guesses for the same place, each with the law that it was actually drawn from."""

from __future__ import annotations

import numpy as np

from engine.acceptance.tree import Children
from engine.laws import highest, top
from engine.sampling import Dense, Law, Noise, OneHot, Purpose, Sparse

__all__ = ["siblings"]


def siblings(law: Law, n: int, how: Children, *, noise: Noise, position: int, place: int) -> list[tuple[int, Law]]:
    """At most n guesses, in the order in which they are to be tried.

    Parameters
    ----------
    law : Law
        The draft's, at this place.
    n : int
        At least 1. Fewer come where the law knows fewer tokens.
    how : {"independent", "distinct", "best"}
        Each drawn from `law` by itself; drawn without replacement, which is to take the largest of
        log probability + Gumbel noise (Kool et al., arXiv 1903.06059), each then having the law without those before
        it; or the most probable tokens, which are no draws, so that each has a law of its own.
    noise, position, place
        The draws are those of `position`, at the places from `place` on.

    Examples
    --------
    >>> guess = Dense(np.array([0.5, 0.3, 0.2]))
    >>> at = dict(noise=Noise(1), position=9, place=0)
    >>> siblings(guess, 2, "best", **at)
    [(0, OneHot(token=0)), (1, OneHot(token=1))]
    >>> [(token, law.dense(3).round(3).tolist()) for token, law in siblings(guess, 2, "distinct", **at)]
    [(0, [0.5, 0.3, 0.2]), (1, [0.0, 0.6, 0.4])]
    """
    if how == "best":
        return [(token, OneHot(token)) for token in top(law, n)]
    if n == 1 or isinstance(law, OneHot):  # a second draw from one token would be that token again
        return [(noise.draw(law, position, Purpose.DRAFT, place), law)]
    if how == "independent":
        return [(noise.draw(law, position, Purpose.DRAFT, place + k), law) for k in range(n)]
    possible = np.flatnonzero(law.probs)
    # The largest of log(prob) + Gumbel is the shortest of exponential times over prob: Gumbel = -log(time).
    times = -np.log1p(-noise.uniforms(len(possible), position, Purpose.DRAFT, place)) / law.probs[possible]
    best = possible[highest(-times, n)]
    drawn: list[tuple[int, Law]] = []
    for index in best:  # of the row of probabilities
        drawn.append((int(law.tokens[index]) if isinstance(law, Sparse) else int(index), law))
        law = _without(law, int(index))
    return drawn


def _without(law: Dense | Sparse, index: int) -> Dense | Sparse:
    """The law that gives nothing to the token at an index of its row, normalised again."""
    probs = law.probs.copy()
    probs[index] = 0.0
    mass = probs.sum()
    if mass > 0:
        probs /= mass
    return Sparse(law.tokens, probs) if isinstance(law, Sparse) else Dense(probs)
