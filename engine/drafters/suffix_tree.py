"""A tree of everything that followed anything: the suffixes of some texts, counted.

After the suffix trees of SuffixDecoding (Oliaro et al., arXiv 2411.04975, section 3): a path from the
root is a run of tokens that occurred, its node says how often, and its children say what came next.
Of all proposals that the ends of a context suggest, the one with the best score is taken, where the
score is the sum of the estimated probabilities that its tokens are kept.

Two things keep it small.  A path is followed to 32 tokens.  And what occurred once is a *leaf*
that only points into its text; it becomes nodes when it occurs a second time.  So a text without
repetitions costs one node a token, and a token of it costs the tree one look-up.

A share is taken of the occurrences that were followed by anything: the end of the context, which
occurs and is followed by nothing yet, has no say.  (The paper divides by all occurrences.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.drafters.suffix_settings import DEPTH, Choice, Speculation

__all__ = ["Guess", "SuffixTree"]


@dataclass(frozen=True, slots=True)
class Guess:
    """A proposal, how many tokens at the end of the context suggested it, and what it is expected to be worth."""

    tokens: tuple[int, ...] = ()
    n_matched: int = 0
    survivals: tuple[float, ...] = ()
    """The estimated probability that each token, and all before it, is kept."""

    @property
    def score(self) -> float:
        """How many tokens are expected to be kept."""
        return sum(self.survivals)


class _Node:
    """A run of tokens that occurred. A leaf has no `children`, and what follows it stands in `text` from `place` on."""

    __slots__ = ("best", "children", "count", "followed", "place", "text", "token")

    def __init__(self, token: int, text: list[int], place: int) -> None:
        self.token = token
        self.count = 1
        self.followed = 0  # occurrences with a next token; kept for nodes with children
        self.children: dict[int, _Node] | None = None
        self.best: _Node | None = None  # the child that a walk takes; None where it must be looked for
        self.text: list[int] | None = text
        self.place = place

    def open(self) -> None:
        """Make the leaf a node: its one occurrence goes on in a child."""
        self.children = {}
        if self.text is not None and self.place < len(self.text):
            token = self.text[self.place]
            self.best = self.children[token] = _Node(token, self.text, self.place + 1)
            self.followed = 1
        self.text = None


class SuffixTree:
    """What followed what, in texts that are added token by token and forgotten oldest first.

    Parameters
    ----------
    choice : {"frequent", "recent"}, default "frequent"
        Which child a walk takes: the most frequent (of several, the one seen last), or the one seen last.
    max_nodes : int, optional
        Nodes that it may have, and tokens that its texts may have together: the oldest texts are forgotten for
        new ones, and one that is too large by itself is dropped. Without it there is no limit.

    Examples
    --------
    >>> tree = SuffixTree()
    >>> tree.begin()
    >>> tree.extend([5, 6, 7, 8, 5, 6])
    >>> tree.count([5, 6]), tree.count([6, 7])
    (2, 1)
    >>> tree.guess_next(limit=4, speculation=Speculation())
    Guess(tokens=(7, 8), n_matched=2, survivals=(1.0, 1.0))
    """

    def __init__(self, choice: Choice = "frequent", *, max_nodes: int | None = None) -> None:
        self._frequent = choice == "frequent"
        self._max_nodes = max_nodes
        self._root = _Node(-1, [], 0)
        self._root.open()
        self._texts: deque[list[int]] = deque()  # the oldest first; the last is the one that grows
        self._ends: list[tuple[_Node, int]] = []  # of the growing text: what occurred before too, the longest first
        self._full = False
        self._n_tokens = 0
        self.n_nodes = 0

    @property
    def n_texts(self) -> int:
        """Texts that it holds."""
        return len(self._texts)

    def begin(self) -> None:
        """Begin a new text."""
        self._texts.append([])
        self._ends = []
        self._full = False

    def extend(self, tokens: Sequence[int]) -> None:
        """Add tokens to the text that was begun last."""
        for token in tokens:
            if self._full:
                return
            self._add(token)

    def count(self, tokens: Sequence[int]) -> int:
        """How often a run of at most 32 tokens occurred."""
        node, n_behind = self._find(tokens) or (None, 0)
        return 0 if node is None else 1 if n_behind else node.count

    def guess_next(self, limit: int, speculation: Speculation) -> Guess:
        """The best proposal to follow the text that was begun last."""
        ends = ((node, 0, n_matched) for node, n_matched in reversed(self._ends))
        return self._best(ends, limit, speculation, growing=self._texts[-1])

    def guess_behind(self, context: Sequence[int], limit: int, speculation: Speculation) -> Guess:
        """The best proposal to follow a context that is none of its texts."""
        return self._best(self._matches(context), limit, speculation, growing=None)

    def _add(self, token: int) -> None:
        text = self._texts[-1]
        text.append(token)
        self._n_tokens += 1
        ends: list[tuple[_Node, int]] = []
        for node, depth in (*self._ends, (self._root, 0)):
            children = node.children
            assert children is not None  # ends are open
            node.followed += 1
            child = children.get(token)
            if child is None:
                child = children[token] = _Node(token, text, len(text))
                self.n_nodes += 1
            else:
                children[token] = children.pop(token)  # the one seen last stands last
                child.count += 1
                if depth + 1 == DEPTH:
                    child.text = None  # several occurrences, and no room to tell them apart
                else:
                    if child.children is None:
                        child.open()
                        self.n_nodes += len(child.children or ())
                    ends.append((child, depth + 1))
            if not self._frequent or (node.best and child.count >= node.best.count) or len(children) == 1:
                node.best = child
        self._ends = ends
        while self._max_nodes is not None and max(self.n_nodes, self._n_tokens) > self._max_nodes:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        text = self._texts.popleft()
        self._n_tokens -= len(text)
        if not self._texts:  # it is the one that grows: larger by itself than all that there is room for
            self._full = True
            self._ends = []
        for start in range(len(text)):
            node = self._root
            for token in text[start : start + DEPTH]:
                if node.children is None:
                    break  # a leaf: the rest of this occurrence has no nodes
                child = node.children[token]
                node.followed -= 1
                child.count -= 1
                if child is node.best and (self._frequent or not child.count):
                    node.best = None  # if it was the one seen last and is gone, all others are gone too
                if not child.count:
                    del node.children[token]
                    self.n_nodes -= 1
                node = child

    def _find(self, tokens: Sequence[int]) -> tuple[_Node, int] | None:
        """Where a run of tokens ends: a node, and how many tokens behind it if it is a leaf. None if nowhere."""
        node, n_behind = self._root, 0
        for token in tokens:
            if node.children is not None:
                child = node.children.get(token)
                if child is None:
                    return None
                node = child
            elif node.text is not None and node.text[node.place + n_behind : node.place + n_behind + 1] == [token]:
                n_behind += 1
            else:
                return None
        return node, n_behind

    def _matches(self, context: Sequence[int]) -> Iterator[tuple[_Node, int, int]]:
        """Where each end of the context that occurred leads, the shortest first."""
        for n_matched in range(1, min(len(context), DEPTH - 1) + 1):
            found = self._find(context[len(context) - n_matched :])
            if found is None:
                return  # nor did a longer one
            yield (*found, n_matched)

    def _best(
        self,
        matches: Iterator[tuple[_Node, int, int]],
        limit: int,
        speculation: Speculation,
        growing: list[int] | None,
    ) -> Guess:
        best, best_score = Guess(), 0.0
        for node, n_behind, n_matched in matches:
            allowed = speculation.allowed(n_matched, limit)
            tokens, survivals = self._walk(node, n_behind, allowed, speculation.min_prob, growing)
            score = sum(survivals)
            if tokens and score >= best_score:
                best, best_score = Guess(tuple(tokens), n_matched, tuple(survivals)), score
        return best

    def _walk(
        self, node: _Node, n_behind: int, allowed: int, min_prob: float, growing: list[int] | None
    ) -> tuple[list[int], list[float]]:
        """What follows a node most likely, and the probability that it does as far as each token."""
        tokens: list[int] = []
        survivals: list[float] = []
        prob = 1.0
        while len(tokens) < allowed:
            if node.children is not None:
                child = self._child(node)
                if child is None:
                    break
                prob *= child.count / node.followed
                if prob < min_prob:
                    break
                token, node = child.token, child
            elif node.text is not None:
                place = node.place + n_behind
                if place < len(node.text):
                    token = node.text[place]
                elif node.text is growing:  # it has run into the end of the text, and goes on with itself
                    token = tokens[place - len(node.text)]
                else:
                    break
                n_behind += 1
            else:
                break
            tokens.append(token)
            survivals.append(prob)
        return tokens, survivals

    @staticmethod
    def _child(node: _Node) -> _Node | None:
        if node.best is None and node.children:
            node.best = max(reversed(node.children.values()), key=lambda child: child.count)
        return node.best
