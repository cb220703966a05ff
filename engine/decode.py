"""The loop in which target, drafter, acceptance rule and length policy meet: a generator of events.

One step, after Leviathan et al., arXiv 2211.17192, Algorithm 1, with the rule as a part:

1. Ask the length policy how far to draft; cap it by what is left of the budget and of both contexts.
2. Let the drafter propose, asking the policy whether to go on; cut the proposal behind an end token.
3. Verify: one call of the target gives its rows at every drafted position and one behind; of a tree,
   along every branch.
4. Judge: the rule says what is kept, and gives the target's own token.
5. Commit token by token, up to the earliest of end token, stop string and limit; the rest is discarded.

Rolling back is not in here: a model keeps its own cache, by longest common prefix.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral

from engine.acceptance.base import AcceptanceRule
from engine.acceptance.exact import ExactRejection
from engine.checks import check_prompt, check_rule, check_verdict, checked_draft, checked_rows
from engine.decisions import decided, texts_of
from engine.drafters.base import Drafter, LearnsFromOutputs, LearnsFromRows
from engine.errors import DraftscopeError, SettingError
from engine.lengths import FixedLength, LengthPolicy, StepOutcome
from engine.models.base import Clock, Model, PeakedModel, Tokenizer
from engine.models.tree_rows import tree_rows
from engine.output import Output
from engine.probe import Probe, check_probe
from engine.sampling import Noise, Rows, Sampling
from engine.stopping import Cancelled, never
from engine.stopwatch import Stopwatch
from engine.text import text_with_controls
from engine.values import Draft, Drafted, Event, Finished, FinishReason, Started, Step, Tokens

__all__ = ["decode", "sampling_of_draft"]

PREFILL = "the prefill"


def decode(
    target: Model,
    drafter: Drafter,
    prompt: Tokens,
    *,
    rule: AcceptanceRule | None = None,
    lengths: LengthPolicy | None = None,
    sampling: Sampling | None = None,
    max_tokens: int = 128,
    stop: Sequence[str] = (),
    end_tokens: frozenset[int] = frozenset(),
    tokenizer: Tokenizer | None = None,
    seed: int = 0,
    probe: int = 0,
    logprobs: bool = False,
    cancelled: Cancelled = never,
    clock: Clock = time.perf_counter,
) -> Iterator[Event]:
    """Decode speculatively, yielding an event at every turn.

    The caller may stop reading at any event; time in which it holds the generator is not counted.

    Parameters
    ----------
    target : Model
        Its output is what counts.
    drafter : Drafter
        What guesses; `NoDraft()` makes this the plain baseline.
    prompt : sequence of int
        At least one id, and shorter than the target's context.
    rule : AcceptanceRule, default `ExactRejection()`
    lengths : LengthPolicy, default `FixedLength()`
    sampling : Sampling, default `Sampling()`
        Applied to the target and, where the drafter draws from a law, to the draft. Its `prompt_length`
        is set to the length of `prompt`.
    max_tokens : int, default 128
        Most tokens to emit, at least 1.
    stop : sequence of str, default ()
        Texts that end the run where they first appear, within a token or across several. The token
        that completes one is emitted; `Finished.text` ends before it. Needs a tokenizer.
    end_tokens : frozenset of int, default empty
        Ids that end the run; the id itself is emitted and is no part of the text.
    tokenizer : Tokenizer, optional
        Turns ids into text; without it every text is empty.
    seed : int, default 0
        Key of all random numbers: the same seed and settings give the same tokens.
    probe : int, default 0
        Rows of alternatives to keep of every step as its evidence, at most `MOST_ALTERNATIVES` of
        `engine.evidence`; 0 keeps none and computes none. It changes no token, and its time is apart.
    logprobs : bool, default False
        Note the target's own log-probability of every token that is emitted (`Decision.logprob`). It
        changes no token; a sum over the vocabulary for each is part of the overhead.
    cancelled : callable, default never
        Asked before every step; True ends the run with reason "cancelled".
    clock : callable, default `time.perf_counter`
        Gives seconds. One whose attribute `simulated` is true marks the run as simulated.

    Yields
    ------
    Event
        `Started`, then `Drafted` and `Step` in turn, then `Finished`. If a model, the drafter or
        the rule fails, the run ends with `Finished(reason="error")`, whose `error` names the step, counted from 1;
        what was emitted before is kept.

    Raises
    ------
    PromptError
        If the prompt is empty, too long, or has ids outside the target's vocabulary.
    SettingError
        If `max_tokens`, `seed`, `stop` or `probe` cannot be used.

    Examples
    --------
    >>> import numpy as np
    >>> from engine.drafters import NoDraft
    >>> from engine.models.callable import CallableModel
    >>> counting = CallableModel(lambda ids: np.eye(5)[(ids[-1] + 1) % 5], vocab_size=5)
    >>> *_, finished = decode(counting, NoDraft(), [2], sampling=Sampling(temperature=0), max_tokens=3)
    >>> finished.ids
    (3, 4, 0)
    """
    check_prompt(prompt, target)
    if not isinstance(max_tokens, Integral) or max_tokens < 1:
        raise SettingError(f"max_tokens is {max_tokens}; it must be a whole number from 1 up")
    if isinstance(stop, str) or "" in stop or (stop and tokenizer is None):
        raise SettingError(
            f"stop is {stop!r}; it must be a sequence of strings, none of them empty, and needs a tokenizer"
        )
    check_probe(probe)
    rule = rule or ExactRejection()
    sampling = replace(sampling or Sampling(), prompt_length=len(prompt))
    output = Output(
        tokenizer,
        end_tokens=end_tokens,
        stop=stop,
        max_tokens=max_tokens,
        context_room=target.context_length - len(prompt),
    )
    return _events(
        target,
        drafter,
        [int(token) for token in prompt],
        rule=rule,
        lengths=lengths or FixedLength(),
        sampling=sampling,
        draft_sampling=sampling_of_draft(sampling, rule),
        end_tokens=end_tokens,
        output=output,
        probe=Probe(probe, rule, output) if probe else None,
        logprobs=logprobs,
        prompt_text=text_with_controls(tokenizer, prompt),
        noise=getattr(rule, "noise", Noise)(seed),
        cancelled=cancelled,
        clock=clock,
    )


def sampling_of_draft(sampling: Sampling, rule: AcceptanceRule) -> Sampling:
    """How a drafter samples: as the target or, for some rules, its most probable token; it knows what it is judged at.

    Examples
    --------
    >>> from engine.acceptance import SampleMatch
    >>> drafting = sampling_of_draft(Sampling(temperature=0.7), SampleMatch())
    >>> drafting.temperature, drafting.target_temperature
    (0, 0.7)
    """
    return replace(sampling, temperature=0, judged_at=sampling.temperature) if rule.greedy_draft else sampling


def _events(
    target: Model,
    drafter: Drafter,
    context: list[int],
    *,
    rule: AcceptanceRule,
    lengths: LengthPolicy,
    sampling: Sampling,
    draft_sampling: Sampling,
    end_tokens: frozenset[int],
    output: Output,
    probe: Probe | None,
    logprobs: bool,
    prompt_text: str,
    noise: Noise,
    cancelled: Cancelled,
    clock: Clock,
) -> Iterator[Event]:
    yield Started(
        target.name,
        drafter.name,
        rule.name,
        rule.lossless,
        noise.seed,
        tuple(context),
        simulated=getattr(clock, "simulated", False),
        prompt_text=prompt_text,
        backend=getattr(target, "backend", ""),
        exact_rows=getattr(target, "exact_rows", False),
    )
    watch = Stopwatch(clock)
    prefill_seconds = 0.0
    index = 0
    place = PREFILL
    reason: FinishReason | None = None
    error = ""
    observer = drafter if isinstance(drafter, LearnsFromRows) else None
    finder = target if isinstance(target, PeakedModel) else None
    try:
        if len(context) > 1:
            target.logits(context[:-1])
        if drafter.context_length is None or len(context) <= drafter.context_length:
            drafter.prepare(context)
        prefill_seconds = watch.lap()

        while reason is None:
            place = f"step {index + 1}"
            if cancelled():
                reason = "cancelled"
                break
            watch.resume()  # a caller may hold the run in there, as at every event
            # 1. How far to draft.
            drawing = noise.of_step(len(context))
            limit, note = _draft_limit(lengths, output.room, len(context), drafter)
            overhead_seconds = watch.lap()
            # 2. Propose.
            draft = Draft()
            if limit > 0:
                draft = drafter.propose(
                    context, limit, sampling=draft_sampling, noise=drawing, end_tokens=end_tokens, go_on=lengths
                )
                draft = checked_draft(draft, limit, drafter, target.vocab_size, end_tokens)
                check_rule(rule, draft, drafter)
                note = draft.note or note
            draft_seconds = watch.lap()
            texts = texts_of(draft, output)
            overhead_seconds += watch.lap()
            yield Drafted(index, len(context), draft.tokens, texts, draft_seconds, note, draft.parents)
            watch.resume()
            # 3. Verify.
            n_rows = len(draft.tokens) + 1
            if draft.parents is None:
                logits = target.logits([*context, *draft.tokens], n_rows)
            else:
                logits = tree_rows(target, context, draft.tokens, draft.parents)
            peaks = checked_rows(logits, n_rows, target, finder.peaks(logits) if finder else None)
            verify_seconds = watch.lap()
            # 4. Judge.
            rows = Rows(logits, sampling, partial(draft.before, context), peaks)
            verdict = rule.judge(draft, rows, noise=drawing, start=len(context))
            check_verdict(verdict, draft, rule, target.vocab_size)
            output.peek([verdict.token])  # a token without a text fails here, before a part of the step is committed
            kept_whole = verdict.deciding is None
            lengths.observe(StepOutcome(draft.depth, verdict.n_accepted, draft_seconds, verify_seconds, kept_whole))
            if observer is not None:
                observer.observe([context[-1], *draft.tokens], logits)
            evidence, probe_seconds = None, 0.0
            if probe:
                overhead_seconds += watch.lap()
                evidence = probe.evidence(draft, rows, verdict, noise=drawing, start=len(context))
                probe_seconds = watch.aside()
            # 5. Commit.
            n_before = len(output.ids)
            decisions = tuple(decided(draft, texts, verdict, rows, output, logprobs=logprobs))
            emitted = output.ids[n_before:]
            overhead_seconds += watch.lap()
            yield Step(
                index,
                len(context),
                decisions,
                tuple(emitted),
                draft_seconds,
                verify_seconds,
                overhead_seconds,
                watch.total,
                note,
                evidence,
                probe_seconds,
            )
            context.extend(emitted)
            reason = output.reason
            index += 1
        if isinstance(drafter, LearnsFromOutputs):
            place = "the end"
            drafter.finished(output.ids)
    except Exception as failure:  # whatever a model, a drafter or a rule of the user's raises
        reason = "error"
        told = str(failure) if isinstance(failure, DraftscopeError) else f"{type(failure).__name__}: {failure}"
        error = f"{place}: {told}"
        if place == PREFILL:
            prefill_seconds = watch.lap()
    yield Finished(reason, tuple(output.ids), output.text, prefill_seconds, watch.total, error)


def _draft_limit(lengths: LengthPolicy, room: int, n_context: int, drafter: Drafter) -> tuple[int, str]:
    """How many tokens to draft, and why fewer than wanted. The target's own token takes one place of the room."""
    wanted = lengths.next_length()
    if wanted == 0:
        return 0, lengths.reason or "the draft length is 0"
    draft_room = wanted if drafter.context_length is None else max(0, drafter.context_length - n_context + 1)
    limit = min(wanted, room - 1, draft_room)
    if limit == wanted:
        return limit, ""
    if draft_room == 0:
        return 0, f"the context is longer than the drafter's {drafter.context_length} tokens"
    if limit == draft_room:
        return limit, f"the drafter's context of {drafter.context_length} tokens has room for {limit} more"
    if limit == 0:
        return 0, "one token is left to emit, and the target gives it"
    return limit, f"{room} tokens are left to emit, and the last of them is the target's"
