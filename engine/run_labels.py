"""What a user writes on a run: tags to find it by, and a note."""

from __future__ import annotations

from collections.abc import Iterable

from engine.errors import SettingError

__all__ = ["MOST_TAGS", "checked_note", "checked_tags"]

MOST_TAGS = 20
LONGEST_TAG = 40
LONGEST_NOTE = 4000


def checked_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """The tags without blanks around them, each once, whatever its capitals; the first way of writing stays.

    Raises
    ------
    SettingError
        If a tag is empty, too long, or has a comma or a control character in it, or there are too many.

    Examples
    --------
    >>> checked_tags([" baseline", "long prompt", "Baseline"])
    ('baseline', 'long prompt')
    """
    kept: dict[str, str] = {}
    for tag in (tag.strip() for tag in tags):
        if not 0 < len(tag) <= LONGEST_TAG or "," in tag or not tag.isprintable():
            raise SettingError(
                f"the tag {tag!r} cannot be used; give 1 to {LONGEST_TAG} characters on one line, without a comma"
            )
        kept.setdefault(tag.casefold(), tag)
    if len(kept) > MOST_TAGS:
        raise SettingError(f"these are {len(kept)} tags; a run can have {MOST_TAGS}")
    return tuple(kept.values())


def checked_note(note: str) -> str:
    """The note without blanks around it.

    Raises
    ------
    SettingError
        If it is too long, or no valid Unicode.

    Examples
    --------
    >>> checked_note(" before the update ")
    'before the update'
    """
    kept = note.strip()
    if len(kept) > LONGEST_NOTE:
        raise SettingError(f"the note has {len(kept)} characters; it can have {LONGEST_NOTE}")
    if any("\ud800" <= character <= "\udfff" for character in kept):
        raise SettingError("the note has bytes that are no valid UTF-8; give it as UTF-8 text")
    return kept
