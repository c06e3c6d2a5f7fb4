"""``tgraph config import``: the settings of a GraphRAG project."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tgraph.cli import terminal
from tgraph.cli.options import common
from tgraph.cli.running import command, find_root

if TYPE_CHECKING:
    from tgraph.extensions.interchange.graphrag_settings import ImportedSettings


@command("import")
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be set, and write nothing.")
@click.option("--accept-settings", is_flag=True, help="Take over addresses too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@common
def import_(file: Path, dry_run: bool, accept_settings: bool, as_json: bool) -> None:
    """Move the settings of a GraphRAG project here.

    FILE is settings.yaml (or .json) of Microsoft GraphRAG 0.3 to 3, or the project's folder;
    variables that it refers to are read from .env beside it, and from the environment if their
    name begins with GRAPHRAG_. tgraph.toml gets what has a place there; the rest is named, each
    with the reason. Addresses are among the rest unless --accept-settings is given, for your key
    would be sent there; no variable is filled into an address. Keys are not copied: the command
    says which variable takes them. A tgraph.toml in which something is set already is left as it
    is.

    \b
    Examples:
      tgraph config import graphrag-project/ --dry-run
      tgraph config import graphrag-project/settings.yaml --root my-graph
      tgraph config import settings.yaml --json | jq '.left[].source'
    """
    from tgraph.engine.settings_file import write_settings
    from tgraph.extensions.interchange.graphrag_settings import import_graphrag_settings
    from tgraph.settings import FILE

    imported = import_graphrag_settings(file, accept_settings=accept_settings)
    target = None
    if not dry_run:
        root = find_root(create=True)
        assert root is not None
        target = root / FILE
        write_settings(target, imported.values)
    if as_json:
        moved = [{**asdict(setting), "value": setting.display_value} for setting in imported.moved]
        written = str(target) if target else None
        report = {
            **asdict(imported),
            "file": str(imported.file),
            "moved": moved,
            "written": written,
        }
        terminal.print_json(report)
        return
    _tell_imported(imported)
    terminal.print_message(f"Wrote {target}." if target else "Nothing was written.")


def _tell_imported(found: ImportedSettings) -> None:
    from tgraph.extensions.interchange.graphrag_settings import NOT_CONFIRMED

    moved = ((m.source, m.setting, terminal.one_line(str(m.display_value))) for m in found.moved)
    terminal.print_renderable(terminal.build_table(("GraphRAG", "tgraph", "Value"), moved))
    if found.left:
        click.echo("\nLeft out:")
        skipped_rows = ((x.source, terminal.one_line(x.value), x.reason) for x in found.left)
        terminal.print_renderable(terminal.build_table(("GraphRAG", "Value", "Why"), skipped_rows))
    if any(left.reason == NOT_CONFIRMED for left in found.left):
        terminal.print_message("If you trust the addresses, --accept-settings takes them over.")
    for key in found.keys:
        source_name = f" (there: {key.named})" if key.named else ""
        terminal.print_message(f"Key: {key.source}{source_name} is not copied; set {key.variable}.")
