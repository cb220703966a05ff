"""What an acceptance rule is: it judges a draft against the target's rows."""

from __future__ import annotations

from typing import Literal, Protocol

from engine.acceptance.chances import Chances
from engine.evidence import Source
from engine.sampling import Noise, Rows
from engine.values import Draft, Verdict

__all__ = ["AcceptanceRule", "Needs"]

Needs = Literal["draft law", "draft logits", "nothing"]
"""What a rule must know of the draft beside its tokens."""


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
    needs : {"draft law", "draft logits", "nothing"}
        What it must know of the draft beside its tokens: the law that each was drawn from, the raw logit
        of each, or nothing.
    greedy_draft : bool
        Whether the rule wants the draft's argmax rather than a draw from the draft's law.
    formula : str
        Its test, for a reader: the names of `Tested`'s fields and of its `terms` stand in braces, and
        numbers take their place. May be missing; then none is shown.
    replacement : {"target", "residual", "weighted residual"}
        The law that it draws the replacement of a refused token from. May be missing, too.
    noise : callable, optional
        Makes the random numbers of a run, the drafter's too, from its seed; may be missing, then it is
        `engine.sampling.Noise`.

    A rule that judges trees has one attribute more; see `engine.acceptance.tree.TreeRule`.
    """

    name: str
    lossless: bool
    guarantee: str
    source: str
    needs: Needs
    greedy_draft: bool
    formula: str
    replacement: Source

    def judge(self, draft: Draft, rows: Rows, *, noise: Noise, start: int) -> Verdict:
        """Judge the drafted tokens: some from the first on are kept, and the target adds one.

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

    def chances(self, draft: Draft, rows: Rows) -> Chances:
        """What `judge` does with this draft, as probabilities: nothing is drawn.

        The laboratory and the check that a rule is lossless need it. A rule of one's own without it
        decodes all the same; there it is left out, with a sentence that says why.

        Parameters
        ----------
        draft, rows
            As for `judge`.

        Returns
        -------
        list of (float, Law)
            Entry n, for n from 0 to the number of drafted tokens: the probability, given the draft, that
            exactly n of its tokens are kept, and the law of the target's own token if so. The
            probabilities sum to 1; where one is 0, its law is of no account.
        """
