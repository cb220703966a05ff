"""`python -m engine runs tag` and `runs note`: a user's own words on a run."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from engine.errors import SettingError
from engine.store import RunStore

__all__ = ["add_actions"]

AddAction = Callable[[str, str, Callable[[argparse.Namespace], int]], argparse.ArgumentParser]


def add_actions(action: AddAction) -> None:
    """Add the actions to the parser of `runs`."""
    tag = action("tag", "add tags to a run, or take them off", _tag)
    tag.add_argument("run_id", metavar="ID", help="a run's id, or its beginning")
    tag.add_argument("tags", metavar="TAG", nargs="+")
    tag.add_argument("--remove", action="store_true", help="take these tags off")
    note = action("note", "write a note on a run, in place of the one it has", _note)
    note.add_argument("run_id", metavar="ID", help="a run's id, or its beginning")
    note.add_argument("text", metavar="TEXT", help="an empty one takes the note off")


def _tag(arguments: argparse.Namespace) -> int:
    store = RunStore()
    run = store.get(arguments.run_id)
    if arguments.remove:
        off = {tag.strip().casefold() for tag in arguments.tags}
        missing = off - {tag.casefold() for tag in run.tags}
        if missing:
            raise SettingError(
                f"the run {run.id} has no tag {min(missing)!r}; it has {', '.join(run.tags) or 'none at all'}"
            )
        tags = tuple(tag for tag in run.tags if tag.casefold() not in off)
    else:
        tags = (*run.tags, *arguments.tags)
    store.label(run.id, tags=tags)
    print(f"{run.id}: {', '.join(store.get(run.id).tags) or 'no tags'}")
    return 0


def _note(arguments: argparse.Namespace) -> int:
    store = RunStore()
    run = store.get(arguments.run_id)
    store.label(run.id, note=arguments.text)
    print(f"{run.id}: {'noted' if arguments.text.strip() else 'no note'}")
    return 0
