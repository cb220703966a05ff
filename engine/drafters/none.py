"""No drafter: the same loop becomes the plain baseline."""

from __future__ import annotations

from engine.lengths import ALWAYS, GoOn
from engine.sampling import Noise, Sampling
from engine.values import Draft, Tokens

__all__ = ["NoDraft"]


class NoDraft:
    """Proposes nothing, so that every step is a plain one.

    Examples
    --------
    >>> NoDraft().name
    'none'
    """

    name = "none"
    context_length: int | None = None

    def prepare(self, context: Tokens) -> None:
        """Nothing to read."""

    def propose(
        self,
        context: Tokens,
        limit: int,
        *,
        sampling: Sampling,
        noise: Noise,
        end_tokens: frozenset[int],
        go_on: GoOn = ALWAYS,
    ) -> Draft:
        """Nothing, and the reason is plain."""
        return Draft(note="plain decoding: no drafter chosen")
