"""What the parts of a step cost, each by itself: the target's call for 1 to 9 rows, a drafter's proposal.

All samples are taken in turns at one context, as far into a text as a real run is, and medians are
compared.  Everything is in units of one plain call of the target, which is v(1).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np

from engine.bench.plan import Configuration
from engine.build import BuiltRun, build
from engine.drafters.earlier_outputs import EarlierOutputs
from engine.models.base import Clock, LoadedModel, Progress
from engine.sampling import Noise
from engine.spec import RunSpec
from engine.stopping import Cancelled, Stopped, never

__all__ = ["CONTEXT_TOKENS", "Costs", "DraftCost", "fit_line", "measure_costs", "not_predicted"]

CONTEXT_TOKENS = 200
CURVE_ROWS = 9
N_ROUNDS = 9


@dataclass(frozen=True, slots=True)
class DraftCost:
    """A drafter's proposal in plain calls of the target: `per_step` + `per_token` x tokens drafted.

    `by_length` holds what was measured: (draft length, tokens drafted, cost) for each length.
    """

    per_step: float
    per_token: float
    by_length: tuple[tuple[int, float, float], ...]

    def of_call(self, length: int) -> float:
        """The paper's c at a draft length: the cost of a proposal, shared by its tokens."""
        return (self.per_step + self.per_token * length) / length


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of one target and its drafters.

    Attributes
    ----------
    context_tokens : int
        Where they were measured.
    plain_call_seconds : float
        The unit.
    verify : tuple of float
        v(1), v(2), ...: a call for so many new rows, in units of a call for one.
    draft : dict of str to DraftCost
    """

    context_tokens: int
    plain_call_seconds: float
    verify: tuple[float, ...]
    draft: dict[str, DraftCost]

    def verify_cost(self, n_rows: int) -> float:
        """v(n_rows), continued in a straight line where the curve ends."""
        measured = len(self.verify)
        if n_rows <= measured or measured == 1:
            return self.verify[min(n_rows, measured) - 1]
        return self.verify[-1] + (self.verify[-1] - self.verify[-2]) * (n_rows - measured)


def not_predicted(spec: RunSpec) -> str | None:
    """Why nothing can be predicted from the costs of calls; None if it can.

    Calls of the embedded pair are instant, so that most of a step is time outside of them, which a prediction
    leaves out; on its simulated clock a target without a price takes no time at all.

    Examples
    --------
    >>> not_predicted(RunSpec())
    'the embedded pair is instant, so what its calls cost predicts nothing; give them a price'
    >>> not_predicted(RunSpec(target_call_seconds=0.02)) is None
    True
    """
    if spec.target != "markov" or spec.target_call_seconds:
        return None
    if spec.draft_call_seconds:
        return "a call of this target takes no time on its clock, so nothing can be held against it; give it a price"
    return "the embedded pair is instant, so what its calls cost predicts nothing; give them a price"


def measure_costs(
    base: RunSpec,
    drafters: Sequence[str],
    lengths: Sequence[int],
    text: str,
    *,
    n_rounds: int = N_ROUNDS,
    progress: Progress | None = None,
    cancelled: Cancelled = never,
) -> Costs | None:
    """Time the target's calls and the drafters' proposals by themselves.

    Parameters
    ----------
    base : RunSpec
        Names the target.
    drafters : sequence of str
    lengths : sequence of int
        Draft lengths; a proposal of one token is always among those timed.
    text : str
        The context is its first 200 tokens, or half of the target's context if that is less.
    n_rounds : int, default 9
        Samples of everything; one more round, the first, is thrown away.
    progress : callable, optional
        Told (calls made, calls in all).
    cancelled : callable, optional
        Asked before every call.

    Returns
    -------
    Costs or None
        None if a plain call takes no time (a simulated clock may say so).

    Raises
    ------
    Stopped
        If it was cancelled.
    """
    longest = max(lengths, default=1)
    built = build(Configuration().spec(base, text))
    room = built.loaded.model.context_length
    n_context = min(CONTEXT_TOKENS, max(2, room // 2))
    n_rows = min(max(CURVE_ROWS, longest + 1), room - n_context)
    ids = _plain_ids(built.loaded, text, n_context + n_rows)
    clock: Clock = built.loaded.clock or time.perf_counter
    timed_lengths = sorted({1, *lengths})
    nothing = EarlierOutputs(base.suffix_choice)  # what is timed does not depend on the runs before
    builds = {
        drafter: build(Configuration(drafter=drafter, draft_length=longest).spec(base, text), outputs=nothing)
        for drafter in drafters
    }
    calls: dict[int, list[float]] = {rows: [] for rows in range(1, n_rows + 1)}
    proposals: dict[tuple[str, int], list[tuple[int, float]]] = {
        (drafter, length): [] for drafter in drafters for length in timed_lengths
    }
    generator = np.random.default_rng(base.seed)
    last_tokens = cycle(sorted(set(ids[:n_context])))
    n_done, n_samples = 0, (n_rounds + 1) * (n_rows + len(proposals))

    def one_more() -> None:
        nonlocal n_done
        if cancelled():
            raise Stopped
        if progress:
            progress(n_done, n_samples)
        n_done += 1

    for place in range(n_rounds + 1):
        for rows in generator.permutation(n_rows) + 1:
            one_more()
            seconds = _call_seconds(built.loaded, clock, ids, n_context, int(rows), shift=place)
            calls[int(rows)] += [seconds] if place else []
        for drafter, length in proposals:
            one_more()
            sample = _proposal(builds[drafter], [*ids[: n_context - 1], next(last_tokens)], length)
            proposals[drafter, length] += [sample] if place else []
    unit = float(np.median(calls[1]))
    if unit <= 0:
        return None
    return Costs(
        n_context,
        unit,
        tuple(float(np.median(calls[rows])) / unit for rows in calls),
        {drafter: _draft_cost(proposals, drafter, timed_lengths, unit) for drafter in drafters},
    )


def fit_line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Offset and slope, neither below 0, of the least-squares line through (x, y).

    Examples
    --------
    >>> fit_line([(1, 3.0), (2, 5.0)]), fit_line([(4, 2.0)]), fit_line([(0, 2.0)])
    ((1.0, 2.0), (0.0, 0.5), (2.0, 0.0))
    """
    x, y = np.array(points, dtype=np.float64).T
    spread = float(((x - x.mean()) ** 2).sum())
    if not x.any():
        return float(y.mean()), 0.0
    slope = float(((x - x.mean()) * (y - y.mean())).sum()) / spread if spread else -1.0
    offset = float(y.mean() - slope * x.mean())
    if spread and slope < 0:
        return float(y.mean()), 0.0
    if spread and offset >= 0:
        return offset, slope
    return 0.0, float((x * y).sum() / (x * x).sum())


