"""The rows of a model along the branches of a tree, whatever the model can do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.models.base import Logits, Model, TreeModel
from engine.tree import branch, leaves
from engine.values import Tokens

__all__ = ["rows_by_branch", "tree_rows"]


def tree_rows(model: Model, context: Tokens, tokens: Tokens, parents: Sequence[int]) -> Logits:
    """See `TreeModel.tree_logits`: in one pass if the model can, else with one call for every branch.

    Examples
    --------
    >>> from engine.models.callable import CallableModel
    >>> counting = CallableModel(lambda ids: np.eye(9)[sum(ids) % 9], vocab_size=9)
    >>> tree_rows(counting, [1, 2], [4, 5, 1], [-1, -1, 0]).argmax(axis=1).tolist()
    [3, 7, 8, 8]
    """
    if isinstance(model, TreeModel):
        return model.tree_logits(context, tokens, parents)
    return rows_by_branch(model, context, tokens, parents)


def rows_by_branch(model: Model, context: Tokens, tokens: Tokens, parents: Sequence[int]) -> Logits:
    """The same by plain calls, one for every branch; what branches have in common is in the model's cache."""
    rows: list[Logits | None] = [None] * (len(tokens) + 1)
    for leaf in leaves(parents) or [-1]:
        places = branch(parents, leaf)
        ends = [end for end, place in enumerate([-1, *places]) if rows[place + 1] is None]
        n_asked = len(places) + 1 - ends[0]  # of this branch, the rows that no branch before it has given
        given = model.logits([*context, *(tokens[place] for place in places)], n_asked)
        for place, row in zip([-1, *places][ends[0] :], given, strict=True):
            rows[place + 1] = row
    return np.stack([row for row in rows if row is not None])
