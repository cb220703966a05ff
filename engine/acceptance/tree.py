"""What the rules that judge trees share: the walk from the root, and what they say of themselves.

At a token whose children were drafted, a rule tries the children in their order: it goes to the
first that it keeps, or gives a token of the target's.  At the end of a branch the target adds one.
The text has the target's law if the token that comes next, whether a child or the target's own, has it
at every place (Miao et al., *SpecInfer*, arXiv 2305.09781, section 4.3).  A chain is a tree, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

from engine.acceptance.base import AcceptanceRule
from engine.errors import DraftError
from engine.sampling import Law, Noise, Purpose, Rows
from engine.tree import chain, children
from engine.values import Draft, Tested, Verdict

__all__ = ["Children", "Judge", "Own", "TreeRule", "check_is_chain", "children_of", "walk"]

Children = Literal["independent", "distinct", "best"]
"""How siblings are drawn from the draft's law: each by itself, without replacement, or the most probable ones."""

Own = tuple[int, Law | None]
"""The target's own token, and `Verdict.law`."""

Judge = Callable[[Law, list[int], int], tuple[list[Tested], Own | None]]
"""Tests children in order, given the target's law, their places and the position in the text: the tests up to the
first that is kept, and the target's own token if none is."""


class TreeRule(AcceptanceRule, Protocol):
    """A rule that judges trees, and chains as well.

    Attributes
    ----------
    children : {"independent", "distinct", "best"}
        The siblings that suit it best. Every rule of this kind stays lossless with the others.
    """

    children: Children


def children_of(rule: AcceptanceRule) -> Children | None:
    """The siblings that a rule wants; None if it judges chains only.

    Examples
    --------
    >>> from engine.acceptance.exact import ExactRejection
    >>> from engine.acceptance.tree_match import TreeMatch
    >>> children_of(ExactRejection()), children_of(TreeMatch())
    (None, 'best')
    """
    return getattr(rule, "children", None)


def walk(draft: Draft, rows: Rows, judge: Judge, *, noise: Noise, start: int) -> Verdict:
    """Go from the root as far as `judge` keeps children.

    Parameters
    ----------
    draft, rows, noise, start
        See `AcceptanceRule.judge`; row 0 follows the context, row i + 1 the branch that ends in token i.
    judge : callable
        See `Judge`.
    """
    below = children(draft.links)
    tests: list[Tested] = []
    nodes: list[int] = []
    node, position = -1, start
    while siblings := below[node + 1]:
        tested, own = judge(rows.law(node + 1), siblings, position)
        tests += tested
        nodes += siblings[: len(tested)]
        if own is not None:
            return Verdict(tuple(tests), *own, tuple(nodes))
        node, position = nodes[-1], position + 1
    extra = noise.draw(rows.law(node + 1), position, Purpose.TARGET)
    return Verdict(tuple(tests), extra, nodes=tuple(nodes))


def check_is_chain(draft: Draft) -> None:
    """Refuse a tree where only a chain has an answer.

    Raises
    ------
    DraftError
    """
    if draft.links != chain(len(draft.tokens)):
        raise DraftError("the chances of a tree were asked for; they are told of chains, as the draft of one branch is")
