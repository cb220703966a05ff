"""How logits become a law, as plain data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Literal, get_args

from engine.errors import SettingError

__all__ = ["ARITHMETICS", "Arithmetic", "Sampling"]

Arithmetic = Literal["float", "integer"]

ARITHMETICS: tuple[Arithmetic, ...] = get_args(Arithmetic)
"""The ways to exponentiate and add up a row."""

LARGEST_PENALTY = 2.0
"""Of frequency and presence, on either side of 0: OpenAI's range."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How logits become a law. `docs/sampling.md` has the order of the steps and the source of each.

    Parameters
    ----------
    temperature : float, default 0.7
        Logits are divided by it; 0 means the argmax (lowest id on a tie). Finite, not negative.
    top_k : int, default 0
        Keep the k most probable tokens, and all that tie with the k-th; 0 keeps every token.
    top_p : float, default 1.0
        Keep the smallest set of most probable tokens whose mass reaches top_p; in (0, 1].
    min_p : float, default 0.0
        Keep the tokens that are at least min_p times as probable as the most probable one; in
        [0, 1]. 0 keeps every token.
    repetition_penalty : float, default 1.0
        The logits of all tokens of prompt and output are divided by it where they are positive and
        multiplied where they are negative. Finite, above 0; 1 changes nothing.
    frequency_penalty : float, default 0.0
        Taken off a token's logit for every time that it is in the output. From -2 to 2.
    presence_penalty : float, default 0.0
        Taken off the logit of every token that is in the output. From -2 to 2.
    arithmetic : {"float", "integer"}, default "float"
        What exponentiates and adds up a row; see `engine.sampling.integer`.
    prompt_length : int, default 0
        How many of the first tokens of a context are the prompt. `engine.build` sets it for a spec, and
        `engine.decode` for whatever it is given.
    judged_at : float, optional
        For a drafter: the target's temperature, where it is another than that of the draft. `engine.decode`
        sets it under rules that want the most probable token.

    Raises
    ------
    SettingError
        If a value is outside its range.

    Examples
    --------
    >>> Sampling(temperature=0).greedy, Sampling(presence_penalty=0.5).penalises
    (True, True)
    """

    temperature: float = 0.7
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    arithmetic: Arithmetic = "float"
    prompt_length: int = 0
    judged_at: float | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise SettingError(
                f"temperature is {self.temperature}; it must be a number from 0 up "
                "(0 takes the most probable token, 1 leaves the model's law as it is)"
            )
        if not isinstance(self.top_k, Integral) or self.top_k < 0:
            raise SettingError(f"top_k is {self.top_k}; it must be a whole number from 0 up (0 keeps every token)")
        if not 0 < self.top_p <= 1:
            raise SettingError(f"top_p is {self.top_p}; it must be above 0 and at most 1 (1 keeps every token)")
        if not 0 <= self.min_p <= 1:
            raise SettingError(f"min_p is {self.min_p}; it must be a number from 0 to 1 (0 keeps every token)")
        if not (math.isfinite(self.repetition_penalty) and self.repetition_penalty > 0):
            raise SettingError(
                f"repetition_penalty is {self.repetition_penalty}; it must be a number above 0 "
                "(1 changes nothing, more than 1 makes a repetition less probable)"
            )
        for name in ("frequency_penalty", "presence_penalty"):
            penalty = getattr(self, name)
            if not -LARGEST_PENALTY <= penalty <= LARGEST_PENALTY:
                raise SettingError(
                    f"{name} is {penalty}; it must be a number from {-LARGEST_PENALTY:g} to {LARGEST_PENALTY:g} "
                    "(0 changes nothing, more than 0 makes a repetition less probable)"
                )
        if self.arithmetic not in ARITHMETICS:
            raise SettingError(f"arithmetic is {self.arithmetic!r}; it must be {' or '.join(ARITHMETICS)}")
        if self.judged_at is not None and not (math.isfinite(self.judged_at) and self.judged_at >= 0):
            raise SettingError(f"judged_at is {self.judged_at}; it must be a temperature, a number from 0 up, or None")
        if not isinstance(self.prompt_length, Integral) or self.prompt_length < 0:
            raise SettingError(f"prompt_length is {self.prompt_length}; it must be a whole number from 0 up")

    @property
    def greedy(self) -> bool:
        """Whether the law is one-hot at the argmax."""
        return self.temperature == 0

    @property
    def target_temperature(self) -> float:
        """At which the target draws, whatever the draft does: how sure it is that a copy is kept depends on it."""
        return self.temperature if self.judged_at is None else self.judged_at

    @property
    def penalises(self) -> bool:
        """Whether the law depends on the tokens before it beyond what the model makes of them."""
        return self.repetition_penalty != 1 or self.frequency_penalty != 0 or self.presence_penalty != 0
