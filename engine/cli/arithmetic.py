"""`python -m engine arithmetic`: the sampler in floating point against the sampler in whole numbers."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from engine.bench.arithmetic import ArithmeticRow, compare_arithmetics
from engine.cli.bar import progress_bar
from engine.cli.table import table
from engine.errors import SettingError

__all__ = ["add_parser"]

HEAD = ("arithmetic", "logits", "row", "law, ms", "log-probability, ms", "distance", "at most")


def add_parser(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser(
        "arithmetic",
        help="time the sampler's arithmetics against each other",
        description="Time a law and a log-probability in floating point and in whole numbers, on made-up rows, and "
        "tell how far each law is from the exact one (total variation). It takes some seconds.",
        allow_abbrev=False,
    )
    parser.set_defaults(handler=_arithmetic)
    parser.add_argument("--repeats", type=int, default=40, metavar="N", help="turns (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON object, and nothing else")


def _arithmetic(arguments: argparse.Namespace) -> int:
    if arguments.repeats < 1:
        raise SettingError(f"repeats is {arguments.repeats}; it must be at least 1")
    with progress_bar("timing") as progress:
        rows = compare_arithmetics(arguments.repeats, progress=progress)
    if arguments.json:
        print(json.dumps({"repeats": arguments.repeats, "rows": [asdict(row) for row in rows]}, allow_nan=False))
    else:
        print(table(HEAD, [_shown(row) for row in rows], right=frozenset(HEAD[2:])))
    return 0


def _shown(row: ArithmeticRow) -> tuple[str, ...]:
    return (
        row.arithmetic,
        row.scores,
        f"{row.n_scores:,}",
        f"{1000 * row.law_seconds:.3f}",
        f"{1000 * row.log_probability_seconds:.3f}",
        f"{row.total_variation:.1e}",
        "" if row.bound is None else f"{row.bound:.1e}",
    )
