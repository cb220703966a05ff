"""One run, judged by every rule: at each step the same draft, the same rows of the target, the same draws.

The run is decoded again from its spec, which gives the same tokens, and its rule is wrapped by one that lets all
the others look on. Only numbers are kept. Every rule judges along the text that the run's own rule emitted; what
another one would have emitted goes elsewhere after the first difference.

A rule that wants argmax drafts, and a run whose drafts were drawn, do not go together: what it accepts is told for the
drafts that are there, its bias for the drafts that it would have asked for, and the first token of those is told
apart where it is another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from engine.acceptance import AcceptanceRule, GumbelMatch, SampleMatch
from engine.build import build
from engine.csv_text import csv_line
from engine.drafters.tree import TreeDrafter
from engine.errors import DraftscopeError, RunDiffers, SettingError
from engine.gumbels import SharedGumbels
from engine.lab.cases import CHAIN_RULES
from engine.lab.watcher import Judged, TraceStep, Watcher
from engine.metrics import ratio
from engine.rules import RULES
from engine.spec import RunSpec
from engine.stopping import Cancelled, Stopped, never
from engine.values import Finished, Step

__all__ = ["RuleOnTrace", "Trace", "trace_csv", "trace_run"]

SAME = 1e-12
"""A distance below this is rounding."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class RuleOnTrace:
    """One rule over the whole trace; what is undefined is None.

    Attributes
    ----------
    name : str
    lossless : bool
    own : bool
        Whether the run was made with it.
    refusal : str
        Why it could not judge some steps, in words for a user; empty if it could.
    steps : int
        Judged ones; those that drafted nothing are among them.
    drafted, accepted : int
    tokens_per_step : float or None
        With the run's draws.
    expected_tokens_per_step : float or None
        Over all draws, given the drafts.
    mean_bias, largest_bias : float or None
        Over the steps that drafted.
    bias_unknown : float
        To within this the biases are known.
    other_first : int
        Steps where the rule would have asked for another first token.
    shared_numbers : bool or None
        None for most rules. For a rule that draws its own token at each position, whether the draft shared its
        random numbers: what it accepts with the run's draws hangs on that.
    """

    name: str
    lossless: bool
    own: bool
    refusal: str
    steps: int
    drafted: int
    accepted: int
    tokens_per_step: float | None
    expected_tokens_per_step: float | None
    mean_bias: float | None
    largest_bias: float | None
    bias_unknown: float
    other_first: int
    shared_numbers: bool | None

    @property
    def keeps_the_law(self) -> bool:
        """Whether the first token of every step has the target's law, as far as that is known."""
        return self.largest_bias is None or self.largest_bias <= SAME + self.bias_unknown


