"""Numbers about laws: the most probable tokens, entropy, and how far two laws are apart.

A one-hot law costs nothing, a sparse one as much as it has tokens; only dense ones are read whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.sampling import Dense, Law, OneHot, Sparse

__all__ = ["below", "entropy", "highest", "probs_at", "top", "total_variation"]

Array = NDArray[np.float64]

LIKELY = (1e-3, 1e-5, 0.0)


def highest(values: NDArray[np.floating], n: int) -> NDArray[np.int64]:
    """The places of the n highest values, highest first; the lowest place first on a tie.

    Examples
    --------
    >>> highest(np.array([0.1, 0.4, 0.1, 0.4]), 3).tolist()
    [1, 3, 0]
    """
    places = np.arange(len(values))
    if n < len(values):
        least = np.partition(values, -n)[-n]
        above = np.flatnonzero(values > least)
        places = np.concatenate([above, np.flatnonzero(values == least)[: n - len(above)]])
    return places[np.lexsort((places, -values[places]))]


def top(law: Law, n: int) -> list[int]:
    """The n most probable tokens, or fewer if fewer have a probability; see `highest`.

    Examples
    --------
    >>> top(Dense(np.array([0.1, 0.0, 0.9])), 3), top(OneHot(7), 3)
    ([2, 0], [7])
    """
    if isinstance(law, OneHot):
        return [law.token]
    for least in LIKELY:  # ordering a whole vocabulary is dear, and some tokens nearly always stand out
        likely = np.flatnonzero(law.probs > least)
        if len(likely) >= n:
            break
    places = likely[highest(law.probs[likely], n)]
    return [int(token) for token in (law.tokens[places] if isinstance(law, Sparse) else places)]


def probs_at(law: Law, tokens: Sequence[int]) -> Array:
    """The probabilities of some tokens, in their order.

    Examples
    --------
    >>> probs_at(Sparse(np.array([2, 5]), np.array([0.25, 0.75])), [5, 3]).tolist()
    [0.75, 0.0]
    """
    return np.array([law.prob(int(token)) for token in tokens], dtype=np.float64)


def entropy(law: Law) -> float:
    """Shannon's entropy in nats.

    Examples
    --------
    >>> entropy(OneHot(3)), round(entropy(Dense(np.array([0.5, 0.5, 0.0]))), 6)
    (0.0, 0.693147)
    """
    if isinstance(law, OneHot):
        return 0.0
    logs = np.zeros_like(law.probs)
    np.log(law.probs, out=logs, where=law.probs > 0)
    return max(0.0, -float(law.probs @ logs))


def total_variation(one: Law, other: Law) -> float:
    """Half the sum of the absolute differences of two laws: 0 if they are the same, 1 if they share no token.

    Equals the sum of what `one` has more than `other`, which is why the smaller support is enough.

    Examples
    --------
    >>> round(total_variation(Dense(np.array([0.5, 0.3, 0.2])), Dense(np.array([0.6, 0.3, 0.1]))), 6)
    0.1
    >>> total_variation(OneHot(1), OneHot(1)), total_variation(OneHot(1), OneHot(2))
    (0.0, 1.0)
    """
    for few, more in ((one, other), (other, one)):
        if isinstance(few, OneHot):
            return 1.0 - more.prob(few.token)
    for few, more in ((one, other), (other, one)):
        if isinstance(few, Sparse):
            at = more.probs[few.tokens] if isinstance(more, Dense) else probs_at(more, few.tokens.tolist())
            return float(np.maximum(few.probs - at, 0.0).sum())
    assert isinstance(one, Dense)
    assert isinstance(other, Dense)
    return 0.5 * float(np.abs(one.probs - other.probs).sum())


def below(law: Law, token: int) -> float:
    """The mass of the ids below `token`: where its stretch of the line from 0 to 1 begins.

    Examples
    --------
    >>> below(Dense(np.array([0.5, 0.25, 0.25])), 2)
    0.75
    """
    if isinstance(law, OneHot):
        return float(token > law.token)
    n_below = int(np.searchsorted(law.tokens, token)) if isinstance(law, Sparse) else token
    return float(law.probs[:n_below].sum())
