"""Prompt lookup where it is rather sure, a draft head everywhere else.

How sure a lookup is depends on how many of the last tokens occurred before, and on the temperature:
its law is one-hot, so at a temperature above 0 a guess is kept as often as the target draws that
very token. Share of guesses that were kept, lookup against head, by the length of the match: at
temperature 0 over 4,167 places, above it over 7,827, all in texts of SmolLM2-135M-Instruct that are
none of the held-out ones:

| match | T = 0 | T = 0.7 | T = 1 |
|---|---|---|---|
| 1 | 0.19 / 0.47 | 0.16 / 0.45 | 0.14 / 0.46 |
| 2 | 0.49 / 0.45 | 0.43 / 0.46 | 0.37 / 0.45 |
| 3 | 0.65 / 0.51 | 0.50 / 0.37 | 0.44 / 0.39 |
| 4 | 0.67 / 0.44 | 0.68 / 0.40 | 0.62 / 0.37 |
| 5 | 0.80 / 0.57 | 0.75 / 0.35 | 0.70 / 0.32 |
| 6 and 7 | 0.86 / 0.48 | the same | the same |
| 8 and more | 0.95 / 0.39 | the same | the same |

So the lookup speaks from two tokens on where decoding is greedy, and from three on where it draws. It is
the target's temperature that counts: some rules want the draft's most probable token, and judge it by a draw.
A guess that is kept makes the match one longer, so the same table says how likely the next is kept.

Of several occurrences the one is taken that agrees with the end of the context furthest back: in a text
that is copied, the same three words stand at several places, and the longer match knows which is meant.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.drafters.base import Drafter
from engine.drafters.copy_first import CopyFirst
from engine.drafters.ngram import Match, PromptLookup
from engine.lengths import GoOn, Prospect
from engine.sampling import Sampling
from engine.values import Draft, Tokens

__all__ = ["SURE_GREEDY", "SURE_WARM", "LookupFirst", "sure_of"]

SURE_GREEDY = 2
"""Tokens that must have occurred before for the lookup to speak at temperature 0."""

SURE_WARM = 3
"""The same at higher temperatures."""

KEPT_GREEDY = (0.19, 0.49, 0.65, 0.67, 0.80, 0.86, 0.86, 0.95)
KEPT_WARM = (0.16, 0.43, 0.50, 0.68, 0.75)
KEPT_HOT = (0.14, 0.37, 0.44, 0.62, 0.70)
LOOK_BACK = 16  # tokens before an occurrence that are compared
WARM_TO = 0.85  # half-way between the two temperatures that were measured


class LookupFirst(CopyFirst):
    """Ask prompt lookup, and where it is not sure, or the policy wants none of it, another drafter.

    Parameters
    ----------
    other : Drafter
        A draft head, as a rule.
    max_n : int, default 3
        Longest n-gram of the lookup. Less than `SURE_GREEDY` or, above temperature 0, `SURE_WARM` counts as that.
    match : {"recent", "first"}, default "recent"
        Which of the occurrences wins that agree equally far back: see `PromptLookup`.

    Examples
    --------
    >>> from engine.drafters.none import NoDraft
    >>> from engine.sampling import Noise, Sampling
    >>> ask = dict(noise=Noise(0), end_tokens=frozenset())
    >>> drafter = LookupFirst(NoDraft())
    >>> drafter.propose([5, 6, 7, 8, 5, 6], 2, sampling=Sampling(temperature=0), **ask).tokens
    (7, 8)
    >>> drafter.propose([5, 6, 7, 8, 5, 6], 2, sampling=Sampling(temperature=1), **ask).tokens
    ()
    """

    def __init__(self, other: Drafter, max_n: int = 3, match: Match = "recent") -> None:
        super().__init__(other, PromptLookup.name)
        self._greedy, self._warm = (
            PromptLookup(max(max_n, sure), match, min_n=sure) for sure in (SURE_GREEDY, SURE_WARM)
        )

    def _copied(self, context: Tokens, limit: int, sampling: Sampling, go_on: GoOn) -> Draft:
        ids, temperature = np.asarray(context), sampling.target_temperature
        lookup = self._warm if temperature else self._greedy
        places = lookup.occurrences(ids)
        if not len(places):
            return Draft()
        places, n_agreeing = _furthest_back(ids, places)
        draft = lookup.draft(ids, lookup.choose(places), limit)
        n_wanted = _n_wanted(go_on, n_agreeing, len(draft.tokens), temperature)
        return draft if n_wanted == len(draft.tokens) else replace(draft.cut(n_wanted), note=go_on.reason)


def sure_of(sampling: Sampling) -> int:
    """Tokens that must have occurred before for a copy to be trusted: it depends on how the target draws."""
    return SURE_WARM if sampling.target_temperature else SURE_GREEDY


def _n_wanted(go_on: GoOn, n_agreeing: int, n_found: int, temperature: float) -> int:
    """How many of the tokens found are to be drafted; a lookup knows their chances by the table above."""
    kept = KEPT_GREEDY if not temperature else KEPT_WARM if temperature < WARM_TO else KEPT_HOT
    survival = 1.0
    for place in range(n_found):
        survival *= kept[min(n_agreeing + place, len(kept)) - 1]
        if not go_on.before(Prospect(place, survival=survival)):
            return place
    return n_found


def _furthest_back(ids: NDArray[np.int64], places: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """The places before which most tokens equal the last ones of the context, and how many do."""
    for n_agreeing in range(LOOK_BACK):
        back = n_agreeing + 1
        further = places[places >= back]
        further = further[ids[further - back] == ids[-back]]
        if not len(further):
            return places, n_agreeing
        places = further
    return places, LOOK_BACK
