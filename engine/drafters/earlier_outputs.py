"""What earlier runs of this process emitted, for suffix decoding: never on disk, never in another process.

The tree over all runs of SuffixDecoding (Oliaro et al., arXiv 2411.04975).  It holds outputs, not
prompts, and forgets the oldest when it is full.  One belongs to one target, whose ids it speaks in.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from engine.drafters.suffix_settings import Choice, Speculation
from engine.drafters.suffix_tree import Guess, SuffixTree
from engine.values import Tokens

__all__ = ["MAX_NODES", "EarlierOutputs", "forget_outputs", "outputs_of"]

MAX_NODES = 200_000
"""Nodes of one tree, 200 to 300 bytes each: 40 to 60 MB when it is full."""

MOST_TREES = 4
"""Trees that the process keeps: the least recently used goes first."""


class EarlierOutputs:
    """A suffix tree of finished outputs that threads may share.

    Parameters
    ----------
    choice : {"frequent", "recent"}, default "frequent"
        See `SuffixTree`.
    max_nodes : int, default `MAX_NODES`

    Examples
    --------
    >>> outputs = EarlierOutputs()
    >>> outputs.add([5, 6, 7])
    >>> outputs.guess([1, 5], limit=4, speculation=Speculation(factor=4)).tokens
    (6, 7)
    """

    def __init__(self, choice: Choice = "frequent", *, max_nodes: int = MAX_NODES) -> None:
        self._choice: Choice = choice
        self._max_nodes = max_nodes
        self._lock = Lock()
        self._tree = SuffixTree(choice, max_nodes=max_nodes)

    @property
    def n_outputs(self) -> int:
        """Outputs that it remembers."""
        return self._tree.n_texts

    @property
    def n_nodes(self) -> int:
        """Nodes that they take."""
        return self._tree.n_nodes

    def add(self, ids: Tokens) -> None:
        """Remember an output."""
        with self._lock:
            self._tree.begin()
            self._tree.extend(ids)

    def guess(self, context: Tokens, limit: int, speculation: Speculation) -> Guess:
        """The best proposal to follow a context."""
        with self._lock:
            return self._tree.guess_behind(context, limit, speculation)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._tree = SuffixTree(self._choice, max_nodes=self._max_nodes)


_kept: OrderedDict[tuple[str, Choice], EarlierOutputs] = OrderedDict()
_keeping = Lock()


def outputs_of(target: str, choice: Choice = "frequent") -> EarlierOutputs:
    """What this process remembers of a target's outputs, the same object every time.

    Parameters
    ----------
    target : str
        A name of the catalogue or the path of a GGUF file.
    choice : {"frequent", "recent"}, default "frequent"
    """
    with _keeping:
        outputs = _kept.setdefault((target, choice), EarlierOutputs(choice))
        _kept.move_to_end((target, choice))
        while len(_kept) > MOST_TREES:
            _kept.popitem(last=False)
        return outputs


def forget_outputs() -> None:
    """Forget what the runs of this process emitted."""
    with _keeping:
        for outputs in _kept.values():
            outputs.clear()
