"""``tgraph backup`` and ``tgraph restore``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tgraph.cli.options import common
from tgraph.cli.running import DEFAULT_FOLDER, command, common_option, find_root
from tgraph.cli.terminal import format_count, format_time, one_line, print_json, print_message
from tgraph.errors import UsageError

if TYPE_CHECKING:
    from tgraph.extensions.operations.backup import Backup

_FILE = click.Path(dir_okay=False, path_type=Path)


@command("backup")
@click.argument("file", type=_FILE)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@common
def backup(file: Path, as_json: bool, quiet: bool) -> None:
    """Write the whole graph into one new file; others may index and ask meanwhile.

    The file contains the published state of every collection with all ended sessions: the store,
    stored texts, vectors and settings, but no caches. Each file is checked while the file is
    copied, and the backup is read once more. FILE is either complete or absent, and only you can
    read FILE (mode 600).

    \b
    Examples:
      tgraph backup graph.tar
      tgraph backup --root my-graph "/backups/my-graph-$(date +%F).tar" --json
    """
    from tgraph.cli.progress import show_progress
    from tgraph.extensions.operations.backup import back_up

    _all_collections()
    root = find_root()
    assert root is not None
    with show_progress(quiet) as (progress, message):
        backup_result = back_up(root, file, progress=progress, message=message)
    _print_backup(
        backup_result, f"Backed up {backup_result.root} to {backup_result.file}", as_json=as_json
    )


@command("restore")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--accept-settings",
    is_flag=True,
    help="Restore settings that name addresses, keys or files too.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@common
def restore(file: Path, accept_settings: bool, as_json: bool, quiet: bool) -> None:
    """Restore a backup to a new folder: --root, by default ./tgraph-graph.

    The folder appears only after all checksums and the whole record of each collection have been
    checked; if a check fails, no folder is made. Settings of the backup that name addresses, keys
    or files are left out and named: your key would be sent to such an address. Exit code 4: the
    record in the backup is not intact.

    \b
    Examples:
      tgraph restore graph.tar --root restored
      tgraph restore graph.tar --root restored --json
    """
    from tgraph.cli.progress import show_progress
    from tgraph.extensions.operations.backup import restore_backup as restore_backup

    _all_collections()
    root = Path(common_option("root") or os.environ.get("TGRAPH_ROOT") or DEFAULT_FOLDER)
    with show_progress(quiet) as (progress, message):
        backup = restore_backup(
            file, root, accept_settings=accept_settings, progress=progress, message=message
        )
    _print_backup(
        backup,
        f"Restored {backup.root} from {backup.file}, made {format_time(backup.made)}",
        as_json=as_json,
    )


def _all_collections() -> None:
    if common_option("collection"):
        raise UsageError("A backup is of all collections.", "Leave out -C.")


def _print_backup(done: Backup, what: str, *, as_json: bool) -> None:
    if as_json:
        print_json(done)
        return
    print_message(f"{what}: {format_count(done.files, 'file')}, {done.bytes / 1e6:.1f} MB.")
    for collection in done.collections:
        print_message(
            f"  {collection.name}: generation {collection.generation}, {collection.sequence}"
            " entries in the chain, "
            f"head {collection.head}"
        )
    for name, value in done.withheld.items():
        print_message(f"Left out of tgraph.toml: {name} = {one_line(str(value))}")
    if done.withheld:
        print_message("If you trust these settings, set them there, or use --accept-settings.")
