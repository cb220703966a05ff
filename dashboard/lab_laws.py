"""The laws of the lab's small pair: set by the page, moved by hand in the component, which may lag behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Laws", "laws_behind"]


@dataclass(slots=True)
class Laws:
    """The laws of the lab's small pair, as they stand.

    Attributes
    ----------
    target, draft : sequence of float
    revision : int
        Rises whenever the page, and not the user's hand, sets them.
    sent : int
        Which of the user's moves since then they are.
    """

    target: Sequence[float]
    draft: Sequence[float]
    revision: int = 0
    sent: int = 0

    def take(self, moved: Mapping[str, Any]) -> None:
        """Take what the bars say they are, unless it is of an earlier revision or known already.

        Parameters
        ----------
        moved : mapping
            `target`, `draft`, `revision` and `sent`, or nothing.
        """
        if moved.get("revision") == self.revision and moved.get("sent", 0) > self.sent:
            self.target, self.draft, self.sent = moved["target"], moved["draft"], moved["sent"]


def laws_behind(before: Laws | None, target: Sequence[float], draft: Sequence[float]) -> Laws:
    """The laws that the page sets in place of others."""
    return Laws(target, draft, before.revision + 1 if before else 0)
