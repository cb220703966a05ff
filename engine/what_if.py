"""What the speed-up would be at other draft lengths, from acceptance and costs that were measured.

The sum is that of `engine.bench.predict`: what a step yields over what it costs in plain calls of the
target.  Beside it stands Leviathan's theorem 3.8 (`engine.theory`), which takes acceptance as
constant and verification as free; with such input both are equal.

Acceptance at a draft length that was measured is that of its own runs.  At another length it is that
of the runs with the next longer one, cut, or of the longest, continued: each further token is kept
with the pooled per-token acceptance and is drafted as often as the last one after the one before it.
What was discarded is known of the lengths that were measured alone, so the curve leaves it in, and the
prediction beside a measurement takes it off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.bench.costs import Costs, DraftCost
from engine.bench.predict import drafted_by_position, of_trees, speed_up_of_steps
from engine.errors import SettingError
from engine.theory import speed_up

__all__ = ["LONGEST", "Profile", "draft_cost_of", "prediction", "profile_of", "what_if"]

LONGEST = 16
"""The longest draft length that is looked at."""

VERIFY_IS_FREE = (1.0,)


@dataclass(frozen=True, slots=True)
class Profile:
    """How far drafts go, and how far they are kept.

    Attributes
    ----------
    drafted, kept : tuple of float
        The share of steps that drafted, and that kept, at least 1, 2, ... tokens.
    alpha : float
        Per-token acceptance, pooled over positions.
    discarded : float, default 0
        Tokens of a step, on average, that were cut off again.
    """

    drafted: tuple[float, ...]
    kept: tuple[float, ...]
    alpha: float
    discarded: float = 0.0

    def at(self, length: int) -> tuple[list[float], list[float]]:
        """`drafted` and `kept` of drafts of at most `length` tokens.

        Examples
        --------
        >>> Profile((1.0, 0.5), (0.8, 0.2), 0.5).at(1)
        ([1.0], [0.8])
        >>> Profile((1.0, 0.5), (0.8, 0.2), 0.5).at(3)
        ([1.0, 0.5, 0.25], [0.8, 0.2, 0.05])
        """
        drafted, kept = list(self.drafted[:length]), list(self.kept[:length])
        going_on = self.drafted[-1] / self.drafted[-2] if len(self.drafted) > 1 and self.drafted[-2] else 1.0
        while drafted and len(drafted) < length:
            drafted.append(drafted[-1] * going_on)
            kept.append(kept[-1] * going_on * self.alpha)
        return drafted, kept

    def supposing(self, alpha: float) -> Profile:
        """The same drafts, each of their tokens kept with probability `alpha` if all before it were.

        Raises
        ------
        SettingError
            If `alpha` is not from 0 to 1.

        Examples
        --------
        >>> Profile((1.0, 0.5), (0.8, 0.2), 0.6).supposing(0.5)
        Profile(drafted=(1.0, 0.5), kept=(0.5, 0.125), alpha=0.5, discarded=0.0)
        """
        _check_acceptance(alpha)
        kept = tuple(drafted * alpha ** (place + 1) for place, drafted in enumerate(self.drafted))
        return Profile(self.drafted, kept, alpha)


def profile_of(record: Mapping[str, Any]) -> Profile | None:
    """The profile of a run's record, or of a row of a comparison; None if nothing was drafted in it, or trees were.

    The sum knows one draft token a place (`engine.bench.predict.of_trees`).

    Parameters
    ----------
    record : mapping
        Has `steps`, `drafted`, `discarded`, `per_token_acceptance`, and `per_position` (`engine.report.Report.record`)
        or `drafted_at` and `accepted_at` (`engine.compare`).

    Examples
    --------
    >>> counts = {"steps": 4, "drafted": 6, "discarded": 1, "drafted_at": [4, 2], "accepted_at": [2, 1]}
    >>> profile_of({**counts, "per_token_acceptance": 0.5})
    Profile(drafted=(1.0, 0.5), kept=(0.5, 0.25), alpha=0.5, discarded=0.25)
    """
    steps, alpha = record["steps"], record["per_token_acceptance"]
    drafted = drafted_by_position(record)
    if not steps or alpha is None or drafted is None or of_trees(record):
        return None
    if "per_position" in record:
        kept = [position["accepted"] for position in record["per_position"]]
    else:
        kept = record["accepted_at"]
    return Profile(
        tuple(n_steps / steps for n_steps in drafted),
        tuple(n_steps / steps for n_steps in kept),
        alpha,
        record["discarded"] / steps,
    )


def prediction(
    profile: Profile,
    length: int,
    draft: DraftCost,
    verify_cost: Callable[[int], float],
    *,
    discarded: float = 0.0,
) -> float:
    """The speed-up over plain decoding at a draft length; 1 at length 0, where no drafter is asked.

    Parameters
    ----------
    profile : Profile
    length : int
        From 0.
    draft : DraftCost
        What a proposal costs, in plain calls of the target.
    verify_cost : callable
        v(m), the cost of a call for m rows.
    discarded : float, default 0
        Tokens of a step to take off.

    Examples
    --------
    One token drafted at every step and kept in 6 of 10 steps; it costs 0.1 calls, and verifying two rows 1.2:

    >>> prediction(Profile((1.0,), (0.6,), 0.6), 1, DraftCost(0.0, 0.1, ()), lambda n_rows: 0.8 + 0.2 * n_rows)
    1.2307692307692306
    """
    if length < 0:
        raise SettingError(f"the draft length is {length}; it must be at least 0")
    if length == 0:
        return 1.0
    drafted, kept = profile.at(length)
    return speed_up_of_steps(drafted, kept, draft, verify_cost, discarded=discarded)


def draft_cost_of(c: float) -> DraftCost:
    """A drafter whose every token costs `c` plain calls of the target and whose steps cost nothing more."""
    if not c >= 0:
        raise SettingError(f"c is {c}; it must be at least 0")
    return DraftCost(0.0, c, ())


def what_if(
    profiles: Mapping[int, Profile],
    costs: Costs,
    draft: DraftCost,
    *,
    acceptance: float | None = None,
    c: float | None = None,
    flat: bool = False,
    simulated: bool = False,
    measured: Sequence[Mapping[str, Any]] = (),
    longest: int = LONGEST,
) -> dict[str, Any]:
    """Predicted speed-ups at draft lengths 0 to `longest`, beside theory and measurement.

    Parameters
    ----------
    profiles : mapping of int to Profile
        By the draft length that was measured; at least one.
    costs : Costs
        Of the target: v(m).
    draft : DraftCost
        Of the drafter.
    acceptance, c : float, optional
        Suppose this acceptance of every token that is drafted, this cost of a draft token, instead of what was
        measured. How far drafts go stays as it was measured.
    flat : bool, default False
        Suppose that verifying any number of tokens costs one call.
    simulated : bool, default False
        Whether the costs come from a clock that only counts calls.
    measured : sequence of mapping
        Rows of a comparison: `name`, `draft_length`, `speed_up`.
    longest : int, default 16

    Returns
    -------
    dict
        `simulated`, `lengths`, `predicted`, `theory` (lists), `best_length`, `best_speed_up`, `acceptance` and `c` that
        the theory is drawn with, `verify` (v(1), v(2), ...), and `points`: for each of `measured` its
        speed-up, the prediction there (less what was discarded, unless another acceptance is supposed), and by
        what share the measurement lies above it, as a number and in words.

    Raises
    ------
    SettingError
        If a value is out of range, or there is no profile.
    """
    if not profiles:
        raise SettingError("no acceptance was measured; run a configuration that drafts first")
    alpha = profiles[max(profiles)].alpha if acceptance is None else acceptance
    draft = draft if c is None else draft_cost_of(c)
    per_token = draft.of_call(max(1, *profiles))  # where a step has a cost of its own, shared as in the longest runs
    if acceptance is not None:
        profiles = {length: profile.supposing(acceptance) for length, profile in profiles.items()}
    verify = VERIFY_IS_FREE if flat else costs.verify
    verify_cost = Costs(costs.context_tokens, costs.plain_call_seconds, verify, {}).verify_cost

    def at(length: int, discarded: float = 0.0) -> float:
        return prediction(_nearest(profiles, length), length, draft, verify_cost, discarded=discarded)

    lengths = list(range(longest + 1))
    predicted = [at(length) for length in lengths]
    known = {length: profile.discarded for length, profile in profiles.items()}
    rows = [row for row in measured if row["speed_up"] and row["draft_length"] in lengths]
    best = max(lengths, key=lambda length: (predicted[length], -length))
    return {
        "simulated": simulated,
        "lengths": lengths,
        "predicted": predicted,
        "theory": [speed_up(alpha, length, per_token) for length in lengths],
        "best_length": best,
        "best_speed_up": predicted[best],
        "acceptance": alpha,
        "c": per_token,
        "verify": [verify_cost(length + 1) for length in lengths],
        "points": [_point(row, at(row["draft_length"], known.get(row["draft_length"], 0.0))) for row in rows],
    }


def _check_acceptance(alpha: float) -> None:
    if not 0 <= alpha <= 1:
        raise SettingError(f"the acceptance is {alpha}; it must be from 0 to 1")


def _nearest(profiles: Mapping[int, Profile], length: int) -> Profile:
    """The profile of the shortest draft length measured that is no shorter than `length`, else of the longest."""
    longer = [measured for measured in profiles if measured >= length]
    return profiles[min(longer) if longer else max(profiles)]


def _point(row: Mapping[str, Any], predicted: float) -> dict[str, Any]:
    speed_ups = row["speed_up"]
    off_by = speed_ups["value"] / predicted - 1
    return {
        "name": row["name"],
        "draft_length": row["draft_length"],
        "measured": speed_ups["value"],
        "low": speed_ups["low"],
        "high": speed_ups["high"],
        "predicted": predicted,
        "off_by": off_by,
        "words": _words(off_by),
    }


def _words(off_by: float) -> str:
    """How far the measurement lies from the prediction.

    Examples
    --------
    >>> _words(-0.034), _words(0.0001)
    ('the measurement is 3.4 % below the prediction', 'the measurement is as predicted')
    """
    if abs(off_by) < 0.0005:
        return "the measurement is as predicted"
    return f"the measurement is {abs(100 * off_by):.1f} % {'above' if off_by > 0 else 'below'} the prediction"
