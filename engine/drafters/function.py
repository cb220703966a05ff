"""Any Python function `context -> tokens` as a drafter."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Integral

from engine.errors import DraftError
from engine.lengths import ALWAYS, GoOn
from engine.sampling import Noise, OneHot, Sampling
from engine.values import Draft, Tokens

__all__ = ["CallableDrafter"]


class CallableDrafter:
    """A function of the context as a drafter.

    Its tokens are taken for a sure choice (one-hot laws), which keeps the exact rule exact whatever the
    function does, as long as it does not look at the random numbers of the run. A function that *draws*
    its tokens from a law is better made a model (`CallableModel`) and used by a `ModelDrafter`.

    Parameters
    ----------
    function : callable
        Takes the ids so far (a list of int) and gives ids that may follow, as many as it likes; what is more
        than asked for is cut off, and an iterator is not read further. None is as good as no ids.
    name : str, default "callable"
    context_length : int, optional
        The longest context that it takes; without one there is no limit.

    Raises
    ------
    DraftError
        In a run, if the function gives something else than whole numbers.

    Examples
    --------
    >>> from engine.sampling import Noise, Sampling
    >>> ask = dict(sampling=Sampling(), noise=Noise(0), end_tokens=frozenset())
    >>> CallableDrafter(lambda ids: [ids[-1] + 1, ids[-1] + 2, ids[-1] + 3]).propose([7], 2, **ask).tokens
    (8, 9)
    """

    def __init__(
        self,
        function: Callable[[list[int]], Iterable[int] | None],
        *,
        name: str = "callable",
        context_length: int | None = None,
    ) -> None:
        self._function = function
        self.name = name
        self.context_length = context_length

    def prepare(self, context: Tokens) -> None:
        """Nothing to read: the function is given the whole context at every step."""

    def propose(
        self,
        context: Tokens,
        limit: int,
        *,
        sampling: Sampling,
        noise: Noise,
        end_tokens: frozenset[int],
        go_on: GoOn = ALWAYS,
    ) -> Draft:
        """See `Drafter.propose`."""
        given = self._function(list(context))
        if given is not None and (isinstance(given, str | bytes) or not isinstance(given, Iterable)):
            raise DraftError(f"the drafter {self.name} gave {given!r}; expected a sequence of ids")
        tokens: list[int] = []
        for token in () if given is None else given:  # an array has no truth value
            if len(tokens) == limit:
                break
            if not isinstance(token, Integral) or isinstance(token, bool):
                raise DraftError(f"the drafter {self.name} gave {token!r} among its ids; expected whole numbers")
            tokens.append(int(token))
        note = "" if len(tokens) == limit else f"the function gave {len(tokens)} tokens"
        return Draft(tuple(tokens), tuple(OneHot(token) for token in tokens), note=note)
