"""Small models, a tokenizer of chosen bytes and clocks, for the tests of the loop."""

from functools import cache

import numpy as np

from engine.models.callable import CallableModel

CHARS = "abcdefghijklmnopqrstuvwxyz"


def random_model(seed, vocab_size=6, *, scale=2.0, **settings):
    """Logits that depend on the whole context, the same for the same context."""

    @cache
    def row(ids):
        return np.random.default_rng([seed, len(ids), *ids]).normal(0, scale, vocab_size)

    return CallableModel(lambda ids: row(tuple(ids)), vocab_size, name=f"random-{seed}", **settings)


def broken_model(row_at, *, from_length, vocab_size=6):
    """A good model up to a context of `from_length` tokens, then `row_at()`."""
    good = random_model(1, vocab_size)
    return CallableModel(
        lambda ids: row_at() if len(ids) >= from_length else good.logits(ids)[0], vocab_size, name="broken"
    )


def script_model(script, vocab_size=26, *, start=1, **settings):
    """Says `script` for sure, whatever the context holds; `start` is the prompt's length."""

    def row(ids):
        place = len(ids) - start
        return np.where(np.arange(vocab_size) == script[min(place, len(script) - 1)], 9.0, 0.0)

    return CallableModel(row, vocab_size, name="script", **settings)


def letters(text):
    """The ids of small letters."""
    return [CHARS.index(char) for char in text]


class Proposing:
    """A drafter that proposes the same draft at every step."""

    name = "odd"
    context_length = None

    def __init__(self, draft):
        self._draft = draft

    def prepare(self, context):
        pass

    def propose(self, context, limit, **_):
        return self._draft


class Pieces:
    """A tokenizer whose ids stand for chosen bytes, or strings; `control` ids are no part of the text."""

    has_chat_template = False

    def __init__(self, pieces=CHARS, control=(), end_tokens=()):
        self._pieces = [piece.encode() if isinstance(piece, str) else piece for piece in pieces]
        self._control = frozenset(control)
        self.end_tokens = frozenset(end_tokens)
        self.vocab_size = len(self._pieces)

    def token_bytes(self, token):
        return self._pieces[token]

    def is_control(self, token):
        return token in self._control


class TickingClock:
    """Every look takes a quarter of a second."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 0.25
        return self.now
