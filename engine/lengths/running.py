"""Running estimates that a policy decides by: acceptance by place, and costs as lines in the tokens drafted."""

from __future__ import annotations

from engine.lengths.base import MAX_DRAFT_LENGTH

__all__ = ["KEPT", "MOST_LATE", "Acceptance", "Line"]

KEPT = 0.98
"""What a step leaves of the weight of all steps before it: some 50 count."""

FIRST_GUESS, FIRST_WEIGHT = 0.7, 2.0  # the acceptance that is taken for granted, and how many tokens it is worth
POOLED_WEIGHT = 10.0  # tokens that the acceptance of all places is worth at each of them


class Acceptance:
    """The chance that a token is kept, by its place in the draft, if all before it were.

    A place is judged by its own tokens and, as if it had 10 more, by those of all places.

    Examples
    --------
    >>> acceptance = Acceptance()
    >>> for _ in range(200):
    ...     acceptance.add(n_drafted=2, n_accepted=1)
    >>> round(acceptance.at(0), 2), round(acceptance.at(1), 2), round(acceptance.pooled, 2)
    (0.92, 0.09, 0.5)
    """

    def __init__(self) -> None:
        self._tested = [0.0] * MAX_DRAFT_LENGTH
        self._accepted = [0.0] * MAX_DRAFT_LENGTH

    @property
    def pooled(self) -> float:
        """Of all places."""
        return (sum(self._accepted) + FIRST_GUESS * FIRST_WEIGHT) / (sum(self._tested) + FIRST_WEIGHT)

    def at(self, place: int) -> float:
        """At a place, from 0."""
        return self._at(place, self.pooled)

    def survivals(self, length: int) -> list[float]:
        """The chances that the first 1, 2, ... `length` tokens are all kept."""
        pooled, survival, survivals = self.pooled, 1.0, []
        for place in range(length):
            survival *= self._at(place, pooled)
            survivals.append(survival)
        return survivals

    def add(self, n_drafted: int, n_accepted: int, *, n_steps: int = 1) -> None:
        """Take the outcome of a step that drafted, as if `n_steps` had passed since the last."""
        self._tested = [weight * KEPT**n_steps for weight in self._tested]
        self._accepted = [weight * KEPT**n_steps for weight in self._accepted]
        for place in range(min(n_drafted, n_accepted + 1)):
            self._tested[place] += 1
            self._accepted[place] += place < n_accepted

    def _at(self, place: int, pooled: float) -> float:
        return (self._accepted[place] + pooled * POOLED_WEIGHT) / (self._tested[place] + POOLED_WEIGHT)


MOST_LATE = 2.0
"""A call that takes more than so many times what is expected is late, and counts as that."""


class Line:
    """Seconds as a line in the tokens drafted, fitted to the latest steps that drafted.

    What takes more than twice as long as the line says is taken for twice: now and then a call is late. One
    behind such a call is taken as it is: two in a row are not late, it is the line that is wrong.

    `origin`, the seconds without a draft, counts as one step more: it tilts the line where all drafts
    were of one length, and next to nothing where they were not.

    Examples
    --------
    >>> line = Line()
    >>> for n_drafted in (1, 3):
    ...     line.add(n_drafted, 2.0 + 0.5 * n_drafted, origin=2.0)
    >>> round(line.at(2, origin=2.0), 9), round(line.slope(origin=2.0), 9)
    (3.0, 0.5)
    """

    def __init__(self) -> None:
        self._sums = (0.0, 0.0, 0.0, 0.0, 0.0)  # of weights, n, seconds, n * n, n * seconds
        self._late = False  # the call before

    def add(self, n_drafted: int, seconds: float, *, origin: float) -> None:
        """Take what a step with so many drafted tokens took."""
        expected = self.at(n_drafted, origin=origin) if self._sums[0] else 0.0
        most = MOST_LATE * expected if expected > 0 else seconds
        before, self._late = self._late, seconds > most
        if not before:
            seconds = min(seconds, most)
        new = (1.0, n_drafted, seconds, n_drafted * n_drafted, n_drafted * seconds)
        self._sums = (
            self._sums[0] * KEPT + new[0],
            self._sums[1] * KEPT + new[1],
            self._sums[2] * KEPT + new[2],
            self._sums[3] * KEPT + new[3],
            self._sums[4] * KEPT + new[4],
        )

    def slope(self, *, origin: float) -> float:
        """Seconds that a further token adds, not below 0."""
        weight, n, seconds, square, product = self._sums
        weight, seconds = weight + 1, seconds + origin
        spread = weight * square - n * n
        return max(0.0, (weight * product - n * seconds) / spread) if spread > 0 else 0.0

    def at(self, n_drafted: int, *, origin: float) -> float:
        """Seconds with so many drafted tokens, at least 1."""
        weight, n, seconds, *_ = self._sums
        if not weight:
            return origin
        return seconds / weight + self.slope(origin=origin) * (n_drafted - n / weight)
