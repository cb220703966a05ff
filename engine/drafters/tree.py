"""A model that drafts a tree: several guesses for the same place, and guesses behind them where they are worth most.

After Li et al., *EAGLE-2* (arXiv 2406.16858, section 4): what a guess is worth is the chance, by the draft's own
confidence, that it and all before it are kept; at every depth the best guesses are expanded; of all, the best are
kept. That re-ranking looks at which tokens came up, which is fair where tokens are the draft's most
probable ones and no draws. Where siblings are drawn, dropping one for its value would bias the text. There, how
many to draw at which place is settled beforehand, by what the draft gives to its most probable tokens
there, and every token that was drawn stays.

The draft model is called once for every depth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral

from engine.acceptance.tree import Children
from engine.drafters.model import fitted
from engine.drafters.siblings import siblings
from engine.errors import SettingError
from engine.laws import probs_at, top
from engine.lengths import ALWAYS, GoOn, Prospect, spread
from engine.models.base import Logits, Model
from engine.models.tree_rows import tree_rows
from engine.sampling import Law, Noise, Sampling, law_of_scores, penalised
from engine.tree import MOST_NODES, branch
from engine.values import Draft, Tokens

__all__ = ["MOST_WIDTH", "TreeDrafter", "check_tree"]

MOST_WIDTH = 8


def check_tree(width: int, n_nodes: int) -> None:
    """Refuse a width or a number of tokens that a tree cannot have.

    Raises
    ------
    SettingError
    """
    for name, value, most in (("tree_width", width, MOST_WIDTH), ("tree_nodes", n_nodes, MOST_NODES)):
        if not (isinstance(value, Integral) and 1 <= value <= most):
            raise SettingError(f"{name} is {value}; it must be a whole number from 1 to {most}")


@dataclass(slots=True)
class _Node:
    """A guess: what it is worth is the chance that it is reached and kept, as the draft sees it."""

    token: int
    law: Law
    logit: float
    parent: int
    depth: int
    worth: float


class TreeDrafter:
    """Draft a tree with a model. A row of tokens, as `ModelDrafter` drafts it, is a tree of width 1.

    Parameters
    ----------
    model : Model
        As for `ModelDrafter`. One that can (`TreeModel`) gives the rows of a depth in one call.
    vocab_size : int
        The target's.
    children : {"independent", "distinct", "best"}, default "best"
        How siblings come about; see `engine.drafters.siblings`. At temperature 0, where a draft's law is one
        token, they are the most probable ones in any case.
    width : int, default 4
        Most siblings, and most tokens of a depth that have guesses behind them, so that a depth has up to
        `width` times `width`; 1 to 8.
    n_nodes : int, default 16
        Most tokens of the tree, 1 to 32. Where siblings are drawn, what is left of them is shared out evenly over the
        depths that are left.

    Raises
    ------
    SettingError
        If `width` or `n_nodes` is out of range.

    Examples
    --------
    A draft that gives .6 to the next number, .3 to the one after it:

    >>> import numpy as np
    >>> from engine.models.callable import CallableModel
    >>> rows = np.log(np.array([[0.04, 0.6, 0.3, 0.03, 0.03]]))
    >>> counting = CallableModel(lambda ids: np.roll(rows[0], ids[-1]), vocab_size=5)
    >>> drafter = TreeDrafter(counting, vocab_size=5, width=2, n_nodes=4)
    >>> ask = dict(sampling=Sampling(temperature=0), noise=Noise(0), end_tokens=frozenset())
    >>> draft = drafter.propose([2], 2, **ask)
    >>> draft.tokens, draft.parents
    ((3, 4, 4, 0), (-1, -1, 0, 0))
    """

    def __init__(
        self, model: Model, vocab_size: int, *, children: Children = "best", width: int = 4, n_nodes: int = 16
    ) -> None:
        check_tree(width, n_nodes)
        self._model = model
        self._vocab_size = vocab_size
        self._children: Children = children
        self._width = width
        self._n_nodes = n_nodes
        self.name = f"tree:{model.name}"
        self.context_length: int | None = model.context_length

    def prepare(self, context: Tokens) -> None:
        """Fill the model's cache with the prompt."""
        self._model.logits(context)

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
        """See `Drafter.propose`; at most `limit` tokens in a row. Nothing is put behind an end token.

        Whether to go one deeper is asked about the best token of a depth, before any of that depth is drawn and
        behind them.
        """
        drawn = self._children != "best" and not sampling.greedy
        confidence = replace(sampling, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0) if sampling.greedy else sampling
        nodes: list[_Node] = []
        level = [-1]  # the tokens that may get some behind them
        note = ""
        for depth in range(limit):
            rows = self._rows(context, nodes, level)
            scores = [
                penalised(row, sampling, [*context, *_tokens_to(nodes, end)])
                for row, end in zip(rows, level, strict=True)
            ]
            laws = [law_of_scores(row, confidence) for row in scores]
            best = max(range(len(level)), key=lambda place: _worth(nodes, level[place]))
            prospect = Prospect(depth, law=partial(spread, scores[best], laws[best]))
            if not go_on.before(prospect):
                note = go_on.reason
                break
            slots = self._slots(nodes, level, laws)
            if drawn:
                n_left, n_depths = self._n_nodes - len(nodes), limit - depth
                slots = slots[: -(-n_left // n_depths)]
            how: Children = self._children if drawn else "best"
            before = len(nodes)
            for place, (parent, guess, row) in enumerate(zip(level, laws, rows, strict=True)):
                n_wanted = sum(owner == place for _, owner in slots)
                if not n_wanted:
                    continue
                worth = _worth(nodes, parent)
                taken: set[int] = set()
                position, first = len(context) + depth, len(nodes) - before
                for token, drawn_from in siblings(guess, n_wanted, how, noise=noise, position=position, place=first):
                    chance = 0.0 if token in taken else guess.prob(token)  # the same again is worth nothing
                    taken.add(token)
                    nodes.append(_Node(token, drawn_from, float(row[token]), parent, depth + 1, worth * chance))
            level = self._expanded(nodes, depth + 1, end_tokens)
            if not level or (drawn and len(nodes) >= self._n_nodes):
                break
            first = max(level, key=lambda place: nodes[place].worth)
            if depth + 1 < limit and not go_on.behind(prospect, nodes[first].token):
                note = go_on.reason
                break
        return _draft(nodes, self._best(nodes), note)

    def _rows(self, context: Tokens, nodes: list[_Node], level: list[int]) -> list[Logits]:
        """The rows behind the tokens of a level, shape (vocab_size,) each."""
        links = [node.parent for node in nodes]
        needed = sorted({place for end in level for place in branch(links, end)})
        place_of = {-1: -1} | {old: new for new, old in enumerate(needed)}
        tokens = [nodes[old].token for old in needed]
        rows = tree_rows(self._model, context, tokens, [place_of[links[old]] for old in needed])
        return [fitted(rows[place_of[end] + 1], self._vocab_size, self._model.name) for end in level]

    def _slots(self, nodes: list[_Node], level: list[int], laws: list[Law]) -> list[tuple[float, int]]:
        """Where a guess could stand, best first: what the next one there would be worth, and behind which token."""
        slots = []
        for place, (parent, guess) in enumerate(zip(level, laws, strict=True)):
            worth = _worth(nodes, parent)
            chances = probs_at(guess, top(guess, self._width))
            slots += [(worth * float(chance), place) for chance in chances]
        return sorted((slot for slot in slots if slot[0] > 0), key=lambda slot: -slot[0])

    def _best(self, nodes: list[_Node]) -> list[int]:
        """The places of the tokens that are kept, in order; what stands before one that is kept is worth no less."""
        return sorted(sorted(range(len(nodes)), key=lambda place: -nodes[place].worth)[: self._n_nodes])

    def _expanded(self, nodes: list[_Node], depth: int, end_tokens: frozenset[int]) -> list[int]:
        """The best tokens of a depth, those that are sure to be dropped and end tokens not among them."""
        found = [
            place
            for place in self._best(nodes)
            if nodes[place].depth == depth and nodes[place].worth > 0 and nodes[place].token not in end_tokens
        ]
        return sorted(sorted(found, key=lambda place: -nodes[place].worth)[: self._width])


def _worth(nodes: list[_Node], place: int) -> float:
    return nodes[place].worth if place >= 0 else 1.0


def _tokens_to(nodes: list[_Node], place: int) -> list[int]:
    """The tokens of the branch that ends at a place."""
    return [nodes[node].token for node in branch([node.parent for node in nodes], place)]


def _draft(nodes: list[_Node], kept: list[int], note: str) -> Draft:
    place_of = {-1: -1} | {old: new for new, old in enumerate(kept)}
    return Draft(
        tuple(nodes[old].token for old in kept),
        tuple(nodes[old].law for old in kept),
        tuple(nodes[old].logit for old in kept),
        note,
        parents=tuple(place_of[nodes[old].parent] for old in kept),
    )
