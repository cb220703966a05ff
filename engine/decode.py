"""The loop in which target, drafter, acceptance rule and length policy meet: a generator of events.

One step, after Leviathan et al., arXiv 2211.17192, Algorithm 1, with the rule as a part:

1. Ask the length policy how far to draft; cap it by what is left of the budget and of both contexts.
2. Let the drafter propose; cut the proposal behind an end token.
3. Verify: one call of the target gives its rows at every drafted position and one behind.
4. Judge: the rule says what is kept, and gives the target's own token.
5. Commit token by token, up to the earliest of end token, stop string and limit; the rest is discarded.

Rolling back is not in here: a model keeps its own cache, by longest common prefix.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from numbers import Integral

import numpy as np

from engine.acceptance.base import AcceptanceRule
from engine.acceptance.exact import ExactRejection
from engine.drafters.base import Drafter
from engine.errors import DraftError, DraftscopeError, ForwardError, PromptError, SettingError
from engine.lengths import FixedLength, LengthPolicy
from engine.models.base import Clock, Logits, Model, Tokenizer
from engine.output import Output
from engine.sampling import Noise, Rows, Sampling
from engine.stopwatch import Stopwatch
from engine.text import text_with_controls
from engine.values import Decision, Draft, Drafted, Event, Finished, FinishReason, Started, Step, Tokens, Verdict

__all__ = ["decode"]


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
    cancelled: Callable[[], bool] = lambda: False,
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
        Applied to the target and, where the drafter draws from a law, to the draft.
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
    cancelled : callable, default never
        Asked before every step; True ends the run with reason "cancelled".
    clock : callable, default `time.perf_counter`
        Gives seconds. One whose attribute `simulated` is true marks the run as simulated.

    Yields
    ------
    Event
        `Started`, then `Drafted` and `Step` in turn, then `Finished`. If a model, the drafter or
        the rule fails, the run ends with `Finished(reason="error")`, whose `error` names the step;
        what was emitted before is kept.

    Raises
    ------
    PromptError
        If the prompt is empty, too long, or has ids outside the target's vocabulary.
    SettingError
        If `max_tokens`, `seed` or `stop` cannot be used.

    Examples
    --------
    >>> from engine.drafters import NoDraft
    >>> from engine.models.callable import CallableModel
    >>> counting = CallableModel(lambda ids: np.eye(5)[(ids[-1] + 1) % 5], vocab_size=5)
    >>> *_, finished = decode(counting, NoDraft(), [2], sampling=Sampling(temperature=0), max_tokens=3)
    >>> finished.ids
    (3, 4, 0)
    """
    _check_prompt(prompt, target)
    if not isinstance(max_tokens, Integral) or max_tokens < 1:
        raise SettingError(f"max_tokens is {max_tokens}; it must be a whole number from 1 up")
    if isinstance(stop, str) or "" in stop or (stop and tokenizer is None):
        raise SettingError(
            f"stop is {stop!r}; it must be a sequence of strings, none of them empty, and needs a tokenizer"
        )
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
        rule=rule or ExactRejection(),
        lengths=lengths or FixedLength(),
        sampling=sampling or Sampling(),
        end_tokens=end_tokens,
        output=output,
        prompt_text=text_with_controls(tokenizer, prompt),
        noise=Noise(seed),
        cancelled=cancelled,
        clock=clock,
    )


def _events(
    target: Model,
    drafter: Drafter,
    context: list[int],
    *,
    rule: AcceptanceRule,
    lengths: LengthPolicy,
    sampling: Sampling,
    end_tokens: frozenset[int],
    output: Output,
    prompt_text: str,
    noise: Noise,
    cancelled: Callable[[], bool],
    clock: Clock,
) -> Iterator[Event]:
    draft_sampling = Sampling(temperature=0) if rule.greedy_draft else sampling
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
    reason: FinishReason | None = None
    error = ""
    try:
        if len(context) > 1:
            target.logits(context[:-1])
        if drafter.context_length is None or len(context) <= drafter.context_length:
            drafter.prepare(context)
        prefill_seconds = watch.lap()

        while reason is None:
            if cancelled():
                reason = "cancelled"
                break
            watch.resume()  # a caller may hold the run in there, as at every event
            # 1. How far to draft.
            limit, note = _draft_limit(lengths.next_length(), output.room, len(context), drafter)
            overhead_seconds = watch.lap()
            # 2. Propose.
            draft = Draft(note=note)
            if limit > 0:
                draft = drafter.propose(context, limit, sampling=draft_sampling, noise=noise, end_tokens=end_tokens)
                draft = _checked_draft(draft, limit, drafter, target.vocab_size, end_tokens)
            draft_seconds = watch.lap()
            texts = output.peek(draft.tokens)
            overhead_seconds += watch.lap()
            yield Drafted(index, len(context), draft.tokens, texts, draft_seconds, draft.note)
            watch.resume()
            # 3. Verify.
            n_rows = len(draft.tokens) + 1
            logits = _checked_rows(target.logits([*context, *draft.tokens], n_rows), n_rows, target)
            verify_seconds = watch.lap()
            # 4. Judge.
            rows = Rows(logits, sampling)
            verdict = rule.judge(draft, rows, noise=noise, start=len(context))
            _check_verdict(verdict, len(draft.tokens), rule, target.vocab_size)
            output.peek([verdict.token])  # a token without a text fails here, before a part of the step is committed
            lengths.observe(len(draft.tokens), verdict.n_accepted)
            # 5. Commit.
            n_before = len(output.ids)
            decisions = tuple(_decisions(draft, texts, verdict, rows, output))
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
                draft.note,
            )
            context.extend(emitted)
            reason = output.reason
            index += 1
    except Exception as failure:  # whatever a model, a drafter or a rule of the user's raises
        reason = "error"
        told = str(failure) if isinstance(failure, DraftscopeError) else f"{type(failure).__name__}: {failure}"
        error = f"step {index}: {told}"
    yield Finished(reason, tuple(output.ids), output.text, prefill_seconds, watch.total, error)


