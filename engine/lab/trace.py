"""One run, judged by every rule: at each step the same draft, the same rows of the target, the same draws.

The run is decoded again from its spec, which gives the same tokens, and its rule is wrapped by one that lets all
the others look on. Only numbers are kept. Every rule judges along the text that the run's own rule emitted; what
another one would have emitted goes elsewhere after the first difference.

A rule that wants argmax drafts, and a run whose drafts were drawn, do not go together: what it accepts is told for the
drafts that are there, its bias for the drafts that it would have asked for, and the first token of those is told
apart where it is another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from engine.build import build
from engine.csv_text import csv_line
from engine.drafters.tree import TreeDrafter
from engine.errors import DraftscopeError, RunDiffers, SettingError
from engine.figure_text import counted
from engine.gumbels import SharedGumbels
from engine.lab.cases import CHAIN_RULES
from engine.lab.trace_notes import notes
from engine.lab.trace_rules import RuleOnTrace, summary
from engine.lab.watcher import Judged, TraceStep, Watcher
from engine.models.base import LoadProgress, Progress
from engine.rules import RULES
from engine.spec import RunSpec
from engine.stopping import Cancelled, Stopped, never
from engine.values import Finished, Step

__all__ = ["Trace", "trace_csv", "trace_run"]


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
    def about(self) -> str:
        """What was judged, in words."""
        length = f"{counted(self.tokens, 'token')} in {counted(len(self.steps), 'step')}"
        return f"{length} by the rule {self.rule}, drafter {self.drafter}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What to mind of single rules, in sentences."""
        return tuple(notes(self.rules))

    def to_dict(self) -> dict[str, Any]:
        """The trace as plain data."""
        return {"schema": 1, "kind": "draftscope trace", **asdict(self), "notes": list(self.notes)}


def trace_run(
    spec: RunSpec,
    ids: Sequence[int] | None = None,
    *,
    progress: Progress | None = None,
    loading: LoadProgress | None = None,
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
    loading : callable, optional
        Told of the loading of the models; see `engine.build.build`.
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
    built = build(replace(spec, probe=0), loading)
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
    coupled = getattr(built.rule, "noise", None) is SharedGumbels if watcher.drew else None
    names = [spec.rule, *others]
    rules = {spec.rule: built.rule, **others}
    summaries = tuple(
        summary(rules[name], watcher.steps, watcher.refusals.get(name, ""), own=name == spec.rule, coupled=coupled)
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
