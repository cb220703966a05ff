"""How far a guessed hidden row is from the target's law: Kullback-Leibler and total variation.

Over a part of the vocabulary, through the target's own frozen head rows. The gradient is computed
together with the value, in pieces, so that rows of vocabulary size never exist for a whole batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

__all__ = ["Agreement", "law_loss"]

ROWS_AT_ONCE = 1024


@dataclass
class Agreement:
    """Means over the rows of the last loss: cross-entropy, equal argmax, sum of min(draft, target)."""

    cross_entropy: float = 0.0
    same_best: float = 0.0
    overlap: float = 0.0


def law_loss(
    guess: Tensor, head: Tensor, laws: Tensor, places: Tensor, weights: Tensor, variation: float
) -> tuple[Tensor, Agreement]:
    """Weighted mean of KL + `variation` * TV of the guesses.

    Parameters
    ----------
    guess : Tensor, shape (n, W)
        Guessed hidden rows.
    head : Tensor, shape (V, W)
        The target's head rows.
    laws : Tensor, shape (m, V)
        The target's laws.
    places : Tensor, int, shape (n,)
        Which law belongs to each guess.
    weights : Tensor, shape (n,)
    variation : float
    """
    seen = Agreement()
    return _LawLoss.apply(guess, head, laws, places, weights, variation, seen), seen


class _LawLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        guess: Tensor,
        head: Tensor,
        laws: Tensor,
        places: Tensor,
        weights: Tensor,
        variation: float,
        seen: Agreement,
    ) -> Tensor:
        gradient = torch.empty_like(guess)
        total, mass = 0.0, float(weights.sum())
        for low in range(0, len(guess), ROWS_AT_ONCE):
            part = slice(low, low + ROWS_AT_ONCE)
            logits = guess[part] @ head.T
            target, weight = laws[places[part]], weights[part, None]
            normaliser = logits.logsumexp(-1, keepdim=True)
            cross_entropy = normaliser[:, 0] - (target * logits).sum(-1)
            seen.same_best += float(((logits.argmax(-1) == target.argmax(-1)) * weight[:, 0]).sum()) / mass
            draft = (logits - normaliser).exp_()
            total += float((cross_entropy * weight[:, 0]).sum()) / mass
            overlap = torch.minimum(target, draft).sum(-1)
            seen.overlap += float((overlap * weight[:, 0]).sum()) / mass
            slope = draft - target
            if variation > 0:  # d/d logits of -sum min(target, draft)
                below = draft * (draft < target)
                slope += variation * (draft * below.sum(-1, keepdim=True) - below)
                total -= variation * float((overlap * weight[:, 0]).sum()) / mass
            gradient[part] = (slope * (weight / mass)) @ head
        seen.cross_entropy = total
        ctx.save_for_backward(gradient)
        return guess.new_tensor(total)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return gradient * upstream, None, None, None, None, None, None
