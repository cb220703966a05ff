"""A draft model with another tokenizer, made to speak the target's tokens as far as both have them.

After Timor et al., *Accelerating LLM Inference with Lossless Speculative Decoding Algorithms for
Heterogeneous Vocabularies* (arXiv 2502.05202), Token-Level Intersection: the draft's law is cut to the
tokens that both vocabularies have and made a law again, and a token is drawn from just that law.  So its
law is known, nothing outside the intersection is ever proposed, and the exact rule stays exact: what only
the target has comes from the residual.

Tokens are the same if their bytes are, and both are control tokens or neither is.  The context is carried
over as text, word by word, and a word that is encoded once is remembered, so that a step costs little.
The way it is cut depends on the context alone: the same context always gives the same rows.

Not here: verification on strings (SLEM, SLRS).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from engine.errors import PromptError, VocabularyError
from engine.models.base import Logits, Model, Tokenizer
from engine.values import Tokens

__all__ = ["LEAST_SHARE", "SharedVocabulary", "shared_tokens"]

LEAST_SHARE = 0.05
"""Tokens that must be shared, as a part of the smaller vocabulary; any two of the byte-level kind share 256 bytes."""

WORDS_KEPT = 16_384
BLANKS = (b" ", b"\n")


def shared_tokens(target: Tokenizer, draft: Tokenizer) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The ids of the tokens that both have, for the target and for the draft, shape (n,) each.

    Where several ids stand for the same bytes, the lowest counts; ids without bytes do not.

    Examples
    --------
    >>> from engine.models.words import WordTokenizer
    >>> ours, theirs = shared_tokens(WordTokenizer("one two"), WordTokenizer("two one two"))
    >>> ours.tolist(), theirs.tolist()
    ([0, 1, 2, 4], [0, 1, 2, 5])
    """
    theirs = _ids_by_meaning(draft)
    pairs = [(ours, theirs[meaning]) for meaning, ours in _ids_by_meaning(target).items() if meaning in theirs]
    both = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


