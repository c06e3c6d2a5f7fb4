"""RDF of any syntax as lines of N-Quads, read in the isolated process."""

from __future__ import annotations

from collections.abc import Iterator

from pyoxigraph import Quad, RdfFormat, parse

from tgraph.errors import IngestError
from tgraph.foreign_bytes import DEEPEST, OversizeError, check_nesting
from tgraph.ingest.base import FileLimits, error_reason, storable

PLACE = (__name__, "read_statements")


def read_statements(
    data: bytes, name: str, limits: FileLimits, *, media_type: str, base: str
) -> Iterator[str]:
    """Yield the statements of a file as lines of N-Quads.

    Raise ``IngestError`` for what isn't of the syntax or is nested too deep."""
    syntax = RdfFormat.from_media_type(media_type)
    assert syntax is not None
    check_depth(data, name, syntax)
    try:
        for quad in parse(data, syntax, base_iri=base):
            yield write_line(quad, name)
    except (SyntaxError, ValueError) as error:
        message = f"It is not the {syntax.name} that it should be: {error_reason(error)}."
        raise IngestError(name, message) from None


def check_depth(data: bytes, name: str, syntax: RdfFormat) -> None:
    """Raise ``IngestError`` for JSON-LD that is nested too deep for its parser."""
    if syntax == RdfFormat.JSON_LD:
        try:
            check_nesting(data)
        except OversizeError as error:
            raise too_deep(name, str(error)) from None


def write_line(quad: Quad, name: str) -> str:
    """Return a quad as a line of N-Quads; raise ``IngestError`` for terms nested too deep."""
    line = storable(f"{quad} .")
    check_line(line, name)
    return line


def check_line(line: str, name: str) -> None:
    """Raise ``IngestError`` for a line of N-Quads with terms nested too deep."""
    if line.count("<<(") > DEEPEST:
        raise too_deep(name, f"Its triple terms are more than {DEEPEST} deep in each other")


def too_deep(name: str, reason: str) -> IngestError:
    return IngestError(name, f"{reason}, the limit.", "Write it flatter, or leave it out.")