@dataclass(frozen=True, slots=True)
class Trace:
    """A run, judged by every rule.

    Attributes
    ----------
    rule, drafter : str
        Of the run.
    tokens : int
        Emitted.
    partial : bool
        Whether it was stopped before its end.
    rules : tuple of RuleOnTrace
        The run's own first.
    steps : tuple of TraceStep
    """

    rule: str
    drafter: str
    tokens: int
    partial: bool
    rules: tuple[RuleOnTrace, ...]
    steps: tuple[TraceStep, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What to mind of single rules, in sentences."""
        single = (note for rule in self.rules for note in _notes(rule))
        return (*_other_drafts(self.rules), *single, *_not_looked_at(self.rules))

    def to_dict(self) -> dict[str, Any]:
        """The trace as plain data."""
        return {"schema": 1, "kind": "draftscope trace", **asdict(self), "notes": list(self.notes)}


def trace_run(
    spec: RunSpec,
    ids: Sequence[int] | None = None,
    *,
    progress: Progress | None = None,
    cancelled: Cancelled = never,
) -> Trace:
    """Decode a run and let every rule judge it.

    Parameters
    ----------
    spec : RunSpec
        The other rules take their parameters from it, too.
    ids : sequence of int, optional
        What the run emitted when it was made; it is followed so far and must emit the same.
    progress : callable, optional
        Told (tokens emitted, most tokens).
    cancelled : callable, optional
        Asked before every step; True ends it, and what was judged until then is the result.

    Raises
    ------
    DraftscopeError
        If the run cannot be made, drafts trees, or ends with an error.
    RunDiffers
        If it emits other tokens than `ids`.
    Stopped
        If it was cancelled before the first step.

    Examples
    --------
    >>> found = trace_run(RunSpec(prompt="The draft model", max_tokens=12))
    >>> [rule.name for rule in found.rules][0], found.rules[0].largest_bias < 1e-12
    ('exact', True)
    """
    built = build(replace(spec, probe=0))
    if isinstance(built.drafter, TreeDrafter):
        raise SettingError(
            "this run drafts trees, and most rules judge chains only; with a tree width of 1 all of them can judge it"
        )
    others = {name: RULES[name](spec) for name in CHAIN_RULES if name != spec.rule}
    watcher = Watcher(built.rule, others, sampling=built.sampling)
    total = spec.max_tokens if ids is None else len(ids)
    emitted: list[int] = []
    partial = False
    for event in replace(built, rule=watcher).events(cancelled):
        if isinstance(event, Step):
            emitted.extend(event.emitted)
            if ids is not None:
                _check_same(emitted, ids)
            if progress:
                progress(len(emitted), total)
            if ids is not None and len(emitted) >= len(ids):
                break
        elif isinstance(event, Finished):
            if event.reason == "error":
                raise DraftscopeError(f"the run ended with an error: {event.error}")
            partial = event.reason == "cancelled"
            if ids is not None and not partial:
                _check_same(emitted, ids, ended=True)
    if not watcher.steps:
        raise Stopped
    coupled = getattr(built.rule, "noise", None) is SharedGumbels
    names = [spec.rule, *others]
    rules = {spec.rule: built.rule, **others}
    summaries = tuple(
        _summary(rules[name], watcher.steps, watcher.refusals.get(name, ""), own=name == spec.rule, coupled=coupled)
        for name in names
    )
    return Trace(spec.rule, built.drafter.name, len(emitted), partial, summaries, tuple(watcher.steps))


def trace_csv(trace: Trace) -> Iterator[str]:
    """A head and a line for every rule at every step that it judged."""
    head = ("step", "context_length", "rule", "drafted")
    yield csv_line((*head, *(field.name for field in fields(Judged))))
    for step in trace.steps:
        for name, judged in step.judged.items():
            yield csv_line((step.index, step.context_length, name, step.drafted, *asdict(judged).values()))


def _summary(
    rule: AcceptanceRule, steps: Sequence[TraceStep], refusal: str, *, own: bool, coupled: bool
) -> RuleOnTrace:
    judged = [(step, step.judged[rule.name]) for step in steps if rule.name in step.judged]
    biases = [one.bias for step, one in judged if step.drafted]
    accepted = sum(one.accepted for _, one in judged)
    return RuleOnTrace(
        name=rule.name,
        lossless=rule.lossless,
        own=own,
        refusal=refusal,
        steps=len(judged),
        drafted=sum(step.drafted for step, _ in judged),
        accepted=accepted,
        tokens_per_step=ratio(accepted + len(judged), len(judged)),
        expected_tokens_per_step=ratio(sum(one.expected_tokens for _, one in judged), len(judged)),
        mean_bias=ratio(sum(biases), len(biases)),
        largest_bias=max(biases, default=None),
        bias_unknown=max((one.bias_unknown for _, one in judged), default=0.0),
        other_first=sum(not one.own_first for _, one in judged),
        shared_numbers=coupled if rule.lossless and rule.needs == "nothing" else None,
    )


def _other_drafts(rules: Sequence[RuleOnTrace]) -> Iterator[str]:
    """The rules that want argmax drafts, together where they say the same."""
    found: dict[tuple[int, int], list[str]] = {}
    for rule in rules:
        if rule.other_first:
            found.setdefault((rule.other_first, rule.steps), []).append(rule.name)
    for (other_first, steps), names in found.items():
        verb, pronoun, own = ("wants", "it", "its") if len(names) == 1 else ("want", "they", "their")
        yield (
            f"{', '.join(names)}: {verb} the draft's most probable tokens, and these were drawn. At {other_first} of "
            f"{steps} steps {pronoun} would have drafted another first token. What {pronoun} would accept is told for "
            f"the drafts that are there, {own} bias for the others."
        )


def _notes(rule: RuleOnTrace) -> Iterator[str]:
    if rule.refusal:
        yield f"{rule.name}: could not judge every step; {rule.refusal}."
    if rule.name == GumbelMatch.name and rule.shared_numbers is False:
        yield (
            f"{rule.name}: its drafts would be drawn with the target's own random numbers, and these were not, so that "
            f"with the run's draws it accepts as {SampleMatch.name} does. Its expected tokens are those of drafts "
            "drawn so."
        )
    if rule.name != GumbelMatch.name and rule.shared_numbers:
        yield (
            f"{rule.name}: these drafts were drawn with the target's own random numbers, so that with the run's draws "
            f"it accepts as {GumbelMatch.name} does. Its expected tokens are those of draws of its own."
        )


def _not_looked_at(rules: Sequence[RuleOnTrace]) -> Iterator[str]:
    """The rules whose biases are not known to the last digit."""
    found = [rule for rule in rules if rule.bias_unknown]
    if found:
        names, unknown = ", ".join(rule.name for rule in found), max(rule.bias_unknown for rule in found)
        yield f"{names}: bias known to within {unknown:.2g}, the probability of first tokens that were not looked at."


def _check_same(emitted: Sequence[int], ids: Sequence[int], *, ended: bool = False) -> None:
    """Refuse a run that goes another way than when it was made."""
    for place, (now, then) in enumerate(zip(emitted, ids, strict=False)):
        if now != then:
            raise RunDiffers(
                f"the run gives another text now: its token {place + 1} is id {now} and was id {then}. Its model, "
                "backend or version is another one than when it was saved, so it cannot be judged again; make a new run"
            )
    if ended and len(emitted) < len(ids):
        raise RunDiffers(
            f"the run ends after {len(emitted)} tokens now, and had {len(ids)} when it was saved, so it cannot be "
            "judged again; make a new run"
        )
