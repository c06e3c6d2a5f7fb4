"""``tgraph compare``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from tgraph.cli.options import common
from tgraph.cli.running import command, common_option, find_root
from tgraph.cli.terminal import (
    build_table,
    format_count,
    one_line,
    print_json,
    print_lines,
    print_renderable,
)
from tgraph.errors import UsageError

if TYPE_CHECKING:
    from tgraph.extensions.lab.extraction_comparison import (
        Agreement,
        ComparedDocument,
        ComparedItem,
        ExtractionAgent,
        ExtractionComparison,
        FoundItem,
    )

_LIMIT = 10
_PLACES = 2
_LONGEST = 160


@command("compare")
@click.argument("first", metavar="COLLECTION")
@click.argument("second", metavar="COLLECTION")
@click.option(
    "--document",
    metavar="DOC",
    default="",
    help="Compare only this document, and list all differences.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Largest number of items listed of each kind.  [default: {_LIMIT}; all with --json]",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@common
def compare(first: str, second: str, document: str, limit: int | None, as_json: bool) -> None:
    """Compare two extractions of the same texts: two collections of a graph.

    Index the same files into two collections, with a different model, prompt, method or ontology.
    The command lists items found in only one collection, and differences between items found in
    both. Documents are the same if their bytes are equal. Nothing is recorded.

    \b
    Examples:
      tgraph compare default with-a-model
      tgraph compare default with-a-model --document fram.md
      tgraph compare default with-a-model --json | jq .agreement
    """
    from tgraph.extensions.lab.extraction_comparison import compare_collections

    if common_option("collection"):
        raise UsageError(
            "The names of the collections are arguments of this command.", "Leave out -C."
        )
    root = find_root()
    assert root is not None
    comparison = compare_collections(root, first, second, document=document)
    if as_json:
        print_json(_plain_comparison(comparison, limit))
    else:
        _print_comparison(comparison, _LIMIT if limit is None else limit, whole=bool(document))


def _plain_comparison(found: ExtractionComparison, limit: int | None) -> dict[str, Any]:
    """Return plain data for JSON, limited to ``limit`` items per sort."""
    plain = asdict(found)
    for document in plain["documents"]:
        for sort in ("entities", "facts", "claims"):
            document[sort] = document[sort][:limit]
    return plain


def _print_comparison(found: ExtractionComparison, most: int, *, whole: bool) -> None:
    print_lines(_head_lines(found))
    if not found.documents:
        return
    first_name, second_name = found.names
    columns = (
        "",
        first_name,
        second_name,
        f"only {first_name}",
        f"only {second_name}",
        "both",
        "Jaccard",
    )
    print_renderable(
        build_table(columns, [_agreement_row(*entry) for entry in found.agreement.items()])
    )
    if whole:
        print_lines(_detail_lines(found.documents[0], found.names, most))
        return
    click.echo()
    columns = "Document", "Entities", "both", "Facts", "both", "Claims", "both"
    print_renderable(build_table(columns, map(_of_document, found.documents[: most or None])))
    if most and len(found.documents) > most:
        click.echo(f"and {format_count(len(found.documents) - most, 'document')} more (--limit)")


def _head_lines(found: ExtractionComparison) -> Iterator[str]:
    first_name, second_name = found.names
    yield f"{format_count(len(found.documents), 'document')} in both {first_name} and {second_name}"
    for name, only in zip(found.names, found.only, strict=True):
        if only:
            document_list = ", ".join(map(one_line, only[:_LIMIT]))
            overflow = f" and {len(only) - _LIMIT} more" if len(only) > _LIMIT else ""
            yield f"Only in {name}: {document_list}{overflow}"
    for name, readings in zip(found.names, found.readings, strict=True):
        if readings:
            yield f"{name} was read by {'; '.join(map(_describe_reading, readings))}"
    yield ""


def _describe_reading(reading: ExtractionAgent) -> str:
    prompts = f", prompts {', '.join(reading.prompts)}" if reading.prompts else ""
    return f"{one_line(reading.agent)} ({format_count(reading.passages, 'passage')}{prompts})"


def _agreement_row(kind: str, agreement: Agreement) -> Sequence[str]:
    first, second, common = agreement.first, agreement.second, agreement.both
    counts = (first, second, first - common, second - common, common)
    names = {"pairs": "Linked pairs"}
    return (
        names.get(kind, kind.capitalize()),
        *(f"{n:,}" for n in counts),
        _format_jaccard(agreement),
    )


def _format_jaccard(agreement: Agreement) -> str:
    return "" if agreement.jaccard is None else f"{agreement.jaccard:.2f}"


def _of_document(document: ComparedDocument) -> Sequence[str]:
    cells = [
        cell
        for kind in ("entities", "facts", "claims")
        for agreement in [document.agreement[kind]]
        for cell in (f"{agreement.first:,} | {agreement.second:,}", f"{agreement.both:,}")
    ]
    return one_line(document.paths[0]), *cells


def _detail_lines(document: ComparedDocument, names: tuple[str, str], most: int) -> Iterator[str]:
    for title, items in (
        ("Entities", document.entities),
        ("Facts", document.facts),
        ("Claims", document.claims),
    ):
        first_items = [item for item in items if item.second is None]
        second_items = [item for item in items if item.first is None]
        differ = [item for item in items if item.differs]
        for name, alone in zip(names, (first_items, second_items), strict=True):
            if alone:
                yield ""
                yield f"{title} only in {name}: {len(alone):,}"
                yield from _limit_items([_format_one_sided(item) for item in alone], most)
        if differ:
            yield ""
            yield f"{title} in both that differ: {len(differ):,}"
            yield from _limit_items([list(_format_shared(item, names)) for item in differ], most)


def _limit_items(items: Sequence[Sequence[str]], most: int) -> Iterator[str]:
    for lines in items[:most]:
        yield from lines
    if len(items) > most:
        yield f"  and {len(items) - most:,} more (--limit)"


def _format_one_sided(item: ComparedItem) -> list[str]:
    found_item = item.first or item.second
    return [f"  {_item_name(item)}", *(_place_lines(found_item) if found_item else ())]


def _item_name(item: ComparedItem) -> str:
    return one_line(item.label, _LONGEST) or item.item


def _format_shared(item: ComparedItem, names: tuple[str, str]) -> Iterator[str]:
    yield f"  {_item_name(item)}"
    assert item.first is not None
    assert item.second is not None
    for attribute in item.differs:
        if attribute == "places":
            for name, found_item in zip(names, (item.first, item.second), strict=True):
                yield f"    {name}: {format_count(len(found_item.places), 'place')}"
                yield from (f"  {line}" for line in _place_lines(found_item))
        else:
            sides = (
                _format_value(getattr(found_item, attribute))
                for found_item in (item.first, item.second)
            )
            yield f"    {attribute}: {' | '.join(sides)}"


def _format_value(value: float | Sequence[str]) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return one_line("; ".join(value), _LONGEST) or "nothing"


def _place_lines(found: FoundItem) -> Iterator[str]:
    for place in found.places[:_PLACES]:
        page = f"page {place.page}, " if place.page is not None else ""
        quote = f": “{one_line(place.quote, _LONGEST)}”" if place.quote else ""
        yield f"    {page}characters {place.start}–{place.end}{quote}"
    if len(found.places) > _PLACES:
        yield f"    and {format_count(len(found.places) - _PLACES, 'place')} more"
