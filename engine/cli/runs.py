"""`python -m engine runs`: the history: list, show, explain, label, analyse, export, import, delete and restore."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.cli import runs_deleted, runs_failures, runs_label
from engine.cli.explain import explained
from engine.cli.joined import joined_text
from engine.cli.paint import safe
from engine.cli.runs_filter import add_filters, chosen_runs
from engine.cli.summary import summary
from engine.cli.table import table
from engine.errors import SettingError
from engine.explain import explain
from engine.export import runs_csv, steps_csv, tokens_csv, write_csv
from engine.export_jsonl import run_jsonl
from engine.figure_text import counted, fixed
from engine.import_jsonl import lines_of, read_runs
from engine.store import RunStore, StoredRun
from engine.values import Event, Step

__all__ = ["add_parser"]

HEAD = (
    "id", "date (UTC)", "target", "drafter", "rule", "draft length",
    "tokens", "acceptance rate", "tokens per step", "tok/s", "", "backend", "state", "tags",
)  # fmt: skip
RIGHT = frozenset(("draft length", "tokens", "acceptance rate", "tokens per step", "tok/s"))


def add_parser(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser(
        "runs", help="list, show, explain, label, export, import or delete kept runs", allow_abbrev=False
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    def action(name: str, help: str, handler: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        added: argparse.ArgumentParser = actions.add_parser(name, help=help, description=help, allow_abbrev=False)
        added.set_defaults(handler=handler)
        return added

    add_filters(action("list", "name runs, the newest first", _list))
    show = action("show", "tell all that is known of a run", _show)
    show.add_argument("run_id", metavar="ID", help="a run's id, or its beginning")
    why = action("explain", "tell why every token of a step is there", _explain)
    why.add_argument("run_id", metavar="ID", help="a run's id, or its beginning")
    why.add_argument("step", metavar="STEP", type=int, help="which step, counted from 1 as on the page")
    export = action("export", "write runs as CSV, or as JSONL that can be imported again", _export)
    export.add_argument("run_ids", metavar="ID", nargs="*", help="the runs to write; all of them by default")
    files = export.add_mutually_exclusive_group(required=True)
    files.add_argument("--csv", metavar="FILE", help="is replaced if it is there; - is standard output")
    files.add_argument("--jsonl", metavar="FILE", help="the same, with every event, for `runs import`")
    export.add_argument("--kind", choices=("runs", "steps", "tokens"), default="runs",
                        help="CSV: one row for each of what (default %(default)s)")  # fmt: skip
    export.add_argument("--bom", action=argparse.BooleanOptionalAction, default=False,
                        help="CSV: begin with a byte-order mark, by which Excel knows UTF-8")  # fmt: skip
    importing = action("import", "take in runs of a JSONL file: all of them, or none if one cannot be", _import)
    importing.add_argument("file", metavar="FILE", type=Path)
    runs_failures.add_actions(action)
    runs_label.add_actions(action)
    runs_deleted.add_actions(action)


def _list(arguments: argparse.Namespace) -> int:
    store = RunStore()
    store.purge()
    runs, unreadable = store.listing()
    _tell_unreadable(unreadable)
    chosen = chosen_runs(runs, arguments)
    if chosen:
        print(table(HEAD, map(_row, chosen), right=RIGHT))
    elif runs:
        print(f"none of {counted(len(runs), 'run')} is like that; give fewer conditions")
    elif not unreadable:
        print("no runs are kept yet: `python -m engine run --save` keeps one, and so does the page")
    return 0


def _tell_unreadable(unreadable: list[str]) -> None:
    """Say on standard error which runs are left out."""
    if unreadable:
        print(
            f"{counted(len(unreadable), 'run')} cannot be read by this version of Draftscope: {', '.join(unreadable)}; "
            "update it, or delete what you do not need: `python -m engine runs delete ID`",
            file=sys.stderr,
        )


def _row(run: StoredRun) -> tuple[str, ...]:
    record = run.record
    return (
        run.id,
        run.created_at[:16].replace("T", " "),
        run.spec.target,
        run.spec.drafter,
        run.spec.rule,
        str(run.spec.draft_length),
        str(record["tokens_generated"]),
        fixed(record["acceptance_rate"], 3),
        fixed(record["tokens_per_step"], 2),
        fixed(record["tokens_per_second"], 1),
        "simulated" if record["simulated"] else "",
        record.get("backend") or "",  # runs of earlier versions have none
        _state(run),
        ", ".join(run.tags),
    )


def _state(run: StoredRun) -> str:
    return {"error": "error", "cancelled": "cancelled"}.get(run.record["finish_reason"] or "", run.state)


def _show(arguments: argparse.Namespace) -> int:
    store = RunStore()
    run = store.get(arguments.run_id)
    record = run.record
    lines = [("id", run.id), ("created_at", run.created_at), ("state", run.state)]
    lines += [(name, text) for name, text in (("tags", ", ".join(run.tags)), ("note", run.note)) if text]
    _print_section("run", [*lines, *run.versions.items()])
    _print_section("settings", asdict(run.spec).items())
    print(f"figures\n{_indented(summary(record))}")
    if record["error"]:
        print(f"  error: {record['error']}")
    histogram = enumerate(record["accepted_length_histogram"])
    print(f"  steps by accepted length: {', '.join(f'{n_steps} x {length}' for length, n_steps in histogram) or 'n/a'}")
    if record["per_position"]:
        columns = tuple(record["per_position"][0])
        rows = ([_figure(row[name]) for name in columns] for row in record["per_position"])
        print(_indented(table(columns, rows, right=frozenset(columns))))
    print("\ntext\n" + safe(_text(store, run)))
    return 0


def _explain(arguments: argparse.Namespace) -> int:
    store = RunStore()
    run = store.get(arguments.run_id)
    steps = [event for event in store.events(run.id, exact=True) if isinstance(event, Step)]
    if not 1 <= arguments.step <= len(steps):
        raise SettingError(f"the run {run.id} has no step {arguments.step}; it has {_steps_told(len(steps))}")
    print(safe(explained(explain(steps[arguments.step - 1], rule=run.spec.rule))))
    return 0


def _steps_told(n_steps: int) -> str:
    return f"the steps 1 to {n_steps}" if n_steps else "none"


def _text(store: RunStore, run: StoredRun) -> str:
    text: str | None = run.record["text"]
    if text is not None:
        return text
    steps = (event for event in store.events(run.id, exact=True) if isinstance(event, Step))
    return joined_text(decision for step in steps for decision in step.decisions)


def _print_section(title: str, lines: Iterable[tuple[str, Any]]) -> None:
    print(title)
    for name, value in lines:
        print(f"  {name:<24}{value if isinstance(value, int | float) else _one_line(value)}")
    print()


def _one_line(value: object) -> str:
    """Text with its line breaks and control characters as escapes."""
    text = value if isinstance(value, str) else repr(value)
    return text if text.isprintable() else repr(text)


def _figure(value: float | None) -> str:
    return fixed(value, 3) if value is None or isinstance(value, float) else str(value)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _export(arguments: argparse.Namespace) -> int:
    store = RunStore()
    runs = [store.get(run_id) for run_id in dict.fromkeys(arguments.run_ids)]
    if not arguments.run_ids:
        runs = store.runs()
        _tell_unreadable(store.unreadable())
    name = arguments.csv if arguments.jsonl is None else arguments.jsonl
    if arguments.jsonl is not None:
        write_csv((line for run in runs for line in run_jsonl(run, store.events(run.id, exact=True))), name)
    else:
        lines = runs_csv(runs) if arguments.kind == "runs" else _event_lines(store, runs, arguments.kind)
        write_csv(lines, name, bom=arguments.bom)
    if name != "-":
        print(f"wrote {counted(len(runs), 'run')} to {name}", file=sys.stderr)
    return 0


def _import(arguments: argparse.Namespace) -> int:
    added = RunStore().add(read_runs(lines_of(arguments.file), str(arguments.file)))
    print(f"imported {counted(len(added.ids), 'run')}: {', '.join(added.ids)}")
    if added.words:
        print(added.words)
    return 0


def _event_lines(store: RunStore, runs: Iterable[StoredRun], kind: str) -> Iterator[str]:
    lines = steps_csv if kind == "steps" else tokens_csv
    yield from lines("", [])  # the header, even if there are no runs
    for run in runs:
        events: Iterator[Event] = store.events(run.id, exact=True)
        yield from lines(run.id, events, header=False)