class SharedVocabulary:
    """A model whose rows are in the tokens of another tokenizer; see `Model` for what it promises.

    Parameters
    ----------
    model : Model
        The draft, with a cache of its own.
    own : Tokenizer
        The draft's.
    target : Tokenizer
        In whose ids contexts are given and rows are made. What the draft lacks has -inf.

    Raises
    ------
    VocabularyError
        If they share less than a twentieth of the smaller vocabulary.

    Examples
    --------
    >>> from engine.models.callable import CallableModel
    >>> from engine.models.words import WordTokenizer
    >>> draft = CallableModel(lambda ids: np.arange(6.0), vocab_size=6, name="draft")
    >>> shared = SharedVocabulary(draft, WordTokenizer("two one two"), WordTokenizer("one two"))
    >>> shared.name, shared.logits([3]).tolist()
    ('draft (4 of 5 tokens)', [[0.0, 1.0, 2.0, -inf, 5.0]])
    """

    context_length = 1_000_000  # of the target's tokens; the draft reads as much of the end as it has room for

    def __init__(self, model: Model, own: Tokenizer, target: Tokenizer) -> None:
        self._model = model
        self._own = own
        self._target = target
        self._ours, self._theirs = shared_tokens(target, own)
        self.n_shared = len(self._ours)
        self.vocab_size = target.vocab_size
        self.name = f"{model.name} ({self.n_shared} of {target.vocab_size} tokens)"
        smaller = min(target.vocab_size, own.vocab_size)
        if self.n_shared < LEAST_SHARE * smaller:
            raise VocabularyError(
                f"the target has {target.vocab_size} tokens and {model.name} {own.vocab_size}, and only "
                f"{self.n_shared} are the same; at least {LEAST_SHARE:.0%} of the smaller vocabulary must be, so "
                "choose a draft whose tokens are more alike"
            )
        self._same = dict(zip(self._ours.tolist(), self._theirs.tolist(), strict=True))
        self._first = own.encode("")  # the begin token, if the draft wants one
        self._bytes = {own.token_bytes(token): token for token in range(own.vocab_size - 1, -1, -1)}
        self._done: list[int] = []  # tokens of the last context, up to the last word that is complete
        self._translated: list[int] = []  # the same in the draft's ids
        self._word = lru_cache(maxsize=WORDS_KEPT)(self._encoded)

    def logits(self, context: Tokens, last: int = 1) -> Logits:
        """See `Model.logits`; float64, shape (last, vocab_size)."""
        rows = np.full((last, self.vocab_size), -np.inf)
        ids = list(context)
        for place, end in enumerate(range(len(ids) - last + 1, len(ids) + 1)):
            row = self._model.logits(self._in_room(self.translate(ids[:end])))[0]
            rows[place, self._ours] = row[self._theirs]
        return rows

    def fork(self) -> SharedVocabulary:
        """The same over a fork of the draft."""
        return SharedVocabulary(self._model.fork(), self._own, self._target)

    def translate(self, context: Tokens) -> list[int]:
        """The context in the draft's ids; control tokens that the draft lacks are left out."""
        tokens = list(context)
        n_done = len(self._done)
        goes_on = tokens[:n_done] == self._done
        ids = list(self._translated) if goes_on else []
        n_done = n_done if goes_on else 0
        word = b""
        for place in range(n_done, len(tokens)):
            token = tokens[place]
            is_control = self._target.is_control(token)
            spelled = b"" if is_control else self._target.token_bytes(token)
            # a word ends before a control token, and before the first of the blanks that the next one begins with
            if word and (is_control or (spelled[:1] in BLANKS and word[-1:] not in BLANKS)):
                ids += self._word(word)
                word, n_done = b"", place
            word += spelled
            if is_control:
                ids += [self._same[token]] if token in self._same else []
                n_done = place + 1
        self._done, self._translated = tokens[:n_done], ids
        whole = [*ids, *self._word(word)]
        if whole[: len(self._first)] != self._first:
            whole = [*self._first, *whole]
        return whole or [min(self._own.end_tokens, default=0)]  # a draft needs a token to begin from

    def _encoded(self, word: bytes) -> tuple[int, ...]:
        """A word in the draft's ids: what is text by its tokenizer, half characters byte by byte."""
        ids: list[int] = []
        for part in _texts_and_bytes(word):
            if isinstance(part, str):
                try:
                    ids += self._own.encode(part)[len(self._first) :]
                    continue
                except PromptError:  # it has a character that the draft cannot spell
                    part = part.encode()
            ids += [self._bytes[byte] for byte in (part[i : i + 1] for i in range(len(part))) if byte in self._bytes]
        return tuple(ids)

    def _in_room(self, ids: list[int]) -> list[int]:
        """As much of the end as the draft's context has room for; cut seldom, so that its cache stays of use."""
        room = self._model.context_length
        half = max(1, room // 2)
        excess = len(ids) - room
        return ids if excess <= 0 else ids[-(-excess // half) * half :]


def _texts_and_bytes(word: bytes) -> Iterator[str | bytes]:
    """The parts of a word that are UTF-8, and the bytes between them that are not."""
    while word:
        try:
            yield word.decode()
            return
        except UnicodeDecodeError as failure:
            if failure.start:
                yield word[: failure.start].decode()
            yield word[failure.start : failure.end]
            word = word[failure.end :]


def _ids_by_meaning(tokenizer: Tokenizer) -> dict[tuple[bytes, bool], int]:
    """By the bytes of a token and whether it is a control token: its lowest id."""
    ids: dict[tuple[bytes, bool], int] = {}
    for token in range(tokenizer.vocab_size):
        spelled = tokenizer.token_bytes(token)
        if spelled:
            ids.setdefault((spelled, tokenizer.is_control(token)), token)
    return ids