def _plain_ids(loaded: LoadedModel, text: str, n_tokens: int) -> list[int]:
    """So many ids of the text, from its beginning and, if it is short, over again."""
    ids = loaded.tokenizer.encode(text)
    return (ids * (n_tokens // len(ids) + 1))[:n_tokens]


def _call_seconds(loaded: LoadedModel, clock: Clock, ids: list[int], n_context: int, rows: int, *, shift: int) -> float:
    """Time of a call that must feed exactly `rows` tokens: all of the context but the last is in the cache."""
    model = loaded.model
    start = n_context - 1
    tail = [(token + 1 + shift) % model.vocab_size for token in ids[start : start + rows]]
    model.logits(ids[:start])
    begin = clock()
    model.logits([*ids[:start], *tail], rows)
    return clock() - begin


def _proposal(built: BuiltRun, context: list[int], length: int) -> tuple[int, float]:
    """Tokens and seconds of a proposal, behind a call of the target for the same context, as in a run."""
    clock: Clock = built.loaded.clock or time.perf_counter
    built.loaded.model.logits(context)
    begin = clock()
    draft = built.drafter.propose(
        context,
        length,
        sampling=built.sampling,
        noise=Noise(built.spec.seed),
        end_tokens=frozenset(),
    )
    return len(draft.tokens), clock() - begin


def _draft_cost(
    proposals: dict[tuple[str, int], list[tuple[int, float]]], drafter: str, lengths: Sequence[int], unit: float
) -> DraftCost:
    by_length = []
    for length in lengths:
        tokens, seconds = np.median(np.array(proposals[drafter, length]), axis=0)
        by_length.append((length, float(tokens), float(seconds) / unit))
    return DraftCost(*fit_line([(tokens, cost) for _, tokens, cost in by_length]), tuple(by_length))
