"""From a verdict to decisions: commit what was kept, and say what happened at every position of the step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from engine.output import Output
from engine.sampling import Rows
from engine.tree import branch
from engine.values import Decision, Draft, Tested, Verdict

__all__ = ["decided", "texts_of"]


def texts_of(draft: Draft, output: Output) -> tuple[str, ...]:
    """How each drafted token would be shown behind those that it follows."""
    if not draft.tokens:
        return ()
    if draft.parents is None:
        return output.peek(draft.tokens)
    branches = (branch(draft.parents, place) for place in range(len(draft.tokens)))
    return tuple(output.peek([draft.tokens[place] for place in places])[-1] for places in branches)


def decided(
    draft: Draft, texts: tuple[str, ...], verdict: Verdict, rows: Rows, output: Output, *, logprobs: bool = False
) -> Iterator[Decision]:
    """Commit what the verdict kept, and say what happened at every position."""
    tests = dict(zip(verdict.places, verdict.tested, strict=True))
    rejected = verdict.deciding
    for position, (token, text, link) in enumerate(zip(draft.tokens, texts, draft.links, strict=True)):
        parent = None if draft.parents is None else link
        test = tests.get(position)
        in_vain = verdict.nodes is None and position > verdict.n_accepted  # some rules test what is behind a refusal
        if test is None or in_vain:
            yield _not_kept(Decision(position, "unreached", token, draft_text=text, parent=parent), test)
            continue
        if not test.accepted and position != rejected:
            yield _not_kept(Decision(position, "declined", token, draft_text=text, parent=parent), test)
            continue
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
            emitted_prob=rows.law(link + 1).prob(kept),
            logprob=rows.log_probability(link + 1, kept) if logprobs else None,
            margin=rows.margin(link + 1, kept),
            draft_text=text,
            target_text=target_text,
            target_parts=parts,
            parent=parent,
        )
    if rejected is None:
        last = verdict.last_kept
        discarded, target_text, parts = _commit(verdict.token, output)
        yield Decision(
            len(draft.tokens),
            "bonus" if draft.tokens else "plain",
            target_token=verdict.token,
            discarded=discarded,
            emitted_prob=rows.law(last + 1).prob(verdict.token),
            logprob=rows.log_probability(last + 1, verdict.token) if logprobs else None,
            margin=rows.margin(last + 1, verdict.token),
            target_text=target_text,
            target_parts=parts,
            parent=None if draft.parents is None else last,
        )


def _not_kept(decision: Decision, test: Tested | None) -> Decision:
    """The decision with the numbers of its test, if it had one."""
    if test is None:
        return decision
    return replace(
        decision,
        draft_prob=test.draft_prob,
        target_prob=test.target_prob,
        accept_prob=test.accept_prob,
        draw=test.draw,
    )


def _commit(token: int, output: Output) -> tuple[bool, str, int]:
    """Whether the token is discarded, its text, and over how many tokens that is spread."""
    if output.reason is not None:
        return True, output.peek([token])[0], 1
    piece = output.commit(token)
    return False, piece.shown, piece.parts
