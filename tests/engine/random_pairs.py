"""Pairs of a target and a draft for enumeration: small vocabularies, rows that depend on all that was drafted."""

from functools import cache
from itertools import product

import numpy as np

from engine.sampling import OneHot, law


def random_pair(vocab_size, seed, *, zeros, draft, draft_sampling):
    """Context-dependent target logits and draft laws; `zeros` of the tokens are banned on either side."""

    @cache
    def logits(side, tokens):
        rng = np.random.default_rng([seed, side, len(tokens), *tokens])
        row = rng.normal(0, 1.5, vocab_size)
        row[rng.permutation(vocab_size)[:zeros]] = -np.inf
        return row

    @cache
    def draft_law(tokens):
        drawn_from = law(logits(1, tokens), draft_sampling)
        one_hot = draft == "one-hot" or (draft == "mixed" and len(tokens) % 2 == 0)
        return OneHot(drawn_from.draw(0.7)) if one_hot else drawn_from

    return (lambda tokens: logits(0, tuple(tokens))), (lambda tokens: draft_law(tuple(tokens)))


def contexts(vocab_size, longest):
    """Every sequence of up to `longest` tokens."""
    return [tokens for length in range(longest + 1) for tokens in product(range(vocab_size), repeat=length)]
