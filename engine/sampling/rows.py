"""The target's rows of one step, each processed only when somebody asks for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.sampling.law_kinds import Law, OneHot
from engine.sampling.peaks import Peaks
from engine.sampling.penalties import penalised
from engine.sampling.processing import law_of_scores, log_probability
from engine.sampling.settings import Sampling

__all__ = ["Rows"]


class Rows:
    """The target's rows of one step, each processed only when a rule asks for it.

    Parameters
    ----------
    logits : array, shape (n, vocab)
        Row i belongs to position i of the step; the last one is the row behind the draft.
    sampling : Sampling
    before : callable, optional
        Gives the ids that stand before row i: the context, and the drafted tokens on the way to it
        (`engine.values.Draft.before`). Needed where a penalty is set.
    peaks : Peaks, optional
        Of the logits, where they are known already.
    """

    def __init__(
        self,
        logits: NDArray[np.floating],
        sampling: Sampling,
        before: Callable[[int], Sequence[int]] | None = None,
        peaks: Peaks | None = None,
    ) -> None:
        self._logits = logits
        self._sampling = sampling
        self._before = before
        self._peaks = None if sampling.penalises else peaks
        self._scores: dict[int, NDArray[np.floating]] = {}
        self._laws: dict[int, Law] = {}

    def law(self, index: int) -> Law:
        """The processed law at position `index` of the step."""
        if index not in self._laws:
            self._laws[index] = self._law(index)
        return self._laws[index]

    def _law(self, index: int) -> Law:
        if self._peaks is None:
            return law_of_scores(self.scores(index), self._sampling)
        if self._sampling.greedy:
            return OneHot(self._peaks.tokens[index])
        return law_of_scores(self._logits[index], self._sampling, self._peaks.values[index])

    def scores(self, index: int) -> NDArray[np.floating]:
        """The logits with the penalties applied, shape (vocab,): at temperature 0 the best one is taken."""
        if index not in self._scores:
            ids = self._before(index) if self._before and self._sampling.penalises else None
            self._scores[index] = penalised(self._logits[index], self._sampling, ids)
        return self._scores[index]

    def logit(self, index: int, token: int) -> float:
        """The raw logit of `token` at position `index` of the step."""
        return float(self._logits[index, token])

    def log_probability(self, index: int, token: int) -> float | None:
        """The natural logarithm of what the target's raw law gives `token`; see `engine.sampling.log_probability`."""
        return log_probability(self._logits[index], token, self._sampling.arithmetic)

    def margin(self, index: int, token: int) -> float | None:
        """How far `token` is ahead of the best other one at temperature 0, where rounding may flip two.

        In logits, behind the penalties. None at other temperatures, where no other token is possible,
        and where `token` itself is not (only a lossy rule emits that).
        """
        if not self._sampling.greedy:
            return None
        peaks, place = (self._peaks, index) if self._peaks is not None else (Peaks(self.scores(index)[None]), 0)
        lead = peaks.lead(place, token)
        return lead if math.isfinite(lead) else None
