"""Penalties on tokens that occurred before: a row of logits, changed at the few places that they concern.

- *Repetition*: Keskar et al., *CTRL: A Conditional Transformer Language Model for Controllable
  Generation*, arXiv 1909.05858, section 4.1, divide the logits of tokens that occurred by the
  penalty. A negative logit is multiplied instead, so that a penalty above 1 always makes a token
  less probable, and prompt and output both count: so do Hugging Face transformers
  (`RepetitionPenaltyLogitsProcessor`) and vLLM.
- *Frequency* and *presence*: OpenAI's API reference; a token's logit loses
  `count * frequency_penalty + (count > 0) * presence_penalty`. Only the output counts, as in vLLM.

Repetition goes first, then frequency and presence, as in vLLM. The tokens of a draft that stand
before a row count as output: whoever hands over the context must hand over them as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.errors import SettingError
from engine.sampling.settings import Sampling

__all__ = ["penalised"]

Places = NDArray[np.intp]


def penalised(
    logits: NDArray[np.floating],
    sampling: Sampling,
    context: Sequence[int] | None,
    *,
    tokens: NDArray[np.int64] | None = None,
) -> NDArray[np.floating]:
    """The logits behind the penalties.

    Parameters
    ----------
    logits : array, shape (n,)
    sampling : Sampling
    context : sequence of int or None
        All tokens before the row, the first `sampling.prompt_length` of which are the prompt. May be
        None where no penalty is set.
    tokens : array of int, shape (n,), optional
        The ids that the logits belong to, in rising order; without it they are 0, 1, 2, ...

    Returns
    -------
    array, shape (n,)
        `logits` itself where no penalty is set; else a copy, float32 if it was, else float64. A
        token whose logit is -inf keeps it, and no other becomes infinite.

    Raises
    ------
    SettingError
        If a penalty is set and there is no context.

    Examples
    --------
    >>> logits = np.array([2.0, -2.0, 2.0])
    >>> penalised(logits, Sampling(repetition_penalty=2), [0, 1]).tolist()
    [1.0, -4.0, 2.0]
    >>> penalised(logits, Sampling(frequency_penalty=0.5, presence_penalty=1, prompt_length=1), [0, 1, 2, 2]).tolist()
    [2.0, -3.5, 0.0]
    """
    if not sampling.penalises:
        return logits
    if context is None:
        raise SettingError("a penalty looks at the tokens before a row; hand them over as the context")
    scores: NDArray[np.floating] = logits.astype(np.float32 if logits.dtype == np.float32 else np.float64)
    ids = np.asarray(context, dtype=np.int64)
    if sampling.repetition_penalty != 1:
        at = _places(ids, len(scores), tokens)
        before = scores[at].astype(np.float64)
        with np.errstate(over="ignore"):
            smaller, larger = before / sampling.repetition_penalty, before * sampling.repetition_penalty
        _put(scores, at, np.where(before > 0, smaller, larger))
    if sampling.frequency_penalty or sampling.presence_penalty:
        at, counts = np.unique(_places(ids[sampling.prompt_length :], len(scores), tokens), return_counts=True)
        before = scores[at].astype(np.float64)
        _put(scores, at, before - counts * sampling.frequency_penalty - sampling.presence_penalty)
    return scores


def _places(ids: NDArray[np.int64], n: int, tokens: NDArray[np.int64] | None) -> Places:
    """The places in a row of `n` of those ids that have one, as often as they occur."""
    if tokens is None:
        return ids[ids < n]
    at = np.minimum(np.searchsorted(tokens, ids), n - 1)
    known: Places = at[tokens[at] == ids]
    return known


def _put(scores: NDArray[np.floating], at: Places, values: NDArray[np.float64]) -> None:
    """Write finite numbers, to a place that comes twice the same one; whatever was infinite before stays it."""
    limit = np.finfo(scores.dtype).max
    scores[at] = np.where(np.isfinite(scores[at]), np.clip(values, -limit, limit), scores[at])
