"""What the loop refuses: a prompt that cannot be used, and what a model, a drafter or a rule may not give."""

from __future__ import annotations

import math
from dataclasses import replace

from engine.acceptance.base import AcceptanceRule
from engine.acceptance.tree import children_of
from engine.drafters.base import Drafter
from engine.errors import DraftError, DraftscopeError, ForwardError, PromptError
from engine.models.base import Logits, Model
from engine.sampling import Peaks
from engine.tree import MOST_NODES, children
from engine.values import Draft, Tokens, Verdict

__all__ = ["check_prompt", "check_rule", "check_verdict", "checked_draft", "checked_rows"]


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
    """The draft, without what stands behind an end token."""
    _check_shape(draft, limit, drafter)
    if not draft.tokens:
        return replace(draft, parents=None)
    behind: set[int] = set()  # of the tokens of a tree: those behind an end token
    for place, token in enumerate(draft.tokens):
        if not 0 <= token < vocab_size:
            raise DraftError(
                f"the drafter {drafter.name} proposed the id {token}; the target knows the ids 0 to {vocab_size - 1}"
            )
        if not draft.laws[place].prob(token) > 0:
            raise DraftError(f"the drafter {drafter.name} proposed the id {token}, to which its own law gives nothing")
        if draft.parents is None:
            if token in end_tokens:
                return draft.cut(place + 1)
        elif token in end_tokens or draft.parents[place] in behind:
            behind.add(place)
    return _without(draft, {place for place in behind if draft.links[place] in behind})


def _check_shape(draft: Draft, limit: int, drafter: Drafter) -> None:
    n, parents = len(draft.tokens), draft.parents
    if parents is not None and (
        len(parents) != n or n > MOST_NODES or not all(-1 <= parent < place for place, parent in enumerate(parents))
    ):
        raise DraftError(
            f"the drafter {drafter.name} gave a tree of {n} tokens with the parents {parents}; expected at most "
            f"{MOST_NODES} tokens, and for each the place of one before it, or -1"
        )
    if draft.depth > limit or len(draft.laws) != n:
        in_a_row = "" if parents is None else f", {draft.depth} of them in a row,"
        raise DraftError(
            f"the drafter {drafter.name} gave {n} tokens{in_a_row} with {len(draft.laws)} laws; "
            f"expected at most {limit} tokens{' in a row' if in_a_row else ''} and a law for each"
        )


def _without(draft: Draft, dropped: set[int]) -> Draft:
    """The tree without some of its tokens, and with them all that follows them."""
    if not dropped:
        return draft
    kept = [place for place in range(len(draft.tokens)) if place not in dropped]
    new_place = {-1: -1} | {place: new for new, place in enumerate(kept)}
    return Draft(
        tuple(draft.tokens[place] for place in kept),
        tuple(draft.laws[place] for place in kept),
        None if draft.logits is None else tuple(draft.logits[place] for place in kept),
        draft.note,
        tuple(new_place[draft.links[place]] for place in kept),
    )


def checked_rows(logits: Logits, n_rows: int, target: Model, peaks: Peaks | None = None) -> Peaks:
    """The peaks of the rows, which are numbers; a logit of -inf is one if the row has others.

    `peaks` are those that the target has found already.
    """
    if logits.shape != (n_rows, target.vocab_size):
        raise ForwardError(f"{target.name} gave rows of shape {logits.shape}; expected {(n_rows, target.vocab_size)}")
    peaks = peaks or Peaks(logits)  # where NaN is, or +inf; or -inf in a row that has no other
    if not all(map(math.isfinite, peaks.values)):
        raise ForwardError(f"{target.name} gave logits that are not numbers (NaN or infinite)")
    return peaks


def check_rule(rule: AcceptanceRule, draft: Draft, drafter: Drafter) -> None:
    if draft.parents is not None and children_of(rule) is None:
        raise DraftError(
            f"the drafter {drafter.name} proposed a tree, and the rule {rule.name} judges chains only; "
            "choose a rule that takes trees, or a tree width of 1"
        )


def check_verdict(verdict: Verdict, draft: Draft, rule: AcceptanceRule, vocab_size: int) -> None:
    """A rule tests the draft in order, at least up to the first refusal, keeps what is before it, and gives a token.

    In a tree it tests children in order up to the first that it keeps, from the root on.
    """
    n_drafted, n_tested, n_accepted = len(draft.tokens), len(verdict.tested), verdict.n_accepted
    right = _is_a_walk(verdict, draft) if verdict.nodes is not None else _is_in_order(verdict, draft)
    if not right or not 0 <= verdict.token < vocab_size:
        places = "" if verdict.nodes is None else f" (those at {verdict.nodes})"
        expected = "at least up to the first refusal, none kept behind it"
        if draft.parents is not None:
            expected = "of siblings in order, up to the first that is kept, from the root to the end of a branch"
        raise DraftscopeError(
            f"the rule {rule.name} tested {n_tested} of {n_drafted} drafted tokens{places}, kept {n_accepted} and gave "
            f"the id {verdict.token}; expected tests {expected}, and an id from 0 to {vocab_size - 1}"
        )


def _is_in_order(verdict: Verdict, draft: Draft) -> bool:
    n_drafted, n_tested, n_accepted = len(draft.tokens), len(verdict.tested), verdict.n_accepted
    in_front = all(test.accepted for test in verdict.tested[:n_accepted])
    enough = n_accepted == n_drafted or n_accepted < n_tested
    return draft.parents is None and in_front and enough and n_tested <= n_drafted


def _is_a_walk(verdict: Verdict, draft: Draft) -> bool:
    if len(verdict.places) != len(verdict.tested):
        return False
    below = children(draft.links)
    waiting = below[0]
    for place, test in zip(verdict.places, verdict.tested, strict=True):
        if not waiting or place != waiting[0]:
            return False
        waiting = below[place + 1] if test.accepted else waiting[1:]
    return not waiting
