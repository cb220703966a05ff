"""What a drafter is: anything that proposes tokens."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from engine.lengths import ALWAYS, GoOn
from engine.models.base import Logits
from engine.sampling import Noise, Sampling
from engine.values import Draft, Tokens

__all__ = ["Drafter", "LearnsFromOutputs", "LearnsFromRows"]


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


@runtime_checkable
class LearnsFromRows(Protocol):
    """A drafter that wants to see what the target said at every step, those tokens among it that were refused."""

    def observe(self, tokens: Tokens, rows: Logits) -> None:
        """Learn from a verification.

        Parameters
        ----------
        tokens : sequence of int, length n
            The last token of the context, and the drafted ones behind it.
        rows : array, shape (n, vocab_size)
            The target's raw logits of what follows each of them. They are the target's own: do not write to them.
        """


@runtime_checkable
class LearnsFromOutputs(Protocol):
    """A drafter that remembers outputs beyond their run."""

    def finished(self, output: Tokens) -> None:
        """Take what a run has emitted, which ended without an error."""
