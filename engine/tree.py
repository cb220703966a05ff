"""The shape of a draft: which token follows which.

A tree of n tokens is a tuple of n links: `links[i]` is the place of the token that token i follows,
-1 where that is the last token of the context.  Tokens stand behind those that they follow, so a
branch read from its root has rising places.  A chain is the tree (-1, 0, 1, ...).
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["MOST_NODES", "branch", "chain", "children", "depths", "leaves"]

MOST_NODES = 32
"""Tokens that a tree may have: they and the token before them are verified in one call."""


def chain(n: int) -> tuple[int, ...]:
    """The links of n tokens in a row.

    Examples
    --------
    >>> chain(3)
    (-1, 0, 1)
    """
    return tuple(range(-1, n - 1))


def depths(links: Sequence[int]) -> list[int]:
    """How many tokens a branch has up to each token, itself among them.

    Examples
    --------
    >>> depths((-1, -1, 0, 2, 1))
    [1, 1, 2, 3, 2]
    """
    found: list[int] = []
    for link in links:
        found.append(1 if link < 0 else found[link] + 1)
    return found


def branch(links: Sequence[int], node: int) -> list[int]:
    """The places of a token and all that it follows, root first; empty for -1.

    Examples
    --------
    >>> branch((-1, -1, 0, 2, 1), 3)
    [0, 2, 3]
    """
    places: list[int] = []
    while node >= 0:
        places.append(node)
        node = links[node]
    return places[::-1]


def children(links: Sequence[int]) -> list[list[int]]:
    """The tokens that follow each one, in order: entry 0 those that follow the context, entry i + 1 those of token i.

    Examples
    --------
    >>> children((-1, -1, 0))
    [[0, 1], [2], [], []]
    """
    below: list[list[int]] = [[] for _ in range(len(links) + 1)]
    for place, link in enumerate(links):
        below[link + 1].append(place)
    return below


def leaves(links: Sequence[int]) -> list[int]:
    """The tokens that none follows.

    Examples
    --------
    >>> leaves((-1, -1, 0))
    [1, 2]
    """
    followed = set(links)
    return [place for place in range(len(links)) if place not in followed]
