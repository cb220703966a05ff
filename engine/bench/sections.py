"""The tables of a report, from a result: what both the terminal and Markdown show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.bench.plan import OWN
from engine.bench.verdict import estimate_text
from engine.figure_text import counted, fixed

__all__ = ["Section", "sections_of"]


@dataclass(frozen=True, slots=True)
class Section:
    """A titled table with notes; all columns but the first and those of `left` hold numbers."""

    title: str
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()
    left: frozenset[str] = frozenset()


def sections_of(result: Mapping[str, Any]) -> list[Section]:
    """All sections of a report, those without content left out."""
    rows = result["configurations"]
    sections = [
        _speeds(result),
        _steps(rows),
        _identical(rows, result["settings"]["temperature"]),
        _categories(rows, result["categories"]),
        _costs(result["costs"], result.get("not_predicted")),
        _against(result),
        _circumstances(result),
    ]
    return [section for section in sections if section.rows or section.notes]


def _speeds(result: Mapping[str, Any]) -> Section:
    settings = result["settings"]
    title = (
        f"Speed: {settings['target']}, {settings['prompts']} prompts ({settings['prompts_source']}), at most "
        f"{settings['max_tokens']} tokens, temperature {settings['temperature']:g}, "
        f"{counted(settings['repeats'], 'repeat')}"
    )
    head = ("configuration", "tokens/s", "speed-up (95 %)", "mean of categories", "predicted", "measured/predicted")
    rows = tuple(
        (
            row["name"],
            fixed(row["tokens_per_second"], 1),
            estimate_text(row["speed_up"]) if row["drafter"] != "none" or row["tokens_per_second"] is None else "1",
            fixed(row["mean_over_categories"]) if row["drafter"] != "none" else "",
            _own_number(row, "predicted_speed_up"),
            _own_number(row, "measured_over_predicted"),
        )
        for row in result["configurations"]
    )
    notes = tuple(f"without {drafter}: {reason}" for drafter, reason in result["skipped"].items())
    return Section(title, head, rows, notes)


def _steps(rows: Sequence[Mapping[str, Any]]) -> Section:
    head = (
        "configuration",
        "tokens/step",
        "acceptance rate",
        "per token",
        "by position",
        "draft",
        "verify",
        "overhead",
    )
    return Section(
        "Where the time goes",
        head,
        tuple(
            (
                row["name"],
                fixed(row["tokens_per_step"]) if row["engine"] == OWN else "",
                fixed(row["acceptance_rate"]) if row["drafter"] != "none" else "",
                _own_number(row, "per_token_acceptance"),
                " ".join(fixed(share) for share in row["acceptance_by_position"] or ()),
                _percent(row["draft_share"]) if row["engine"] == OWN else "",
                _percent(row["verify_share"]) if row["engine"] == OWN else "",
                _percent(row["overhead_share"]) if row["engine"] == OWN else "",
            )
            for row in rows
        ),
        left=frozenset(("by position",)),
    )


def _identical(rows: Sequence[Mapping[str, Any]], temperature: float) -> Section:
    if temperature > 0:
        return Section("Same text as plain", notes=("not compared: above temperature 0 the texts differ by design",))
    compared = [row for row in rows if row["prompts_compared"]]
    return Section(
        "Same ids as Draftscope's plain decoding",
        ("configuration", "prompts", "differ", "of these near-ties", "first divergence"),
        tuple(
            (
                row["name"],
                str(row["prompts_compared"]),
                str(row["prompts_that_differ"]),
                str(row["near_tie_differences"]) if row["prompts_that_differ"] else "",
                _divergence(row["divergences"]),
            )
            for row in compared
        ),
        left=frozenset(("first divergence",)),
    )


def _divergence(found: Sequence[Mapping[str, Any]]) -> str:
    if not found:
        return ""
    first = found[0]
    lead = "" if first["margin"] is None else f", where the plain logit led by {first['margin']:.2g}"
    return f"prompt {first['prompt']}, token {first['position'] + 1}{lead}"


def _categories(rows: Sequence[Mapping[str, Any]], categories: Sequence[str]) -> Section:
    drafting = [row for row in rows if row["drafter"] != "none"]
    if len(categories) < 2:
        drafting = []
    return Section(
        "Speed-up by category",
        ("configuration", *categories),
        tuple(
            (
                row["name"],
                *(fixed(estimate["value"] if estimate else None) for estimate in row["by_category"].values()),
            )
            for row in drafting
        ),
    )


def _costs(costs: Mapping[str, Any] | None, not_predicted: str | None) -> Section:
    if costs is None:
        return Section("Cost of single calls", notes=(f"not measured: {not_predicted}",) if not_predicted else ())
    curve = " ".join(f"v({rows})={value:.2f}" for rows, value in enumerate(costs["verify"], 1))
    notes = [
        f"a plain call of the target at {costs['context_tokens']} tokens of context: "
        f"{costs['plain_call_seconds'] * 1000:.2f} ms; in its units:",
        f"a call for several rows: {curve}",
    ]
    for drafter, cost in costs["draft"].items():
        c = ", ".join(f"{row['cost'] / row['draft_length']:.3f}" for row in cost["by_length"])
        lengths = ", ".join(str(row["draft_length"]) for row in cost["by_length"])
        notes.append(
            f"{drafter}: a proposal costs {cost['per_step']:.3f} + {cost['per_token']:.3f} a token; "
            f"c at draft length {lengths}: {c}"
        )
    return Section("Cost of single calls", notes=tuple(notes))


def _against(result: Mapping[str, Any]) -> Section:
    plain = {row["name"]: row for row in result["configurations"]}
    return Section(
        "Draftscope's plain decoding against others, same prompts, same file, in turns",
        ("against", "its tokens/s", "Draftscope is (95 %)"),
        tuple(
            (
                row["name"],
                fixed(plain[row["name"]]["tokens_per_second"], 1),
                estimate_text(row["own_plain_over_it"]),
            )
            for row in result["against"]
        ),
        tuple(f"{name} is timed {how}" for name, how in result["how_rivals_are_timed"].items()),
    )


def _circumstances(result: Mapping[str, Any]) -> Section:
    machine = result["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    threads = "the BLAS library's own setting" if machine["threads"] is None else str(machine["threads"])
    settings = result["settings"]
    passed = f"; backend {result['backend']}" if result["backend"] else ""
    passed += f", exact rows {'on' if settings['exact_rows'] else 'off'}" if "exact_rows" in settings else ""
    return Section(
        "Machine",
        notes=(
            f"{machine['processor']}, {machine['cores']} cores, {_gigabytes(machine['memory_bytes'])}, "
            f"{machine['system']}",
            f"threads: {threads}{passed}; load average before {fixed(result['load_before'])}, "
            f"after {fixed(result['load_after'])}",
            f"load time {result['load_seconds']:.2f} s; peak memory {_gigabytes(result['peak_memory_bytes'])}",
            f"{versions}; started {result['started']}",
        ),
    )


def _own_number(row: Mapping[str, Any], name: str) -> str:
    """A figure that only Draftscope's own drafting configurations have."""
    return fixed(row[name]) if row["engine"] == OWN and row["drafter"] != "none" else ""


def _percent(share: float | None) -> str:
    return "n/a" if share is None else f"{share:.1%}"


def _gigabytes(n_bytes: int | None) -> str:
    return "n/a" if n_bytes is None else f"{n_bytes / 1e9:.2f} GB"
