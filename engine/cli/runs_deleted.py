"""`python -m engine runs delete`, `restore`, `deleted`, `purge` and `storage`: out of the history, and back."""

from __future__ import annotations

import argparse
import sys

from engine.cli.runs_label import AddAction
from engine.cli.table import table
from engine.deleted_runs import KEPT_DAYS
from engine.figure_text import counted, size
from engine.store import RunStore

__all__ = ["add_actions"]


def add_actions(action: AddAction) -> None:
    """Add the actions to the parser of `runs`."""
    delete = action("delete", "delete runs: all that are named, or none if one cannot be", _delete)
    delete.add_argument("run_ids", metavar="ID", nargs="+")
    restore = action("restore", f"take deleted runs back; they are kept for {KEPT_DAYS} days", _restore)
    restore.add_argument("run_ids", metavar="ID", nargs="+")
    action("deleted", "name the runs that can be restored", _deleted)
    action("purge", "delete for good what can be restored, and give its room back", _purge)
    action("storage", "tell what the history takes on disk", _storage)


def _delete(arguments: argparse.Namespace) -> int:
    store = RunStore()
    store.purge()
    print(f"deleted {counted(store.delete(arguments.run_ids), 'run')}")
    print(f"for {KEPT_DAYS} days `python -m engine runs restore ID` takes a run back", file=sys.stderr)
    return 0


def _restore(arguments: argparse.Namespace) -> int:
    print(f"restored {counted(RunStore().restore(arguments.run_ids), 'run')}")
    return 0


def _deleted(arguments: argparse.Namespace) -> int:
    runs = RunStore().deleted()
    if not runs:
        print("no deleted run can be restored")
        return 0
    rows = (
        (
            run.id,
            run.deleted_at[:16].replace("T", " "),
            size(run.n_bytes),
            run.spec.target if run.spec else "cannot be read",
            run.spec.drafter if run.spec else "",
            run.spec.prompt[:50] if run.spec else "",
        )
        for run in runs
    )
    print(table(("id", "deleted (UTC)", "size", "target", "drafter", "prompt"), rows, right={"size"}))
    return 0


def _purge(arguments: argparse.Namespace) -> int:
    store = RunStore()
    before = store.storage().n_bytes
    purged = counted(store.purge(kept_days=0), "run")
    print(f"purged {purged}: {size(max(0, before - store.storage().n_bytes))} given back")
    return 0


def _storage(arguments: argparse.Namespace) -> int:
    store = RunStore()
    used = store.storage()
    deleted = (
        f"; {counted(used.n_deleted, 'run')} more, deleted, with {size(used.deleted_bytes)} of it"
        if used.n_deleted
        else ""
    )
    print(f"{size(used.n_bytes)} for {counted(used.n_runs, 'run')}{deleted}\n{store.path}")
    return 0
