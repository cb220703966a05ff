"""The prompts of a benchmark: the built-in set, or a file.

The built-in 42 were written for Draftscope (Apache-2.0), six in each of seven categories. A file
has one prompt a line, as text or as JSON, or it is the `question.jsonl` of Spec-Bench (Xia et al.,
arXiv 2401.07851), of whose conversations the first turn is taken.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from engine.errors import PromptError

__all__ = ["Prompt", "built_in_prompts", "one_of_each", "parse_prompts", "read_prompts"]

NO_CATEGORY = "all"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text to answer. `identity` names it in a report, `category` groups it."""

    identity: str
    text: str
    category: str = NO_CATEGORY


def built_in_prompts() -> tuple[Prompt, ...]:
    """The 42 prompts that ship with Draftscope.

    Examples
    --------
    >>> prompts = built_in_prompts()
    >>> len(prompts), len({prompt.category for prompt in prompts})
    (42, 7)
    """
    text = files("engine.bench").joinpath("prompts.jsonl").read_text(encoding="utf-8")
    return parse_prompts(text, "the built-in prompts")


def read_prompts(path: str | Path) -> tuple[Prompt, ...]:
    """The prompts of a file; see `parse_prompts`.

    Raises
    ------
    PromptError
        If the file cannot be read as UTF-8, or is none of the three forms.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as failure:
        raise PromptError(f"the prompts file {path} cannot be read: {failure}; give a UTF-8 text file") from None
    return parse_prompts(text, str(path))


def parse_prompts(text: str, source: str) -> tuple[Prompt, ...]:
    r"""Prompts from text: one a line, blank lines left out.

    If the first line begins with a brace, every line is a JSON object: `{"prompt": ...}` with an
    optional "category", or Spec-Bench's `{"question_id": ..., "category": ..., "turns": [...]}`.

    Parameters
    ----------
    text : str
    source : str
        What an error calls the text.

    Raises
    ------
    PromptError
        If there is no prompt, or a line is not of the form; the message names the line.

    Examples
    --------
    >>> parse_prompts('{"question_id": 81, "category": "writing", "turns": ["Write.", "Again."]}', "a file")
    (Prompt(identity='81', text='Write.', category='writing'),)
    >>> [prompt.text for prompt in parse_prompts("One prompt.\n\nAnother.\n", "a file")]
    ['One prompt.', 'Another.']
    """
    lines = [(number, line.strip()) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise PromptError(f"{source} has no prompt; write one prompt a line")
    is_json = lines[0][1].startswith("{")
    prompts = tuple(
        _from_json(line, place, f"line {number} of {source}") if is_json else Prompt(str(place), line)
        for place, (number, line) in enumerate(lines, 1)
    )
    identity, n_times = Counter(prompt.identity for prompt in prompts).most_common(1)[0]
    if n_times > 1:
        raise PromptError(f"{source} has the question_id {identity} {n_times} times; each prompt needs its own")
    return prompts


def one_of_each(prompts: Sequence[Prompt], n_prompts: int) -> tuple[Prompt, ...]:
    """At most `n_prompts` prompts, taken from the categories in turn, in their own order.

    Examples
    --------
    >>> [prompt.identity for prompt in one_of_each(built_in_prompts(), 7)]
    ['1', '7', '13', '19', '25', '31', '37']
    """
    seen: dict[str, int] = {}
    ranked = []
    for place, prompt in enumerate(prompts):
        seen[prompt.category] = seen.get(prompt.category, -1) + 1
        ranked.append((seen[prompt.category], place))
    return tuple(prompts[place] for place in sorted(place for _, place in sorted(ranked)[:n_prompts]))


def _from_json(line: str, place: int, where: str) -> Prompt:
    try:
        data = json.loads(line)
    except ValueError as failure:
        raise PromptError(f"{where} is not JSON: {failure}") from None
    if not isinstance(data, dict):
        raise PromptError(f"{where} must be a JSON object with a prompt")
    text, identity = _text(data, where), data.get("question_id", place)
    category = data.get("category", NO_CATEGORY)
    if not isinstance(category, str) or not isinstance(identity, str | int):
        raise PromptError(f"{where}: category must be a string, and question_id a string or a number")
    return Prompt(str(identity), text, category)


def _text(data: dict[str, Any], where: str) -> str:
    turns = data.get("turns")
    text = turns[0] if isinstance(turns, list) and turns else data.get("prompt")
    if not isinstance(text, str) or not text.strip():
        raise PromptError(
            f'{where} has no prompt; expected "prompt": "..." or, as in Spec-Bench, "turns": ["..."], and text in it'
        )
    return text
