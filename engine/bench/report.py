"""A result as tables: for a terminal, or as Markdown to paste into an issue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engine.bench.machine import busy_words, was_busy
from engine.bench.sections import Section, sections_of

__all__ = ["markdown_report", "text_report"]

Table = Callable[..., str]


def text_report(result: Mapping[str, Any], table: Table) -> str:
    """The report for a terminal.

    Parameters
    ----------
    result : mapping
        See `engine.bench.summary.result_of`.
    table : callable
        Aligns rows, such as `engine.cli.table.table`.
    """
    blocks = [_head(result)]
    for section in sections_of(result):
        lines = [section.title]
        if section.rows:
            lines.append(table(section.head, section.rows, right=frozenset(section.head[1:]) - section.left))
        blocks.append("\n".join([*lines, *section.notes]))
    return "\n\n".join(blocks)


def markdown_report(result: Mapping[str, Any]) -> str:
    """The report as Markdown: the verdict first, the tables behind it."""
    blocks = [f"### Draftscope benchmark\n\n{_head(result, bold='**')}"]
    for section in sections_of(result):
        block = [f"#### {section.title}"]
        if section.rows:
            block.append(_markdown_table(section))
        if section.notes:
            block.append("\n".join(f"- {_escaped(note)}" for note in section.notes))
        blocks.append("\n\n".join(block))
    return "\n\n".join(blocks)


def _head(result: Mapping[str, Any], bold: str = "") -> str:
    lines = [f"{bold}Speculation {result['verdict']}{bold}"]
    if result["partial"]:
        lines.append(f"PARTIAL: interrupted after {result['runs_done']} of {result['runs_planned']} runs")
    if result["simulated"]:
        lines.append("SIMULATED: every time is made up of the given costs of a call; nothing was timed")
    if was_busy(result) and not result["simulated"]:
        lines.append(busy_words(result))
    return "\n\n".join(lines) if bold else "\n".join(lines)


def _markdown_table(section: Section) -> str:
    alignment = ["---" if name == section.head[0] or name in section.left else "--:" for name in section.head]
    lines: Sequence[Sequence[str]] = [section.head, alignment, *section.rows]
    return "\n".join("| " + " | ".join(_escaped(cell) for cell in line) + " |" for line in lines)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
