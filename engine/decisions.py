"""From a verdict to decisions: commit what was kept, and say what happened at every position of the step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from engine.output import Output
from engine.sampling import Rows
from engine.values import Decision, Draft, Verdict

__all__ = ["decided"]


def decided(
    draft: Draft, texts: tuple[str, ...], verdict: Verdict, rows: Rows, output: Output, *, logprobs: bool = False
) -> Iterator[Decision]:
    """Commit what the verdict kept, and say what happened at every position."""
    for position, (token, text) in enumerate(zip(draft.tokens, texts, strict=True)):
        if position > verdict.n_accepted:
            yield _unreached(position, token, text, verdict)
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
            logprob=rows.log_probability(position, kept) if logprobs else None,
            margin=rows.margin(position, kept),
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
            logprob=rows.log_probability(n_drafted, verdict.token) if logprobs else None,
            margin=rows.margin(n_drafted, verdict.token),
            target_text=target_text,
            target_parts=parts,
        )


def _unreached(position: int, token: int, text: str, verdict: Verdict) -> Decision:
    """A drafted token behind the refused one; some rules have tested it all the same."""
    decision = Decision(position, "unreached", draft_token=token, draft_text=text)
    if position >= len(verdict.tested):
        return decision
    test = verdict.tested[position]
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
