"""From one row of logits to its processed law, and to a log-probability.

Order: penalties, temperature, min-p, top-k, top-p (vLLM's; `docs/sampling.md` has the source of each
and where other programs differ).  Temperature 0 gives a one-hot law at the argmax of the penalised
logits and pays for no softmax.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.sampling import integer
from engine.sampling.law_kinds import Dense, Law, OneHot, Weighted
from engine.sampling.penalties import penalised
from engine.sampling.settings import Arithmetic, Sampling

__all__ = ["law", "law_of_scores", "log_probability"]

Array = NDArray[np.float64]

IN_FLOAT32 = (0.01, 100.0)  # temperatures between which float32 scores are exponentiated as they are
WITHOUT_SHIFT = 80.0  # exp(80) is within float32; what is then 0 beside a best score from 0 up is below 1e-37 of it


def law(
    logits: NDArray[np.floating],
    sampling: Sampling,
    context: Sequence[int] | None = None,
    *,
    tokens: NDArray[np.int64] | None = None,
) -> Law:
    """The processed law of one row of logits.

    Parameters
    ----------
    logits : array, shape (vocab,)
        Natural-log scores up to a constant; -inf bans a token. At least one must be finite.
    sampling : Sampling
    context : sequence of int, optional
        All tokens before the row, drafted ones included; needed where a penalty is set.
    tokens : array of int, shape (vocab,), optional
        The ids that the logits belong to, in rising order, if they are not 0, 1, 2, ...; the law is
        one of places in any case (`Sparse.over` makes one of tokens of it).

    Returns
    -------
    Law
        `OneHot` at temperature 0, else `Dense`, whose float64 row sums to 1. Scores in float32
        are exponentiated in float32, which is several times as fast: each probability is then good
        to about six digits, and both sides of an acceptance test use the same.

    Raises
    ------
    SettingError
        If a penalty is set and there is no context.

    Examples
    --------
    >>> law(np.log([0.5, 0.3, 0.2]), Sampling(temperature=1, top_k=2)).dense(3).round(3).tolist()
    [0.625, 0.375, 0.0]
    >>> law(np.array([1.0, 3.0, 3.0]), Sampling(temperature=0))
    OneHot(token=1)
    >>> law(np.array([1.0, 3.0, 3.0]), Sampling(temperature=0, repetition_penalty=2), [1])
    OneHot(token=2)
    """
    return law_of_scores(penalised(np.asarray(logits), sampling, context, tokens=tokens), sampling)


def law_of_scores(scores: NDArray[np.floating], sampling: Sampling, best: float | None = None) -> Law:
    """The law of logits that have their penalties behind them (`penalised`): all further steps of `law`.

    `best` is the highest of them, where it is known already.

    Examples
    --------
    >>> law_of_scores(np.log([0.5, 0.3, 0.2]), Sampling(temperature=1, min_p=0.5)).dense(3).round(3).tolist()
    [0.625, 0.375, 0.0]
    """
    if sampling.greedy:
        return OneHot(int(scores.argmax()))
    if scores.dtype != np.float32 or not IN_FLOAT32[0] <= sampling.temperature <= IN_FLOAT32[1]:
        scores = scores.astype(np.float64)
    n_tokens, kept = len(scores), None
    if 0 < sampling.top_k < n_tokens:  # goes with min-p in either order
        kept = np.flatnonzero(scores >= np.partition(scores, -sampling.top_k)[-sampling.top_k])
        scores = scores[kept]
    weights = _weights(scores, sampling, best)
    if sampling.min_p > 0:
        weights = np.where(weights >= sampling.min_p * float(weights.max()), weights, 0)
    if kept is not None:
        few, weights = weights, np.zeros(n_tokens, weights.dtype)
        weights[kept] = few
    found = Weighted(weights)
    return found if sampling.top_p == 1 else Dense(_nucleus(found.probs, sampling.top_p))


def _weights(
    scores: NDArray[np.floating], sampling: Sampling, best: float | None
) -> NDArray[np.floating] | NDArray[np.uint32]:
    """exp(score / temperature), but for a common factor."""
    if sampling.arithmetic == "integer":
        return integer.exponentials(scores, sampling.temperature)
    highest = float(scores.max()) if best is None else best
    if sampling.temperature != 1 or not 0 <= highest <= WITHOUT_SHIFT:
        with np.errstate(over="ignore"):  # a score too far below the best becomes -inf, and its probability 0
            scores = (scores - scores.dtype.type(highest)) / sampling.temperature
    weights: NDArray[np.floating] = np.exp(scores)
    return weights


def _nucleus(probs: Array, top_p: float) -> Array:
    """The smallest set of most probable tokens whose mass reaches top_p, normalised; lowest ids first on a tie."""
    # Tokens below this have less than (1 - top_p) / 2 together, so that the set is among the others.
    likely = np.flatnonzero(probs >= (1 - top_p) / (2 * len(probs)))
    order = likely[np.argsort(-probs[likely], kind="stable")]
    n_kept = int(np.searchsorted(np.cumsum(probs[order]), top_p)) + 1
    kept = order[:n_kept]
    nucleus = np.zeros_like(probs)
    nucleus[kept] = probs[kept] / probs[kept].sum()
    return nucleus


def log_probability(logits: NDArray[np.floating], token: int, arithmetic: Arithmetic = "float") -> float | None:
    """The natural logarithm of a token's probability under the raw law: temperature 1, nothing else done to the logits.

    Parameters
    ----------
    logits : array, shape (vocab,)
        At least one finite.
    token : int
    arithmetic : {"float", "integer"}, default "float"
        float32 logits are exponentiated in float32 and added up in float64, good to about six
        digits; see `engine.sampling.integer` for the other.

    Returns
    -------
    float or None
        At most 0. None for a token of probability 0.

    Examples
    --------
    >>> round(log_probability(np.log([0.5, 0.3, 0.2]), 1), 6) == round(math.log(0.3), 6)
    True
    """
    total = integer.log_sum_exp(logits) if arithmetic == "integer" else _log_sum_exp(logits)
    found = min(0.0, float(logits[token]) - total)
    return found if math.isfinite(found) else None


def _log_sum_exp(scores: NDArray[np.floating]) -> float:
    best = scores.max()
    with np.errstate(over="ignore"):
        return float(best) + math.log(float(np.exp(scores - best).sum(dtype=np.float64)))
