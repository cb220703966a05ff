"""What every model with a cache does first: check the context, and see how much of it is cached."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.errors import DraftError, PromptError
from engine.values import Tokens

__all__ = ["check_tree", "checked_ids", "n_common"]

Ids = NDArray[np.int64]


def checked_ids(name: str, context: Tokens, last: int, *, vocab_size: int, context_length: int) -> Ids:
    """The context as an array, shape (n,).

    Parameters
    ----------
    name : str
        Of the model, for the message.
    context : sequence of int
    last : int
        How many of its last rows are asked for.
    vocab_size, context_length : int

    Raises
    ------
    PromptError
        If the context is empty, longer than `context_length` or holds an id outside the
        vocabulary, or if `last` is not from 1 to its length.

    Examples
    --------
    >>> checked_ids("tiny", [3, 1], 1, vocab_size=5, context_length=8).tolist()
    [3, 1]
    """
    ids = np.asarray(context)
    if ids.ndim != 1 or len(ids) == 0:
        raise PromptError(f"{name} was given no tokens; a context needs at least one")
    if len(ids) > context_length:
        raise PromptError(f"{name} was given {len(ids)} tokens and takes at most {context_length}; shorten the text")
    if ids.dtype.kind not in "iu":
        raise PromptError(f"{name} was given {ids.dtype} values; a context is made of whole numbers, token ids")
    outside = (ids < 0) | (ids >= vocab_size)
    if outside.any():
        raise PromptError(f"{name} was given the id {ids[outside][0]}; its ids go from 0 to {vocab_size - 1}")
    if not 1 <= last <= len(ids):
        raise PromptError(f"{name} was asked for the last {last} rows of {len(ids)}; ask for 1 to {len(ids)}")
    return ids.astype(np.int64)


def check_tree(name: str, tokens: Tokens, parents: Sequence[int], *, most: int | None = None) -> None:
    """Refuse what is no tree, or too large a one.

    Parameters
    ----------
    name : str
        Of the model, for the message.
    tokens : sequence of int
    parents : sequence of int
        See `TreeModel.tree_logits`.
    most : int, optional
        Tokens that the model takes; any number if not given.

    Raises
    ------
    DraftError
        If there are more, or a link does not lead to a token before, or to the context.
    """
    if most is not None and len(tokens) > most:
        raise DraftError(f"{name} was given a tree of {len(tokens)} tokens and takes at most {most}; give it fewer")
    if len(parents) != len(tokens) or not all(-1 <= parent < place for place, parent in enumerate(parents)):
        raise DraftError(
            f"{name} was given {len(tokens)} tokens with the parents {list(parents)}, which is no tree; give for each "
            "token the place of one before it, or -1 for the context"
        )


def n_common(ids: Ids, cached: Ids) -> int:
    """Length of the longest common prefix of two arrays of ids.

    Examples
    --------
    >>> n_common(np.array([1, 2, 3]), np.array([1, 2, 4, 5]))
    2
    """
    n_both = min(len(ids), len(cached))
    different = np.flatnonzero(ids[:n_both] != cached[:n_both])
    return int(different[0]) if len(different) else n_both
