"""What a rule does to the text, by enumeration: every draft, every number of kept tokens, every token behind.

Nothing is drawn and no formula of a paper is used. A rule says of a draft with what probability it keeps exactly
n tokens, and from which law the target's token then comes (`AcceptanceRule.chances`); the drafts are weighed with
their own probability. What a step emits is continued by the target itself to the full length, so that laws of the
same number of tokens are held against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from engine.acceptance.base import AcceptanceRule
from engine.errors import SettingError
from engine.sampling import Law, OneHot, Rows, Sampling, law
from engine.values import Draft

__all__ = ["LONGEST_DRAFT", "PROPOSALS", "Proposal", "StepLaw", "enumerate_step"]

Array = NDArray[np.float64]
RowOf = Callable[[tuple[int, ...]], Array]
"""Gives the logits of the next token, shape (vocab,), behind the tokens of the step so far."""

LONGEST_DRAFT = 3
AS_IT_IS = Sampling(temperature=1.0)

Proposal = Literal["sampled", "argmax", "argmax, softmax handed over", "sampled, one-hot handed over"]
"""How a draft is made, and which law is handed to the rule; in the last two they are not the same. To a rule that needs
no law it makes no difference what is handed over."""

PROPOSALS: tuple[Proposal, ...] = get_args(Proposal)


@dataclass(frozen=True, slots=True, eq=False)
class StepLaw:
    """The law of what a step emits, beside the target's.

    Attributes
    ----------
    output, target : array, shape (vocab,) * (draft length + 1)
        Probability of every row of tokens: of a step that the target continues, and of the target alone.
    kept : tuple of float
        Probability that exactly n drafted tokens are kept, for n = 0 .. draft length.
    """

    output: Array
    target: Array
    kept: tuple[float, ...]

    @property
    def draft_length(self) -> int:
        """How many tokens were drafted."""
        return len(self.kept) - 1

    @property
    def expected_accepted(self) -> float:
        """Drafted tokens kept by a step, on average."""
        return sum(n * probability for n, probability in enumerate(self.kept))

    @property
    def survival(self) -> tuple[float, ...]:
        """Probability that the first i drafted tokens are all kept, for i = 1 .. draft length."""
        return tuple(sum(self.kept[i:]) for i in range(1, len(self.kept)))

    @property
    def conditional(self) -> tuple[float | None, ...]:
        """Probability that token i is kept too if all before it are; None where that never happens."""
        before = (1.0, *self.survival)
        return tuple(
            now / earlier if earlier > 0 else None for earlier, now in zip(before, self.survival, strict=False)
        )

    def beginning(self, n_tokens: int) -> tuple[Array, Array]:
        """Output and target law of the first tokens, each of shape (vocab,) * n_tokens."""
        behind = tuple(range(n_tokens, self.output.ndim))
        return self.output.sum(axis=behind), self.target.sum(axis=behind)

    def distance(self, n_tokens: int) -> float:
        """Total-variation distance of the laws of the first tokens; it cannot fall with their number."""
        output, target = self.beginning(n_tokens)
        return 0.5 * float(np.abs(output - target).sum())


def enumerate_step(
    rule: AcceptanceRule,
    target: RowOf,
    draft: RowOf,
    *,
    draft_length: int,
    sampling: Sampling = AS_IT_IS,
    proposal: Proposal | None = None,
) -> StepLaw:
    """The exact law of one step.

    Parameters
    ----------
    rule : AcceptanceRule
    target, draft : callable
        Logits behind some tokens of the step. The vocabulary must be small: there are vocab ** draft_length drafts.
    draft_length : int
        From 0 to 3.
    sampling : Sampling, default temperature 1
        Of the target and, where it draws, the draft.
    proposal : {"sampled", "argmax", ...}, optional
        How the draft is made; as the rule wants it, if not given.

    Raises
    ------
    SettingError
        If the draft length or the proposal cannot be used.
    DraftError
        If the rule cannot judge such a draft.

    Examples
    --------
    >>> from engine.acceptance import ExactRejection
    >>> target, draft = np.log([1 / 3, 2 / 3]), np.log([2 / 3, 1 / 3])
    >>> step = enumerate_step(ExactRejection(), lambda tokens: target, lambda tokens: draft, draft_length=2)
    >>> round(step.expected_accepted, 6), round(step.distance(3), 12)
    (1.111111, 0.0)
    """
    if not 0 <= draft_length <= LONGEST_DRAFT:
        raise SettingError(f"the draft length is {draft_length}; enumerating goes up to {LONGEST_DRAFT}")
    if proposal is None:
        proposal = "argmax" if rule.greedy_draft else "sampled"
    if proposal not in PROPOSALS:
        raise SettingError(f"the proposal is {proposal!r}; choose one of: {'; '.join(PROPOSALS)}")
    vocab_size = len(target(()))
    sizes = range(1, draft_length + 2)
    emitted = {n: np.zeros((vocab_size,) * n) for n in sizes}  # what a step emits, by how many tokens it has
    kept = [0.0] * (draft_length + 1)
    if rule.needs != "draft law":
        proposal = "argmax" if proposal.startswith("argmax") else "sampled"
    for weight, made in _drafts(draft, draft_length, vocab_size, sampling, proposal):
        logits = np.array([target(made.tokens[:place]) for place in range(draft_length + 1)])
        for n, (chance, last) in enumerate(rule.chances(made, Rows(logits, sampling))):
            kept[n] += weight * chance
            if chance > 0:
                emitted[n + 1][made.tokens[:n]] += weight * chance * last.dense(vocab_size)
    output, plain = np.ones(()), np.ones(())
    for n in sizes:
        rows = np.empty((vocab_size,) * n)  # the target's law behind every row of n - 1 tokens
        for tokens in product(range(vocab_size), repeat=n - 1):
            rows[tokens] = law(target(tokens), sampling).dense(vocab_size)
        # a step that has emitted its last token goes on as the target does; before that nothing is continued
        ended = output if n > 1 else np.zeros(())
        output = ended[..., None] * rows + emitted[n]
        plain = plain[..., None] * rows
    return StepLaw(output, plain, tuple(kept))


def _drafts(
    row_of: RowOf, draft_length: int, vocab_size: int, sampling: Sampling, proposal: Proposal
) -> Iterator[tuple[float, Draft]]:
    """Every draft that can be made, with its probability."""
    drawn_from = Sampling(temperature=0) if proposal.startswith("argmax") else sampling
    for tokens in product(range(vocab_size), repeat=draft_length):
        rows = [row_of(tokens[:place]) for place in range(draft_length)]
        drawn = [law(row, drawn_from) for row in rows]
        weight = prod(one.prob(token) for one, token in zip(drawn, tokens, strict=True))
        if weight == 0:
            continue
        handed: list[Law]
        if proposal == "argmax, softmax handed over":
            handed = [law(row, sampling) for row in rows]
        elif proposal == "sampled, one-hot handed over":
            handed = [OneHot(token) for token in tokens]
        else:
            handed = drawn
        scores = tuple(float(row[token]) for row, token in zip(rows, tokens, strict=True))
        yield weight, Draft(tokens, tuple(handed), scores)
