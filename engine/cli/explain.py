"""A step as lines for a terminal: what `engine.explain` says of it, with a table of the alternatives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import fill
from typing import Any

from engine.cli.table import table
from engine.explain import number, quoted

__all__ = ["explained"]

WIDTH = 100
HEAD = ("", "token", "draft", "target", "residual", "logit")
NOT_RECORDED = "The alternatives of this run were not recorded: `--probe 8` keeps eight of every step."


def explained(told: Mapping[str, Any]) -> str:
    """What to tell of a step, from `engine.explain.explain`."""
    return "\n".join(_lines(told))


def _lines(told: Mapping[str, Any]) -> Iterator[str]:
    yield f"step {told['step'] + 1}, behind {told['context_length']} tokens" + (
        f": {told['note']}" if told["note"] else ""
    )
    aside = [position for position in told["positions"] if _is_aside(position)]
    for position in told["positions"]:
        if position not in aside:
            yield ""
            yield f"{position['position'] + 1}. {_tokens(position)}{_behind(position)}"
            yield _wrapped(position["words"])
            if position["logprob_words"]:
                yield _wrapped(position["logprob_words"])
    if aside:
        yield from ("", f"on branches of the tree that were not gone down, so that nobody judged them ({len(aside)}):")
        yield _wrapped(", ".join(f"{position['position'] + 1} {_drafted(position)}" for position in aside))
    choice = told["choice"]
    if choice is None:
        yield from ("", NOT_RECORDED)
        return
    yield from ("", f"the deciding position, {choice['position'] + 1}", *map(_wrapped, choice["words"]), "")
    others = ("", "all other tokens", *(number(choice[f"{law}_others"]) for law in ("draft", "target", "residual")), "")
    rows = [*map(_row, choice["alternatives"]), others]
    columns = [place for place in range(len(HEAD)) if place < 2 or any(row[place] not in ("", "n/a") for row in rows)]
    shown = [[row[place] for place in columns] for row in rows]
    yield table(tuple(HEAD[place] for place in columns), shown, right=frozenset(HEAD[2:]))


def _tokens(position: Mapping[str, Any]) -> str:
    drafted, given = (
        None if position[f"{side}_token"] is None else quoted(position[f"{side}_text"], position[f"{side}_token"])
        for side in ("draft", "target")
    )
    outcome = position["outcome"] + (", then discarded" if position["discarded"] else "")
    return f"{drafted or given} {outcome}" + (f", {given} in its place" if position["outcome"] == "rejected" else "")


def _is_aside(position: Mapping[str, Any]) -> bool:
    return position["outcome"] == "unreached" and position["parent"] is not None


def _behind(position: Mapping[str, Any]) -> str:
    """Which token of a tree it stands behind."""
    parent = position["parent"]
    return "" if parent is None or parent < 0 else f", behind {parent + 1}"


def _drafted(position: Mapping[str, Any]) -> str:
    return quoted(position["draft_text"], position["draft_token"])


def _row(row: Mapping[str, Any]) -> tuple[str, ...]:
    marks = ", ".join(name for name in ("guess", "taken") if row[name])
    logit = "" if row["target_logit"] is None else number(row["target_logit"])
    probs = (number(row[f"{law}_prob"]) for law in ("draft", "target", "residual"))
    return (marks, quoted(row["text"], row["token"]), *probs, logit)


def _wrapped(words: str) -> str:
    return fill(words, WIDTH, initial_indent="   ", subsequent_indent="   ", replace_whitespace=False)