def _check_prompt(prompt: Tokens, target: Model) -> None:
    if not len(prompt):
        raise PromptError("the prompt is empty; give at least one token to continue from")
    if len(prompt) >= target.context_length:
        raise PromptError(
            f"the prompt has {len(prompt)} tokens, and {target.name} takes {target.context_length} "
            "with at least one token of output; shorten the prompt"
        )
    unknown = next((token for token in prompt if not 0 <= token < target.vocab_size), None)
    if unknown is not None:
        raise PromptError(f"the prompt has the id {unknown}; {target.name} knows the ids 0 to {target.vocab_size - 1}")


def _draft_limit(wanted: int, room: int, n_context: int, drafter: Drafter) -> tuple[int, str]:
    """How many tokens to draft, and why none if none. The target's own token takes one place of the room."""
    if wanted == 0:
        return 0, "the draft length is 0"
    if room == 1:
        return 0, "one token is left to emit, and the target gives it"
    draft_room = wanted if drafter.context_length is None else drafter.context_length - n_context + 1
    if draft_room <= 0:
        return 0, f"the context is longer than the drafter's {drafter.context_length} tokens"
    return min(wanted, room - 1, draft_room), ""


def _checked_draft(draft: Draft, limit: int, drafter: Drafter, vocab_size: int, end_tokens: frozenset[int]) -> Draft:
    if len(draft.tokens) > limit or len(draft.laws) != len(draft.tokens):
        raise DraftError(
            f"the drafter {drafter.name} gave {len(draft.tokens)} tokens with {len(draft.laws)} laws; "
            f"expected at most {limit} tokens and a law for each"
        )
    for place, token in enumerate(draft.tokens):
        if not 0 <= token < vocab_size:
            raise DraftError(
                f"the drafter {drafter.name} proposed the id {token}; the target knows the ids 0 to {vocab_size - 1}"
            )
        if not draft.laws[place].prob(token) > 0:
            raise DraftError(f"the drafter {drafter.name} proposed the id {token}, to which its own law gives nothing")
        if token in end_tokens:
            return draft.cut(place + 1)
    return draft


def _checked_rows(logits: Logits, n_rows: int, target: Model) -> Logits:
    if logits.shape != (n_rows, target.vocab_size):
        raise ForwardError(f"{target.name} gave rows of shape {logits.shape}; expected {(n_rows, target.vocab_size)}")
    if not np.isfinite(logits.max(axis=-1)).all():  # NaN and +inf show in the maximum, and so does a row all -inf
        raise ForwardError(f"{target.name} gave logits that are not numbers (NaN or infinite)")
    return logits


def _check_verdict(verdict: Verdict, n_drafted: int, rule: AcceptanceRule, vocab_size: int) -> None:
    """A rule tests the draft in order, up to the first refusal or the end, and gives a token of the target."""
    n_tested, n_accepted = len(verdict.tested), verdict.n_accepted
    whole = n_tested == n_accepted == n_drafted
    refused = n_tested == n_accepted + 1 <= n_drafted and not verdict.tested[-1].accepted
    if not (whole or refused) or not 0 <= verdict.token < vocab_size:
        raise DraftscopeError(
            f"the rule {rule.name} tested {n_tested} of {n_drafted} drafted tokens, kept {n_accepted} and gave the id "
            f"{verdict.token}; expected tests up to the first refusal, and an id from 0 to {vocab_size - 1}"
        )


def _decisions(
    draft: Draft, texts: tuple[str, ...], verdict: Verdict, rows: Rows, output: Output
) -> Iterator[Decision]:
    """Commit what the verdict kept, and say what happened at every position."""
    for position, (token, text) in enumerate(zip(draft.tokens, texts, strict=True)):
        if position >= len(verdict.tested):
            yield Decision(position, "unreached", draft_token=token, draft_text=text)
            continue
        test = verdict.tested[position]
        kept = token if test.accepted else verdict.token
        discarded, target_text, parts = _commit(kept, output)
        yield Decision(
            position,
            "accepted" if test.accepted else "rejected",
            draft_token=token,
            target_token=kept,
            accepted=test.accepted,
            discarded=discarded,
            draft_prob=test.draft_prob,
            target_prob=test.target_prob,
            accept_prob=test.accept_prob,
            draw=test.draw,
            emitted_prob=rows.law(position).prob(kept),
            margin=rows.margin(position),
            draft_text=text,
            target_text=target_text,
            target_parts=parts,
        )
    n_drafted = len(draft.tokens)
    if verdict.n_accepted == n_drafted:
        discarded, target_text, parts = _commit(verdict.token, output)
        yield Decision(
            n_drafted,
            "bonus" if n_drafted else "plain",
            target_token=verdict.token,
            discarded=discarded,
            emitted_prob=rows.law(n_drafted).prob(verdict.token),
            margin=rows.margin(n_drafted),
            target_text=target_text,
            target_parts=parts,
        )


def _commit(token: int, output: Output) -> tuple[bool, str, int]:
    """Whether the token is discarded, its text, and over how many tokens that is spread."""
    if output.reason is not None:
        return True, output.peek([token])[0], 1
    piece = output.commit(token)
    return False, piece.shown, piece.parts
