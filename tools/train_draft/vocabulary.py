"""Which tokens a head may propose: those that the target gives the most mass to, over its own texts."""

from __future__ import annotations

import torch
from torch import Tensor

from tools.train_draft.shards import Row

__all__ = ["ranked_tokens"]

N_HIDDEN = 12_000  # hidden rows whose laws are averaged
RANK_WEIGHT = 0.1  # of a prior by merge rank, for tokens that few texts show


def ranked_tokens(rows: list[Row], head: Tensor, end_tokens: frozenset[int]) -> Tensor:
    """All ids, the most useful first; shape (vocab,)."""
    vocab_size = len(head)
    counts = torch.zeros(vocab_size)
    for row in rows:
        counts.index_add_(0, row.ids[row.n_prompt :].long(), torch.ones(len(row.ids) - row.n_prompt))
    hidden = torch.cat([row.features[row.n_prompt - 1 :, 0] for row in rows])
    chosen = hidden[torch.randperm(len(hidden), generator=torch.Generator().manual_seed(0))[:N_HIDDEN]].float()
    mass = torch.zeros(vocab_size)
    for part in chosen.split(512):
        mass += (part @ head.T).softmax(-1).sum(0)
    prior = 1 / (torch.arange(vocab_size) + 500.0)
    score = counts / counts.sum() + mass / mass.sum() + RANK_WEIGHT * prior / prior.sum()
    score[sorted(end_tokens)] = torch.inf
    return score.argsort(descending=True)
