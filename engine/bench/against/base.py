"""What a rival is to a benchmark, and its runs as measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.bench.measure import Measurement
from engine.bench.plan import Configuration, Turn
from engine.bench.prompts import Prompt
from engine.errors import ForwardError

__all__ = ["Answer", "Rival", "RivalEngine", "RivalSetting"]

WARM_UP_TOKENS = 8


@dataclass(frozen=True, slots=True)
class RivalSetting:
    """One way of a rival to decode: "none" and 0, or the name of its drafter and the most tokens it drafts."""

    drafter: str
    draft_length: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What a rival did with a prompt.

    `n_timed` tokens were decoded in `decode_seconds`; the others came out of the prefill.
    """

    ids: tuple[int, ...]
    n_timed: int
    decode_seconds: float
    prefill_seconds: float
    n_drafted: int | None = None
    n_accepted: int | None = None


class Rival(Protocol):
    """Another program that decodes."""

    @property
    def name(self) -> str:
        """How reports call it."""

    @property
    def packages(self) -> Sequence[str]:
        """The packages whose versions a report names."""

    @property
    def settings(self) -> Sequence[RivalSetting]:
        """The ways it can decode; the plain one first."""

    @property
    def how_timed(self) -> str:
        """What is in its decode time, for a reader."""

    def answer(self, ids: Sequence[int], setting: RivalSetting, *, max_tokens: int, temperature: float) -> Answer:
        """Decode, from an empty cache."""


class RivalEngine:
    """A rival as a `Runner`: the runs of its configurations.

    Parameters
    ----------
    rival : Rival
    prompts : mapping of str to ids
        Every prompt's ids by its identity.
    max_tokens : int
    temperature : float
    """

    def __init__(
        self, rival: Rival, prompts: Mapping[str, Sequence[int]], *, max_tokens: int, temperature: float
    ) -> None:
        self._rival = rival
        self._prompts = prompts
        self._max_tokens = max_tokens
        self._temperature = temperature

    @property
    def configurations(self) -> tuple[Configuration, ...]:
        """The rival's ways to decode; the plain one first."""
        return tuple(Configuration(self._rival.name, way.drafter, way.draft_length) for way in self._rival.settings)

    def warm_up(self, configuration: Configuration, prompt: Prompt) -> None:
        """See `engine.bench.measure.Runner.warm_up`."""
        self._answer(configuration, prompt, WARM_UP_TOKENS)

    def run(self, turn: Turn) -> Measurement:
        """See `engine.bench.measure.Runner.run`.

        Raises
        ------
        ForwardError
            If the rival fails.
        """
        answer = self._answer(turn.configuration, turn.prompt, self._max_tokens)
        return Measurement(
            turn,
            answer.ids,
            answer.n_timed,
            answer.decode_seconds,
            answer.prefill_seconds,
            n_drafted=answer.n_drafted,
            n_accepted=answer.n_accepted,
        )

    def _answer(self, configuration: Configuration, prompt: Prompt, max_tokens: int) -> Answer:
        setting = RivalSetting(configuration.drafter, configuration.draft_length)
        ids = self._prompts[prompt.identity]
        try:
            return self._rival.answer(ids, setting, max_tokens=max_tokens, temperature=self._temperature)
        except Exception as failure:  # whatever a foreign program raises
            raise ForwardError(
                f"{configuration.name}, prompt {prompt.identity}: {type(failure).__name__}: {failure}"
            ) from failure
