"""Two tokens more behind a draft that was kept whole, one less behind any other."""

from __future__ import annotations

from engine.lengths.base import NamedPolicy, StepOutcome, checked_length

__all__ = ["Heuristic"]


class Heuristic(NamedPolicy):
    """Two tokens more behind a draft that was kept whole, else one less, but at least one.

    After `update_candidate_strategy` in transformers (`generation/candidate_generator.py`), there with no
    upper end. It begins at the draft length, and a step that drafted nothing changes nothing.

    Parameters
    ----------
    length : int, default 4
        The most tokens to draft, 0 to 32.

    Raises
    ------
    SettingError
        If it is out of range.

    Examples
    --------
    >>> policy = Heuristic(4)
    >>> policy.observe(StepOutcome(n_drafted=4, n_accepted=1)); policy.next_length()
    3
    >>> policy.observe(StepOutcome(n_drafted=3, n_accepted=3)); policy.next_length()
    4
    """

    name = "heuristic"
    guarantee = "Two tokens more behind a draft that was kept whole, else one less, at least one."
    source = "transformers, generation/candidate_generator.py, update_candidate_strategy"
    needs = "nothing"

    def __init__(self, length: int = 4) -> None:
        self.length = checked_length(length)
        self._next = self.length

    def next_length(self) -> int:
        """What the outcomes so far have made of it."""
        return self._next

    def observe(self, outcome: StepOutcome) -> None:
        """See the class."""
        if outcome.n_drafted:
            kept_whole = outcome.n_accepted == outcome.n_in_branch
            self._next = min(self._next + 2, self.length) if kept_whole else max(self._next - 1, 1)
