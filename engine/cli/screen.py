"""What `run` writes of the text as it comes: in colour, or as plain text that grows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TextIO

from engine.cli.paint import colour_wanted, legend, painted, safe
from engine.models.base import Tokenizer
from engine.text import TextStream, find_stop
from engine.values import Step

__all__ = ["Coloured", "Growing", "Screen", "screen_for"]


class Screen(Protocol):
    """Turns the steps of one run into what to write."""

    def step(self, step: Step) -> str:
        """What to write for the next step."""

    def end(self, text: str) -> str:
        """What is left to write when the run is over and its text is `text`."""


class Coloured:
    """Every token as it is decided, in the style of its outcome; rejected and discarded ones too."""

    def step(self, step: Step) -> str:
        """See `Screen.step`."""
        return painted(step.decisions)

    def end(self, text: str) -> str:
        """See `Screen.end`."""
        return f"\n\n{legend()}"


class Growing:
    """The text as far as later tokens cannot change it, without colour.

    Half a character and what may turn out to be a stop string are held back, and control tokens are
    no part of the text: what has been written at the end is the text of the run.

    Parameters
    ----------
    tokenizer : Tokenizer
    stop : sequence of str
        The stop strings of the run.
    exact : bool
        Write every character as it is, for a file or another program; otherwise those that could
        steer a terminal are replaced.
    """

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str], *, exact: bool) -> None:
        self._stream = TextStream(tokenizer)
        self._stop = stop
        self._n_kept_back = max(map(len, stop), default=1) - 1
        self._shown = str if exact else safe
        self._held = ""
        self._n_written = 0

    def step(self, step: Step) -> str:
        """See `Screen.step`."""
        self._held += "".join(self._stream.push(token).text for token in step.emitted)
        end = find_stop(self._held, self._stop)
        if end is None:
            end = max(0, len(self._held) - self._n_kept_back)
        ready, self._held = self._held[:end], self._held[end:]
        self._n_written += len(ready)
        return self._shown(ready)

    def end(self, text: str) -> str:
        """See `Screen.end`."""
        return self._shown(text[self._n_written :]) + "\n"


def screen_for(stream: TextIO, tokenizer: Tokenizer, stop: Sequence[str]) -> Screen:
    """What suits `stream`."""
    return Coloured() if colour_wanted(stream) else Growing(tokenizer, stop, exact=not stream.isatty())
