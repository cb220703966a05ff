"""What all backends of a transformer do alike: check the context, feed what is not cached, hand out rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.errors import SettingError
from engine.models.architecture import Architecture
from engine.models.base import Logits
from engine.models.context import check_tree, checked_ids, n_common
from engine.models.early_exit import EarlyCache
from engine.models.hidden_rows import HiddenRows
from engine.models.tree_cache import TreeCache
from engine.tree import branch, depths
from engine.values import Tokens

__all__ = ["CachedTransformer"]

Array = NDArray[np.float32]


class CachedTransformer(ABC):
    """A transformer that keeps the keys and values of the ids in `_cached`; a subclass says how ids are fed.

    Parameters
    ----------
    architecture : Architecture
    name : str

    Attributes
    ----------
    most_nodes : int or None
        Tokens that a tree may have; None for any number.
    """

    most_nodes: int | None = None

    def __init__(self, architecture: Architecture, *, name: str) -> None:
        self.name = name
        self.vocab_size = architecture.vocab_size
        self.context_length = architecture.context_length
        self._architecture = architecture
        self._hidden = HiddenRows(architecture.n_layers, architecture.width, architecture.context_length)
        self._cached: NDArray[np.int64] = np.empty(0, np.int64)  # the ids whose keys and values are kept
        self._early = EarlyCache()
        self._tree: TreeCache | None = None  # what stands behind the cached ids, if a tree was run last

    @property
    def n_layers(self) -> int:
        """How many layers there are."""
        return self._architecture.n_layers

    def logits(self, context: Tokens, last: int = 1) -> Logits:
        """See `Model.logits`; float32, shape (last, vocab_size).

        Raises
        ------
        PromptError
            If the context is empty, longer than `context_length` or holds an id outside the
            vocabulary, or if `last` is not from 1 to its length.
        ForwardError
            If ONNX Runtime fails.
        """
        ids = self._checked(context, last)
        first_asked = len(ids) - last
        pieces = self._feed(ids, min(self._n_kept(ids), first_asked), first_asked)
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def hidden(self, context: Tokens, last: int = 1, taps: tuple[int, ...] = ()) -> Array:
        """See `HiddenModel.hidden`; float32, shape (last, 1 + len(taps), width).

        Raises
        ------
        PromptError, ForwardError
            As `logits` does.
        SettingError
            If a tap is not the index of a layer.
        """
        ids = self._checked(context, last)
        if self._hidden.keep(taps):
            self._cached = ids[:0]  # fed before its hidden rows were kept
        kept = self._n_kept(ids)
        if kept < len(ids):
            self._feed(ids, kept, len(ids))
        return self._hidden.read(len(ids) - last, len(ids), taps)

    def early_logits(self, context: Tokens, last: int, n_layers: int) -> Logits:
        """See `LayeredModel.early_logits`; float32, shape (last, vocab_size).

        Raises
        ------
        PromptError, ForwardError
            As `logits` does.
        SettingError
            If the model does not have so many layers, or there are none to go through.
        BackendError
            If the graph that ends there cannot be made.
        """
        if not 1 <= n_layers <= self.n_layers:
            raise SettingError(
                f"{self.name} was asked for rows behind its first {n_layers} layers; it has {self.n_layers}, "
                f"so ask for 1 to {self.n_layers}"
            )
        ids = self._checked(context, last)
        first_asked = len(ids) - last
        self._n_kept(ids)
        kept = min(self._early.n_kept(ids, n_layers, self._cached), first_asked)
        return np.concatenate(self._feed_early(ids, kept, first_asked, n_layers))

    def tree_logits(self, context: Tokens, tokens: Tokens, parents: Sequence[int]) -> Logits:
        """See `TreeModel.tree_logits`; float32, shape (1 + n, vocab_size).

        The keys and values of the branch that is gone on with are not computed again.

        Raises
        ------
        PromptError, ForwardError
            As `logits` does; a branch may be as long as a context.
        DraftError
            If it is no tree, or, in "numba", has more than `engine.tree.MOST_NODES` tokens.
        """
        check_tree(self.name, tokens, parents, most=self.most_nodes)
        ids = self._checked(context, 1)
        if not len(tokens):
            return self.logits(context)
        of_depth = depths(parents)
        longest = branch(parents, of_depth.index(max(of_depth)))
        self._checked([*context, *(tokens[place] for place in longest)], 1)
        nodes = self._checked([*context[-1:], *tokens], 1)[1:]
        kept = self._n_kept(ids)
        if kept < len(ids) - 1:
            self._feed(ids[:-1], kept, len(ids) - 1)
        rows, tree = self._feed_tree(ids, nodes, tuple(parents))
        self._cached, self._tree = ids, tree
        return rows

    def _n_kept(self, ids: NDArray[np.int64]) -> int:
        """How many of the ids are cached, with the branch that they go on with of the tree that was run last."""
        kept, tree = n_common(ids, self._cached), self._tree
        self._tree = None
        if tree is None or not kept == len(self._cached) == tree.n_context:
            return kept
        self._early.forget()
        for place in tree.branch(ids):
            self._take(tree, place, kept)
            kept += 1
        self._cached = ids[:kept]
        return kept

    def _begin_early(self, ids: NDArray[np.int64], n_layers: int) -> None:
        """The first layers are about to be overwritten behind `ids`."""
        self._cached = self._cached[: len(ids)]
        self._early.begin(ids, n_layers)

    def _checked(self, context: Tokens, last: int) -> NDArray[np.int64]:
        return checked_ids(self.name, context, last, vocab_size=self.vocab_size, context_length=self.context_length)

    @abstractmethod
    def _feed(self, ids: NDArray[np.int64], kept: int, first_asked: int) -> list[Array]:
        """Run the tokens behind the first `kept`, in pieces; the rows of logits from `first_asked` on."""

    @abstractmethod
    def _feed_tree(
        self, ids: NDArray[np.int64], tokens: NDArray[np.int64], links: tuple[int, ...]
    ) -> tuple[Array, TreeCache]:
        """Run the last of the ids, all before which are cached, and a tree behind it.

        The rows of logits of `tree_logits`, and what is kept of the tree. The last id's keys and values
        are those of the cache.
        """

    @abstractmethod
    def _take(self, tree: TreeCache, place: int, slot: int) -> None:
        """Cache a token of the tree as the one at position `slot`; those before it on its branch are cached."""

    @abstractmethod
    def _feed_early(self, ids: NDArray[np.int64], kept: int, first_asked: int, n_layers: int) -> list[Array]:
        """The same through the first layers only, and then through norm and head."""
