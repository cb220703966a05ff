"""Token recycling: what the target would have said after a token, it may say after that token again.

After Luo et al., *Turning Trash into Treasure* (arXiv 2408.08696): of every token it is kept what the
target found most probable behind it when it last verified it, behind refused tokens too.  A draft
follows that from the last token on, guess by guess.  It needs no model and no earlier occurrence, and
costs next to nothing; it knows only one word of context.

It begins empty with every drafter, so that a run does not depend on the ones before it; one drafter
used for several runs keeps what it has seen, as in the paper.

Not here: the paper's further candidates of every token, and the tree that it drafts from them.
"""

from __future__ import annotations

from engine.lengths import ALWAYS, GoOn
from engine.models.base import Logits
from engine.sampling import Noise, OneHot, Sampling
from engine.values import Draft, Tokens

__all__ = ["TokenRecycling"]


class TokenRecycling:
    """Propose what the target last found most probable behind each token.

    Examples
    --------
    >>> import numpy as np
    >>> from engine.sampling import Noise, Sampling
    >>> ask = dict(sampling=Sampling(), noise=Noise(0), end_tokens=frozenset())
    >>> drafter = TokenRecycling()
    >>> drafter.observe([3, 1], np.array([[0.0, 0.9, 0.1, 0.0], [0.0, 0.2, 0.3, 0.5]]))
    >>> drafter.propose([0, 3], 4, **ask).tokens
    (1, 3, 1, 3)
    """

    name = "recycling"
    context_length: int | None = None

    def __init__(self) -> None:
        self._following: dict[int, int] = {}  # by token: what was most probable behind it

    def prepare(self, context: Tokens) -> None:
        """Nothing to read: the target's rows of a prompt are not asked for."""

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
        """See `Drafter.propose`. The laws are one-hot; how sure a guess is, it cannot tell."""
        tokens: list[int] = []
        last = int(context[-1])
        while len(tokens) < limit and last in self._following and last not in end_tokens:
            last = self._following[last]
            tokens.append(last)
        if tokens:
            note = "" if len(tokens) == limit else "the target has said nothing yet of what follows the last guess"
        else:
            note = "the target has said nothing yet of what follows the last token"
        return Draft(tuple(tokens), tuple(OneHot(token) for token in tokens), note=note)

    def observe(self, tokens: Tokens, rows: Logits) -> None:
        """See `LearnsFromRows.observe`. Where a token stands twice, its last row counts."""
        best: list[int] = rows.argmax(axis=1).tolist()
        self._following.update(zip(map(int, tokens), best, strict=True))
