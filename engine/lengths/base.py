"""What a length policy is: it is asked before every step and told every outcome."""

from __future__ import annotations

from typing import Protocol

__all__ = ["MAX_DRAFT_LENGTH", "LengthPolicy"]

MAX_DRAFT_LENGTH = 32


class LengthPolicy(Protocol):
    """Decides how many tokens to draft in the next step."""

    def next_length(self) -> int:
        """Tokens to draft at most; 0 makes the step a plain one."""

    def observe(self, n_drafted: int, n_accepted: int) -> None:
        """Learn how the last step went."""
