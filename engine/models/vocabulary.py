"""Whether two models speak of the same tokens: a draft's id must mean to the target what it meant to the draft.

Sizes prove nothing (two vocabularies of one size may disagree everywhere, and files pad theirs to
round numbers), so ids are compared one by one, by the bytes that they stand for.
"""

from __future__ import annotations

import re

from engine.errors import VocabularyError
from engine.models.base import Tokenizer

__all__ = ["check_vocabulary"]

# Names given to rows that no text uses: <|extra_17|>, [PAD151936], <|reserved_special_token_3|>, <unused12>, <pad>, ...
PADDING = re.compile(rb"[<\[]\|?(?:extra|pad|reserved|unused|dummy|placeholder)[a-z0-9_ -]*\|?[>\]]|", re.IGNORECASE)


def check_vocabulary(target: Tokenizer, draft: Tokenizer) -> None:
    """Raise unless every id means the same to both models.

    Two vocabularies are shared if their ids stand for the same bytes and agree on which are
    control tokens, up to the length of the shorter.  The longer one may go on with *padding*
    only: ids whose bytes are empty or a name of the kind `<|extra_0|>`, `[PAD151936]`,
    `<|reserved_special_token_0|>`, `<unused7>`.

    Parameters
    ----------
    target, draft : Tokenizer

    Raises
    ------
    VocabularyError
        Naming the first id that differs and what it is on either side.

    Examples
    --------
    >>> from engine.models.words import WordTokenizer
    >>> check_vocabulary(WordTokenizer("a b c"), WordTokenizer("a b c"))
    """
    if target is draft:
        return
    n_shared = min(target.vocab_size, draft.vocab_size)
    target_bytes, draft_bytes = _all_bytes(target), _all_bytes(draft)
    for token, (ours, theirs) in enumerate(zip(target_bytes, draft_bytes, strict=False)):
        if ours != theirs or target.is_control(token) != draft.is_control(token):
            raise VocabularyError(
                f"id {token} is {_shown(target, token)} for the target and {_shown(draft, token)} for the draft; "
                "speculative decoding needs two models with the same tokens, so use a draft of the target's own family"
            )
    longer, side = (target_bytes, "target") if len(target_bytes) > n_shared else (draft_bytes, "draft")
    for token in range(n_shared, len(longer)):
        if not PADDING.fullmatch(longer[token]):
            raise VocabularyError(
                f"the target has {target.vocab_size} ids and the draft {draft.vocab_size}, and id {token}, which only "
                f"the {side} has, is {longer[token]!r}, not padding; use a draft of the target's own family"
            )


def _all_bytes(tokenizer: Tokenizer) -> list[bytes]:
    return [tokenizer.token_bytes(token) for token in range(tokenizer.vocab_size)]


def _shown(tokenizer: Tokenizer, token: int) -> str:
    kind = "the control token " if tokenizer.is_control(token) else ""
    return f"{kind}{tokenizer.token_bytes(token).decode(errors='backslashreplace')!r}"
