"""What a drafter is: anything that proposes tokens."""

from __future__ import annotations

from typing import Protocol

from engine.lengths import ALWAYS, GoOn
from engine.sampling import Noise, Sampling
from engine.values import Draft, Tokens

__all__ = ["Drafter"]


class Drafter(Protocol):
    """Anything that proposes tokens to follow a context.

    A proposal may be shorter than asked for, or empty (then the step is a plain one); its `note`
    says why.
    """

    @property
    def name(self) -> str:
        """How the drafter is called on the page and in exports."""

    @property
    def context_length(self) -> int | None:
        """The longest context it can work on; None if there is no limit."""

    def prepare(self, context: Tokens) -> None:
        """Read the prompt, before the clock of the steps starts."""

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
        """Propose at most `limit` tokens, `limit` >= 1, to follow `context`.

        A token drawn for absolute position i uses `noise.draw(law, i, Purpose.DRAFT)`. Nothing need
        be proposed behind a token of `end_tokens`.

        A drafter that knows the law of a guess, or its chance, asks `go_on.before` before it draws a
        token and `go_on.behind` behind it; a no ends the draft, and `go_on.reason` is its note. A token
        that was drawn stays in the draft.
        """
