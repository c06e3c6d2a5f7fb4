"""``tgraph catalogue``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tgraph.cli.options import common
from tgraph.cli.running import command, open_call_graph
from tgraph.cli.terminal import build_table, print_json, print_message, print_renderable

if TYPE_CHECKING:
    from tgraph.index.catalogue import Catalogue, KnownClass, KnownProperty

_MOST_SHOWN = 4
_CLASS_COLUMNS = ("Class", "Kind", "Members", "Properties")
_PROPERTY_COLUMNS = ("Property", "Values", "Statements", "Of", "Distinct", "Examples")


@command("catalogue")
@click.option("--all", "shows_all", is_flag=True, help="Also what only sentences state.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@common
def catalogue(shows_all: bool, as_json: bool) -> None:
    """List the classes, tables and properties that questions may compute with.

    \b
    Examples:
      tgraph catalogue
      tgraph catalogue --json | jq -r '.properties[].label'
    """
    with open_call_graph() as graph:
        known = graph.catalogue()
    if as_json:
        from tgraph.engine.json_catalogue import CatalogueOut

        print_json(CatalogueOut.from_catalogue(known).model_dump())
        return
    _print_catalogue(known, shows_all=shows_all)


def _print_catalogue(known: Catalogue, *, shows_all: bool) -> None:
    properties = [own for own in known.properties if shows_all or own.is_structured]
    labels = {own.iri: own.label for own in properties}
    classes = [
        _class_row(each, [labels[iri] for iri, _ in each.properties if iri in labels])
        for each in known.classes
    ]
    rows = [row for row in classes if row[-1]]
    if not rows:
        print_message("Neither a table nor an imported graph is indexed.")
        return
    print_renderable(build_table(_CLASS_COLUMNS, rows))
    print_renderable(build_table(_PROPERTY_COLUMNS, map(_property_row, properties)))


def _class_row(known: KnownClass, properties: list[str]) -> list[str]:
    kinds = {"table": f"table of {known.type_label or 'rows'}", "name": "by name"}
    return [known.label, kinds.get(known.kind, "type"), f"{known.members:,}", ", ".join(properties)]


def _property_row(known: KnownProperty) -> list[str]:
    shown = [value.label for value in known.values[:_MOST_SHOWN]]
    more = ", …" if known.distinct > len(shown) else ""
    counts = (known.statements, known.subjects, known.distinct)
    return [known.label, known.kind, *(f"{count:,}" for count in counts), ", ".join(shown) + more]
