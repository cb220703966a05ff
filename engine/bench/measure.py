"""Making the runs of a plan, in its order, and keeping what was measured, even if interrupted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from engine.bench.plan import Configuration, Plan, Turn
from engine.bench.prompts import Prompt
from engine.build import build
from engine.drafters.earlier_outputs import EarlierOutputs
from engine.errors import ForwardError, PromptError
from engine.metrics import Figures, Tally
from engine.spec import RunSpec
from engine.stopping import Cancelled, Stopped, never
from engine.values import Event, Step

__all__ = [
    "Measurement",
    "Measurements",
    "OwnEngine",
    "Runner",
    "Seen",
    "check_prompts",
    "measure_plan",
    "never_seen",
    "never_told",
]

WARM_UP_TOKENS = 8


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run, measured.

    Attributes
    ----------
    turn : Turn
    ids : tuple of int
        What was emitted.
    n_timed : int
        How many of the ids were decoded within `decode_seconds`.
    decode_seconds, prefill_seconds : float
    margins : tuple of float or None
        For each id, how far the best logit was ahead of the second best; empty where unknown.
    figures : Figures or None
        All that the engine knows of its own run; None for a rival's.
    n_drafted, n_accepted : int or None
        None where a rival does not tell.
    """

    turn: Turn
    ids: tuple[int, ...]
    n_timed: int
    decode_seconds: float
    prefill_seconds: float
    margins: tuple[float | None, ...] = ()
    figures: Figures | None = None
    n_drafted: int | None = None
    n_accepted: int | None = None


@dataclass(slots=True)
class Measurements:
    """What has been measured so far; `partial` if an interrupt or a stop came before the end."""

    plan: Plan
    runs: list[Measurement] = field(default_factory=list)
    partial: bool = False


Seen = Callable[[Turn, Event], None]
"""Given the events of the runs, each with its turn."""


class Runner(Protocol):
    """What makes the runs of one engine."""

    def warm_up(self, configuration: Configuration, prompt: Prompt) -> None:
        """Make a short run that is not measured."""

    def run(self, turn: Turn) -> Measurement:
        """Make one run."""


def never_told(turn: Turn) -> None:
    """Progress that nobody watches."""


def never_seen(turn: Turn, event: Event) -> None:
    """Events that nobody watches."""


class OwnEngine:
    """Draftscope's own runs: each is built afresh, so every prefill starts from nothing.

    The weights are read once: the catalogue keeps the files that it has read.

    Parameters
    ----------
    base : RunSpec
        Everything that the configurations do not say.
    seen : callable, optional
        Given every event of every measured run as it happens. Its own time is not measured.
    cancelled : callable, optional
        Asked before every step; True raises `Stopped`.
    new_seeds : bool, default False
        Whether each repeat has a seed of its own, counted on from that of `base`.
    """

    def __init__(
        self, base: RunSpec, *, seen: Seen = never_seen, cancelled: Cancelled = never, new_seeds: bool = False
    ) -> None:
        self._base = base
        self._seen = seen
        self._cancelled = cancelled
        self._outputs: dict[tuple[int, Configuration], EarlierOutputs] = {}
        self._new_seeds = new_seeds

    def warm_up(self, configuration: Configuration, prompt: Prompt) -> None:
        """See `Runner.warm_up`."""
        spec = configuration.spec(self._base, prompt.text)
        self._decode(spec, None, WARM_UP_TOKENS)

    def run(self, turn: Turn) -> Measurement:
        """See `Runner.run`.

        Raises
        ------
        ForwardError
            If the run ended with an error.
        Stopped
            If it was cancelled.
        """
        spec = turn.configuration.spec(self._base, turn.prompt.text)
        if self._new_seeds:
            spec = replace(spec, seed=spec.seed + turn.repeat)
        ids, margins, figures = self._decode(spec, turn)
        if figures.error:
            raise ForwardError(f"{turn.configuration.name}, prompt {turn.prompt.identity}: {figures.error}")
        return Measurement(
            turn,
            tuple(ids),
            figures.tokens_generated,
            figures.decode_seconds,
            figures.prefill_seconds,
            tuple(margins),
            figures,
            figures.drafted,
            figures.accepted,
        )

    def _decode(
        self, spec: RunSpec, turn: Turn | None = None, n_tokens: int | None = None
    ) -> tuple[list[int], list[float | None], Figures]:
        tally = Tally()
        ids: list[int] = []
        margins: list[float | None] = []
        for event in build(spec, outputs=self._outputs_of(spec, turn)).events(self._cancelled):
            tally.add(event)
            if turn is not None:
                self._seen(turn, event)
            if isinstance(event, Step):
                ids += event.emitted
                kept = [decision for decision in event.decisions if decision.target_token is not None]
                margins += [decision.margin for decision in kept if not decision.discarded]
                if n_tokens is not None and len(ids) >= n_tokens:
                    break
        figures = tally.figures()
        if figures.finish_reason == "cancelled":
            raise Stopped
        return ids, margins, figures

    def _outputs_of(self, spec: RunSpec, turn: Turn | None) -> EarlierOutputs:
        """Of a configuration and a repeat its own: no run sees an output of the same prompt, or another's outputs."""
        fresh = EarlierOutputs(spec.suffix_choice)
        return fresh if turn is None else self._outputs.setdefault((turn.repeat, turn.configuration), fresh)


def check_prompts(plan: Plan, base: RunSpec) -> dict[str, tuple[int, ...]]:
    """The ids of every prompt, by its identity.

    Raises
    ------
    PromptError
        If a prompt cannot be encoded, or leaves no room in the target's context; it is named.
    """
    ids: dict[str, tuple[int, ...]] = {}
    for prompt in plan.prompts:
        try:
            built = build(Configuration().spec(base, prompt.text))
        except PromptError as failure:
            raise PromptError(f"prompt {prompt.identity}: {failure}") from None
        if len(built.prompt) >= built.loaded.model.context_length:
            raise PromptError(
                f"prompt {prompt.identity} has {len(built.prompt)} tokens, and {built.loaded.model.name} takes "
                f"{built.loaded.model.context_length} with at least one token of output; leave it out or shorten it"
            )
        ids[prompt.identity] = built.prompt
    return ids


def measure_plan(
    plan: Plan,
    runners: Mapping[str, Runner],
    told: Callable[[Turn], None] = never_told,
    cancelled: Cancelled = never,
) -> Measurements:
    """Make all runs of a plan, after a short unmeasured run of every configuration.

    Parameters
    ----------
    plan : Plan
    runners : mapping
        By the name of the engine; Draftscope itself among them.
    told : callable, optional
        Called after every run.
    cancelled : callable, optional
        Asked before every run; True ends the measuring.

    Returns
    -------
    Measurements
        Marked partial if `cancelled`, a `KeyboardInterrupt` or `Stopped` ended it; a run in hand is
        dropped then.
    """
    measurements = Measurements(plan)
    try:
        for configuration in plan.configurations:
            _go_on(cancelled)
            runners[configuration.engine].warm_up(configuration, plan.prompts[0])
        for turn in plan.turns():
            _go_on(cancelled)
            measurements.runs.append(runners[turn.configuration.engine].run(turn))
            told(turn)
    except (KeyboardInterrupt, Stopped):
        measurements.partial = True
    return measurements


def _go_on(cancelled: Cancelled) -> None:
    if cancelled():
        raise Stopped
