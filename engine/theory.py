"""What the papers predict: tokens per step and speed-up from per-token acceptance.

Leviathan, Kalman, Matias, arXiv 2211.17192; equation and theorem numbers are theirs.  The theory
takes acceptance as independent and constant (alpha) and the verification of n + 1 tokens as dear
as one target call.  Costs are in units of one target call; a draft length is a whole number from 0.
"""

from __future__ import annotations

import math

from engine.errors import SettingError

__all__ = ["best_draft_length", "expected_tokens_per_step", "operations_factor", "speed_up"]


def expected_tokens_per_step(alpha: float, draft_length: int) -> float:
    """Expected emitted tokens of a step, (1 - alpha^(n+1)) / (1 - alpha): equation 1.

    Examples
    --------
    >>> round(expected_tokens_per_step(0.8, 5), 4)
    3.6893
    >>> expected_tokens_per_step(1.0, 5)
    6.0
    """
    _check(alpha, draft_length)
    return math.fsum(alpha**length for length in range(draft_length + 1))


def speed_up(alpha: float, draft_length: int, draft_cost: float = 0.0) -> float:
    """Expected wall-time gain over plain decoding: theorem 3.8.

    Parameters
    ----------
    alpha : float
        Per-token acceptance, 0 to 1.
    draft_length : int
    draft_cost : float, default 0
        Time of one draft call over time of one target call (the paper's c), at least 0.

    Examples
    --------
    >>> round(speed_up(0.75, 7, 0.02), 2)
    3.16
    """
    _check(alpha, draft_length, draft_cost)
    return expected_tokens_per_step(alpha, draft_length) / (draft_length * draft_cost + 1)


def operations_factor(alpha: float, draft_length: int, draft_operations: float = 0.0) -> float:
    """How many times the arithmetic of plain decoding is done: theorem 3.11.

    `draft_operations` is the draft's operations per token over the target's (the paper's c-hat).

    Examples
    --------
    >>> round(operations_factor(0.8, 5), 2)
    1.63
    """
    _check(alpha, draft_length, draft_operations)
    spent = draft_length * draft_operations + draft_length + 1
    return spent / expected_tokens_per_step(alpha, draft_length)


def best_draft_length(alpha: float, draft_cost: float, longest: int = 32) -> int:
    """The draft length from 0 to `longest` with the greatest `speed_up`; the shortest on a tie.

    Examples
    --------
    >>> best_draft_length(0.8, 0.1), best_draft_length(0.1, 0.3)
    (6, 0)
    """
    _check(alpha, longest, draft_cost)
    return max(range(longest + 1), key=lambda length: (speed_up(alpha, length, draft_cost), -length))


def _check(alpha: float, draft_length: int, cost: float = 0.0) -> None:
    if not 0 <= alpha <= 1:
        raise SettingError(f"alpha is {alpha}; it must be from 0 to 1")
    if draft_length < 0:
        raise SettingError(f"the draft length is {draft_length}; it must be at least 0")
    if not (math.isfinite(cost) and cost >= 0):
        raise SettingError(f"the cost is {cost}; it must be a number from 0 up")
