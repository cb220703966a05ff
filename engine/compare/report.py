"""A comparison as text for a terminal: the sentences first, then the tables they stand on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from engine.bench.machine import busy_words
from engine.bench.verdict import estimate_text
from engine.figure_text import counted, fixed

__all__ = ["prompts_caveat", "text_report"]

Table = Callable[..., str]
LENGTHS_SHOWN = (0, 1, 2, 3, 4, 6, 8, 12, 16)


def text_report(result: Mapping[str, Any], table: Table) -> str:
    """The report.

    Parameters
    ----------
    result : mapping
        See `engine.compare.result.comparison_of`.
    table : callable
        Aligns rows, such as `engine.cli.table.table`.
    """
    rows = result["configurations"]
    blocks = [_head(result), "\n".join(f"{row['name']}: {row['sentence']}" for row in rows[1:])]
    blocks.append(
        "Speed\n"
        + table(
            ("configuration", "tokens/s", "speed-up (95 %)", "with prefill", "tokens/step", "acceptance rate"),
            [
                (
                    row["name"],
                    fixed(row["tokens_per_second"], 1),
                    estimate_text(row["speed_up"]) if row is not rows[0] else "1",
                    estimate_text(row["speed_up_with_prefill"]) if row is not rows[0] else "1",
                    fixed(row["tokens_per_step"], 2),
                    fixed(row["acceptance_rate"], 2),
                )
                for row in rows
            ],
            right={"tokens/s", "speed-up (95 %)", "with prefill", "tokens/step", "acceptance rate"},
        )
    )
    blocks.append(
        "Where the time goes, milliseconds a token\n"
        + table(
            ("configuration", "draft", "verify", "overhead"),
            [(row["name"], *(_milliseconds(row[f"{part}_seconds_per_token"]) for part in PARTS)) for row in rows],
            right=set(PARTS),
        )
    )
    blocks.append("Text\n" + "\n".join(f"{row['name']}: {row['text_sentence']}" for row in rows[1:]))
    if len(result["categories"]) > 1:
        blocks.append(
            "Speed-up by category\n"
            + table(
                ("category", *(row["name"] for row in rows[1:])),
                [
                    (category, *(estimate_text(row["by_category"][category]) for row in rows[1:]))
                    for category in result["categories"]
                ],
                right={row["name"] for row in rows[1:]},
            )
        )
    if reason := result.get("not_predicted"):
        blocks.append(f"What if: {reason}")
    for name, prediction in result.get("predictions", {}).items():
        blocks.append(_prediction(name, prediction, table))
    return "\n\n".join(blocks)


PARTS = ("draft", "verify", "overhead")


def prompts_caveat(result: Mapping[str, Any]) -> str:
    """What to mind of a comparison on a single prompt; nothing of one on several.

    Examples
    --------
    >>> prompts_caveat({"prompts": 2})
    ''
    >>> print(prompts_caveat({"prompts": 1}))
    ONE PROMPT: an interval tells how far its repeats vary, and nothing of other prompts
    """
    if result["prompts"] != 1:
        return ""
    return "ONE PROMPT: an interval tells how far its repeats vary, and nothing of other prompts"


def _head(result: Mapping[str, Any]) -> str:
    settings = result["settings"]
    lines = [
        f"{settings['target']}, {counted(result['prompts'], 'prompt')}, "
        f"{counted(result['repeats'], 'repeat')}, at most {settings['max_tokens']} tokens, "
        f"temperature {settings['temperature']:g}"
    ]
    if result["partial"]:
        lines.append(f"PARTIAL: stopped after {result['runs_done']} of {result['runs_planned']} runs")
    if result["simulated"]:
        lines.append("SIMULATED: every time is made up of the given costs of a call; nothing was timed")
    if caveat := prompts_caveat(result):
        lines.append(caveat)
    if result["busy"]:
        lines.append(busy_words(result))
    return "\n".join(lines)


def _prediction(name: str, found: Mapping[str, Any], table: Table) -> str:
    lengths = [length for length in found["lengths"] if length in LENGTHS_SHOWN]
    made_up = "SIMULATED, " if found["simulated"] else ""
    lines = [
        f"What if: {made_up}{name} at other draft lengths; best {found['best_length']}, {found['best_speed_up']:.2f}x",
        table(
            ("draft length", *map(str, lengths)),
            [
                ("predicted", *(f"{found['predicted'][length]:.2f}" for length in lengths)),
                ("theory", *(f"{found['theory'][length]:.2f}" for length in lengths)),
                ("v(length + 1)", *(f"{found['verify'][length]:.2f}" for length in lengths)),
            ],
            right=set(map(str, lengths)),
        ),
    ]
    lines += [
        f"{point['name']}: measured {estimate_text(_measured(point))}, predicted {point['predicted']:.2f}x, "
        f"{point['words']}"
        for point in found["points"]
    ]
    return "\n".join(lines)


def _measured(point: Mapping[str, Any]) -> dict[str, Any]:
    return {"value": point["measured"], "low": point["low"], "high": point["high"]}


def _milliseconds(seconds: float | None) -> str:
    return "n/a" if seconds is None else f"{1000 * seconds:.3g}"
