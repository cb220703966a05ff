"""Copy where that is rather sure, ask another drafter everywhere else: what lookup and suffix decoding share here."""

from __future__ import annotations

from abc import ABC, abstractmethod

from engine.drafters.base import Drafter, LearnsFromOutputs, LearnsFromRows
from engine.lengths import ALWAYS, GoOn
from engine.models.base import Logits
from engine.sampling import Noise, Sampling
from engine.values import Draft, Tokens

__all__ = ["CopyFirst"]


class CopyFirst(ABC):
    """A drafter in front of another one; a subclass says what it copies.

    Parameters
    ----------
    other : Drafter
        What is asked where nothing is copied; what it learns from it is told.
    kind : str
        What is copied by, for the name.
    """

    def __init__(self, other: Drafter, kind: str) -> None:
        self.name = f"{other.name}+{kind}"
        self.context_length: int | None = other.context_length
        self._other = other
        self._observer = other if isinstance(other, LearnsFromRows) else None

    @abstractmethod
    def _copied(self, context: Tokens, limit: int, sampling: Sampling, go_on: GoOn) -> Draft:
        """What is copied; nothing where that is not sure, or the policy wants none of it."""

    def prepare(self, context: Tokens) -> None:
        """Let the other drafter read the prompt."""
        self._other.prepare(context)

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
        """See `Drafter.propose`."""
        draft = self._copied(context, limit, sampling, go_on)
        if draft.tokens:
            return draft
        return self._other.propose(context, limit, sampling=sampling, noise=noise, end_tokens=end_tokens, go_on=go_on)

    def observe(self, tokens: Tokens, rows: Logits) -> None:
        """See `LearnsFromRows.observe`."""
        if self._observer is not None:
            self._observer.observe(tokens, rows)

    def finished(self, output: Tokens) -> None:
        """See `LearnsFromOutputs.finished`."""
        if isinstance(self._other, LearnsFromOutputs):
            self._other.finished(output)
