"""The closed-form start: the target's next hidden row as a linear function of what the head reads.

Without it a head of this size spends its first hours on what one ridge regression knows.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tools.train_draft.head import Head
from tools.train_draft.shards import Row

__all__ = ["start_from_ridge", "start_statistics"]

PENALTY = 2e-3
FIRST = 26  # the tokens before are the same system prompt in every text


def start_statistics(head: Head, rows: list[Row], embedding: Tensor) -> None:
    """Mean and scale of features, hidden rows and embeddings, from a part of the rows."""
    some = rows[:: max(1, len(rows) // 300)]
    features = torch.cat([row.features[FIRST:].float() for row in some])
    hidden = torch.cat([row.features[row.n_prompt :, 0].float() for row in some])
    head.feature_mean.copy_(features.mean(0))
    head.feature_scale.copy_(1 / features.std(0))
    head.output_scale.copy_(hidden.std(0))
    head.output_bias.data.copy_(hidden.mean(0))
    head.token_scale.copy_(1 / embedding.std())


def start_from_ridge(head: Head, rows: list[Row], embedding: Tensor) -> None:
    """Set the linear maps of `head` to the ridge solutions; the layer on top of them starts at zero."""
    width, n_features = head.width, head.feature_mean.shape[0]
    n_inputs = (n_features + 1) * width
    products, targets, n = torch.zeros(n_inputs, n_inputs), torch.zeros(n_inputs, width), 0
    for row in rows:
        first, last = max(FIRST, row.n_prompt - 2), min(len(row.features), len(row.ids))
        if last - first < 2:
            continue
        standard = (row.features[first:last].float() - head.feature_mean) * head.feature_scale
        embedded = embedding[row.ids[first + 1 : last].long()] * head.token_scale
        inputs = torch.cat([standard[:-1].flatten(1), embedded], 1)
        products += inputs.T @ inputs
        targets += inputs.T @ standard[1:, 0]
        n += len(inputs)

    def solved(columns: Tensor) -> Tensor:
        square = products[columns][:, columns] + n * PENALTY * torch.eye(len(columns))
        return torch.linalg.solve(square, targets[columns]).T

    by_features = solved(torch.arange(n_inputs))
    head.feature.data.copy_(by_features[:, : n_features * width])
    head.feature_token.data.copy_(by_features[:, n_features * width :])
    hidden_and_token = torch.cat([torch.arange(width), torch.arange(n_features * width, n_inputs)])
    by_state = solved(hidden_and_token)
    head.state.data.copy_(by_state[:, :width])
    head.token.data.copy_(by_state[:, width:])
