"""What tells one series from another: target, drafter, rule, and whether the time is simulated.

Names come from users: paths, odd characters, any number of them. A monitoring system keeps a series for
every combination that it has seen, so the values are cleaned and their number has a limit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from threading import Lock

from engine.values import Started

__all__ = ["LabelLimit", "Labels", "clean"]

MOST_CHARACTERS = 64
MOST_COMBINATIONS = 200
OTHER = "other"

FOLDERS = re.compile(r"[^:\\/]*[\\/]")


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of a run; `simulated` is "true" or "false"."""

    target: str
    drafter: str
    rule: str
    simulated: str


def clean(name: str) -> str:
    """A name as a label: without folders and control characters, of at most 64 characters.

    Examples
    --------
    >>> clean("model:/home/me/tiny.gguf"), clean("two\\nlines"), clean(" ")
    ('model:tiny.gguf', 'two_lines', 'unnamed')
    """
    kept = FOLDERS.sub("", name).strip()
    return "".join(character if character.isprintable() else "_" for character in kept)[:MOST_CHARACTERS] or "unnamed"


class LabelLimit:
    """Gives the labels of a run; what comes after `most` combinations is called "other".

    Parameters
    ----------
    most : int, default 200

    Examples
    --------
    >>> limit = LabelLimit(most=1)
    >>> [limit.of(Started(name, "none", "exact", True, 0, ())).target for name in ("a", "b", "a")]
    ['a', 'other', 'a']
    """

    def __init__(self, most: int = MOST_COMBINATIONS) -> None:
        self._most = most
        self._seen: set[Labels] = set()
        self._lock = Lock()

    def of(self, started: Started) -> Labels:
        """The labels of the run that began so."""
        simulated = "true" if started.simulated else "false"
        labels = Labels(clean(started.target), clean(started.drafter), clean(started.rule), simulated)
        with self._lock:
            if labels not in self._seen and len(self._seen) >= self._most:
                return Labels(OTHER, OTHER, OTHER, simulated)
            self._seen.add(labels)
        return labels
