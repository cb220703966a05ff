"""What a model and a tokenizer are to the engine, and what the catalogue hands out.

A model is a function of the context. Its cache is its own business: it keeps the longest common
prefix with what it has seen and feeds itself the rest, so rolling back needs no code elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from engine.sampling import Peaks
from engine.values import Tokens

__all__ = [
    "Clock",
    "HiddenModel",
    "LayeredModel",
    "LoadProgress",
    "LoadedModel",
    "Logits",
    "Model",
    "PeakedModel",
    "Progress",
    "Tokenizer",
    "TreeModel",
]

Logits = NDArray[np.floating]
Clock = Callable[[], float]
Progress = Callable[[int, int], None]  # told what is done, and what there is to do in all
LoadProgress = Callable[[str, int, int], None]  # the same behind words for what is being done; in all 0: nobody knows


@runtime_checkable
class Model(Protocol):
    """A function of the context: the same context gives the same rows whatever was asked before."""

    @property
    def name(self) -> str:
        """How the model is called on the page and in exports."""

    @property
    def vocab_size(self) -> int:
        """Length of a row of logits."""

    @property
    def context_length(self) -> int:
        """The longest context, in tokens, that may be given."""

    def logits(self, context: Tokens, last: int = 1) -> Logits:
        """The last `last` rows, shape (last, vocab); row i follows `context[: len(context) - last + 1 + i]`."""

    def fork(self) -> Self:
        """The same weights with a cache of their own, for use beside this one."""


@runtime_checkable
class HiddenModel(Model, Protocol):
    """A model that shows what it thinks before it speaks, for drafters that read a target's hidden rows."""

    def hidden(self, context: Tokens, last: int = 1, taps: tuple[int, ...] = ()) -> NDArray[np.float32]:
        """The hidden rows of the last `last` tokens, shape (last, 1 + len(taps), width).

        Of each token: first the row behind the output norm, from which its logits are made, then
        the residual stream behind each layer whose index, from 0, is in `taps`. They are those of
        the pass that gave the logits: for a context that `logits` has seen, or any prefix of it,
        nothing is computed again. The first call makes the model keep such rows (and compute the
        context anew, once); a drafter may ask for those of a single token when it is made, so
        that the prompt is fed only once.
        """


@runtime_checkable
class TreeModel(Model, Protocol):
    """A model that gives its rows along all branches of a tree in one pass."""

    def tree_logits(self, context: Tokens, tokens: Tokens, parents: Sequence[int]) -> Logits:
        """Row 0 follows `context`, row i + 1 the branch that ends in token i; shape (1 + n, vocab).

        Parameters
        ----------
        context : sequence of int
            At least one id.
        tokens : sequence of int
            The ids of the tree, n of them.
        parents : sequence of int
            The place of the token that each one follows, -1 for none; see `engine.tree`.
        """


@runtime_checkable
class LayeredModel(Model, Protocol):
    """A model that can be asked what it would say if it ended behind its first layers."""

    @property
    def n_layers(self) -> int:
        """How many layers there are."""

    def early_logits(self, context: Tokens, last: int, n_layers: int) -> Logits:
        """The last `last` rows of output norm and head behind the first `n_layers` layers, as `logits` gives them.

        Keys and values of these layers are the model's own: what `logits` has seen is not fed
        again, and what is fed here is fed by `logits` once more, through all layers.
        """


@runtime_checkable
class PeakedModel(Model, Protocol):
    """A model that knows the best tokens of the rows that it gives, which saves others a look at all of them."""

    def peaks(self, rows: Logits) -> Peaks | None:
        """Those of `rows`, if it is an array that the model has just given and it knows them; else None."""


@runtime_checkable
class Tokenizer(Protocol):
    """Text to ids and back. Every id has bytes; bytes of several ids may make up one character."""

    @property
    def vocab_size(self) -> int:
        """Number of ids."""

    @property
    def end_tokens(self) -> frozenset[int]:
        """The ids that end a text."""

    @property
    def has_chat_template(self) -> bool:
        """Whether `chat` can be asked for."""

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, control tokens in it not interpreted."""

    def chat(self, text: str) -> list[int]:
        """The ids of a conversation in which the user says `text` and the answer is due."""

    def token_bytes(self, token: int) -> bytes:
        """The bytes that this id stands for; for a control token, its name."""

    def is_control(self, token: int) -> bool:
        """Whether the id is a control token, which is no part of the text."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A target ready to run, with what belongs to it.

    Attributes
    ----------
    model, tokenizer
        The target and its text side.
    partner : Model or None
        The draft model that ships with this target; None where there is none.
    clock : Clock or None
        A simulated clock that the model's calls push forward, in seconds; None for a real model.
    note : str
        Why another backend runs it than one would expect, in words for a user; empty if none does.
    """

    model: Model
    tokenizer: Tokenizer
    partner: Model | None = None
    clock: Clock | None = None
    note: str = ""
