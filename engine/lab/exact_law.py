"""The exact law of the first tokens that a model emits, as cells for a test of counts.

The law is followed token by token from the model's own rows. Beginnings that are likely enough are cells of
their own; all others are one cell, whose probability is what is left. So no vocabulary is too large, and the
probabilities of the cells sum to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.sampling import Law, OneHot, Sparse

__all__ = ["Cell", "law_cells"]

ROUNDING = 1e-12
"""What is left below this is rounding: every beginning has a cell of its own."""

Followed = Callable[[tuple[int, ...]], Law]
"""Gives the law of the next token behind the tokens so far."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Some tokens that a text may begin with, and how probable that is.

    `tokens` is None for the cell of all other beginnings.
    """

    tokens: tuple[int, ...] | None
    probability: float


def law_cells(
    follow: Followed, n_tokens: int, *, least: float, end_tokens: frozenset[int] = frozenset()
) -> tuple[Cell, ...]:
    """The cells of the law of the first tokens, the most probable first, all others last.

    Parameters
    ----------
    follow : callable
        The law of the next token, given those behind the prompt.
    n_tokens : int
        How many tokens to look at, at least 1; fewer where an end token comes first.
    least : float
        Every cell has at least this probability: where all others have less together, the least probable of
        these go with them.
    end_tokens : frozenset of int

    Examples
    --------
    >>> from engine.sampling import Dense
    >>> coin = Dense(np.array([0.9, 0.1]))
    >>> [(cell.tokens, round(cell.probability, 4)) for cell in law_cells(lambda tokens: coin, 2, least=0.05)]
    [((0, 0), 0.81), ((0, 1), 0.09), (None, 0.1)]
    """
    found: list[Cell] = []
    waiting: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    while waiting:
        tokens, mass = waiting.pop()
        if len(tokens) == n_tokens or (tokens and tokens[-1] in end_tokens):
            found.append(Cell(tokens, mass))
            continue
        for token, probability in _likely(follow(tokens), least / mass):
            waiting.append(((*tokens, token), mass * probability))
    found.sort(key=lambda cell: (-cell.probability, cell.tokens))
    rest = max(0.0, 1.0 - sum(cell.probability for cell in found))
    while found and ROUNDING < rest < least:
        rest += found.pop().probability
    return (*found, Cell(None, rest)) if rest > ROUNDING else tuple(found)


def _likely(law: Law, least: float) -> Sequence[tuple[int, float]]:
    """The tokens of at least that probability, with it."""
    if isinstance(law, OneHot):
        return [(law.token, 1.0)]
    places = np.flatnonzero((law.probs >= least) & (law.probs > 0))
    tokens = law.tokens[places] if isinstance(law, Sparse) else places
    return list(zip(tokens.tolist(), law.probs[places].tolist(), strict=True))
