"""What an acceptance rule is: it judges a draft against the target's rows."""

from __future__ import annotations

from typing import Protocol

from engine.evidence import Source
from engine.sampling import Noise, Rows
from engine.values import Draft, Verdict

__all__ = ["AcceptanceRule"]


class AcceptanceRule(Protocol):
    """Judges a draft. A rule of one's own has all of these attributes; no base class is needed.

    Attributes
    ----------
    name : str
        Its word on the command line, the page and in exports.
    lossless : bool
        Whether the emitted text has exactly the target's law.
    guarantee : str
        What it promises, in a sentence for a user.
    source : str
        Where it comes from.
    greedy_draft : bool
        Whether the rule wants the draft's argmax rather than a draw from the draft's law.
    formula : str
        Its test, for a reader: the names of `Tested`'s fields and of its `terms` stand in braces, and
        numbers take their place. May be missing; then none is shown.
    replacement : {"target", "residual"}
        The law that it draws the replacement of a refused token from. May be missing, too.

    A rule that judges trees has one attribute more; see `engine.acceptance.tree.TreeRule`.
    """

    name: str
    lossless: bool
    guarantee: str
    source: str
    greedy_draft: bool
    formula: str
    replacement: Source

    def judge(self, draft: Draft, rows: Rows, *, noise: Noise, start: int) -> Verdict:
        """Judge the drafted tokens in order, up to the first that is refused.

        Parameters
        ----------
        draft : Draft
            n tokens, n >= 0.
        rows : Rows
            n + 1 rows of the target: row i is the target's at position i of the step.
        noise : Noise
            Position i of the step uses `noise.uniform(start + i, ...)`.
        start : int
            Length of the context before the step.
        """
