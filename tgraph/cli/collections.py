"""``tgraph collections``."""

from __future__ import annotations

from pathlib import Path

import click

from tgraph.cli.options import common, json_array
from tgraph.cli.running import command, common_option, find_root
from tgraph.cli.terminal import (
    build_table,
    confirm_action,
    format_count,
    print_json,
    print_message,
    print_renderable,
)
from tgraph.errors import UsageError


@click.group("collections", context_settings={"help_option_names": ["-h", "--help"]})
def collections() -> None:
    """List, make, copy, rename and delete the collections of a graph.

    A collection has its own documents, knowledge and record; a question reads one collection (-C).
    A graph begins with the collection "default".
    """


@command("list")
@json_array
@common
def list_(as_json: bool) -> None:
    """List the collections: documents in use, entries in the record's chain, size.

    \b
    Examples:
      tgraph collections list
      tgraph collections list --json | jq '.[].name'
    """
    from tgraph.engine.collections import list_collections

    collections = list_collections(_collections_root())
    if as_json:
        print_json(collections)
    elif collections:
        rows = (
            (c.name, f"{c.documents:,}", f"{c.entries:,}", f"{c.bytes / 1e6:,.1f} MB")
            for c in collections
        )
        print_renderable(build_table(("Collection", "Documents", "Entries", "Size"), rows))
    else:
        print_message("There are no collections yet. `tgraph index PATH...` makes one.")


@command("create")
@click.argument("name")
@common
def create(name: str) -> None:
    """Make an empty collection (`tgraph index PATH... -C NAME` also makes one).

    \b
    Examples:
      tgraph collections create trial
    """
    from tgraph.engine.collections import create_collection

    root = _collections_root(create=True)
    create_collection(root, name)
    print_message(f"Made the collection {name} in {root}.")


@command("copy")
@click.argument("name")
@click.argument("copy")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@common
def copy_(name: str, copy: str, quiet: bool) -> None:
    """Copy the collection NAME, with the record, to the new collection COPY.

    Others may index and ask in NAME meanwhile. COPY appears only after all checksums and the record
    of the copy have been checked. Afterwards both collections are independent: a retraction or
    erasure in one collection does not change the other. Exit code 4: the record of NAME is not
    intact.

    \b
    Examples:
      tgraph collections copy default before-the-merge
    """
    from tgraph.cli.progress import show_progress
    from tgraph.engine.collections import copy_collection

    with show_progress(quiet) as (progress, message):
        result = copy_collection(
            _collections_root(), name, copy, progress=progress, message=message
        )
    entries = format_count(result.sequence, "entry", "entries")
    print_message(
        f"Copied {name} to {copy}: generation {result.generation}, {entries}, head {result.head}"
    )


@command("rename")
@click.argument("name")
@click.argument("new")
@common
def rename(name: str, new: str) -> None:
    """Rename a collection. No other process may use the collection.

    \b
    Examples:
      tgraph collections rename default statutes-2025
    """
    from tgraph.engine.collections import rename_collection

    rename_collection(_collections_root(), name, new)
    print_message(f"Renamed {name} to {new}.")


@command("delete")
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Don't ask for confirmation.")
@common
def delete(name: str, yes: bool) -> None:
    """Delete a collection permanently: documents, knowledge and the whole record.

    No other process may use the collection. To retract or erase a single document, use `tgraph
    retract` or `tgraph remove`, which keep the record of answers.

    \b
    Examples:
      tgraph collections delete trial
      tgraph collections delete trial --yes
    """
    from tgraph.engine.collections import delete_collection, list_collections

    root = _collections_root()
    collection = next(
        (candidate for candidate in list_collections(root) if candidate.name == name), None
    )
    if not yes and collection is not None:
        print_message(
            f"{name}: {format_count(collection.documents, 'document')}, "
            f"{format_count(collection.entries, 'entry', 'entries')} in its record."
        )
        confirm_action("Deleting", "Delete the collection and the whole record permanently?")
    delete_collection(root, name)
    print_message(f"Deleted {name}.")


def _collections_root(*, create: bool = False) -> Path:
    if common_option("collection"):
        raise UsageError(
            "The names of the collections are arguments of this command.", "Leave out -C."
        )
    root = find_root(create=create)
    assert root is not None
    return root


for _command in (list_, create, copy_, rename, delete):
    collections.add_command(_command)
