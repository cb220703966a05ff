"""What the loop refuses: a prompt that cannot be used, and what a model, a drafter or a rule may not give."""

from __future__ import annotations

import numpy as np

from engine.acceptance.base import AcceptanceRule
from engine.drafters.base import Drafter
from engine.errors import DraftError, DraftscopeError, ForwardError, PromptError
from engine.models.base import Logits, Model
from engine.values import Draft, Tokens, Verdict

__all__ = ["check_prompt", "check_verdict", "checked_draft", "checked_rows"]


def check_prompt(prompt: Tokens, target: Model) -> None:
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


def checked_draft(draft: Draft, limit: int, drafter: Drafter, vocab_size: int, end_tokens: frozenset[int]) -> Draft:
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


def checked_rows(logits: Logits, n_rows: int, target: Model) -> Logits:
    if logits.shape != (n_rows, target.vocab_size):
        raise ForwardError(f"{target.name} gave rows of shape {logits.shape}; expected {(n_rows, target.vocab_size)}")
    if not np.isfinite(logits.max(axis=-1)).all():  # NaN and +inf show in the maximum, and so does a row all -inf
        raise ForwardError(f"{target.name} gave logits that are not numbers (NaN or infinite)")
    return logits


def check_verdict(verdict: Verdict, n_drafted: int, rule: AcceptanceRule, vocab_size: int) -> None:
    """A rule tests the draft in order, at least up to the first refusal, keeps what is before it, and gives a token."""
    n_tested, n_accepted = len(verdict.tested), verdict.n_accepted
    in_front = all(test.accepted for test in verdict.tested[:n_accepted])
    enough = n_accepted == n_drafted or n_accepted < n_tested
    if not (in_front and enough and n_tested <= n_drafted) or not 0 <= verdict.token < vocab_size:
        raise DraftscopeError(
            f"the rule {rule.name} tested {n_tested} of {n_drafted} drafted tokens, kept {n_accepted} and gave the id "
            f"{verdict.token}; expected tests at least up to the first refusal, none kept behind it, and an id from 0 "
            f"to {vocab_size - 1}"
        )
