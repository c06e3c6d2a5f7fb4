"""Knowledge in the formats of others: who writes which, and into what.

A format is written to a stream (RDF, GraphML) or into a folder of its own (tables, notes). Texts
are anybody's: what could command a terminal is written as an escape of the format, what a
spreadsheet would take for a formula gets an apostrophe, and no name of a file is taken from a text
as it stands.
"""

from __future__ import annotations

import io
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO

from pyoxigraph import NamedNode, Quad, RdfFormat, serialize

from tgraph import vocabulary as v
from tgraph.errors import UsageError
from tgraph.extensions.interchange.knowledge.statements import KnowledgeSource
from tgraph.model import Evidence
from tgraph.rendering import Notation, inert
from tgraph.store.files import private_file
from tgraph.store.statements import stated

# --- RDF ---

_PREFIXES = v.PREFIXES | {
    kind: f"{v.URN}{kind}:" for kind in ("entity", "relation", "type", "edge", "claim")
}


def _trig(source: KnowledgeSource, out: BinaryIO, sources: bool) -> None:
    _write_rdf(_with_sources(source, sources), out, RdfFormat.TRIG)


def _turtle(source: KnowledgeSource, out: BinaryIO, sources: bool) -> None:
    quads = (
        Quad(quad.subject, quad.predicate, quad.object, v.KNOWLEDGE_GRAPH)
        for quad in _with_sources(source, sources)
    )
    _write_rdf(quads, out, RdfFormat.TURTLE)


def _nquads(source: KnowledgeSource, out: BinaryIO, sources: bool) -> None:
    """In canonical form (RDFC-1.0), so that two exports can be compared line by line."""
    for line in source.knowledge.canonical_lines():
        out.write(inert(line, "u").encode())
    if sources:
        _write_rdf(_source_quads(source), out, RdfFormat.N_QUADS)


def _with_sources(source: KnowledgeSource, sources: bool) -> Iterator[Quad]:
    yield from source.knowledge.quads()
    if sources:
        yield from _source_quads(source)


def _source_quads(source: KnowledgeSource) -> Iterator[Quad]:
    """Where each thing is stated: evidence with quote and offsets, and its document."""
    told: set[str] = set()
    for subject, places in source.places():
        for place in places:
            yield from _place_quads(subject, place)
            if place.document not in told:
                told.add(place.document)
                yield from _document_quads(place)


def _place_quads(subject: str, place: Evidence) -> list[Quad]:
    graph, page = v.SOURCE_GRAPH, NamedNode(v.page_of(place.document, place.page))
    return stated(graph, subject, (v.prov("wasDerivedFrom"), NamedNode(place.iri))) + stated(
        graph,
        place.iri,
        (v.RDF_TYPE, v.tg("Evidence")),
        (v.prov("wasDerivedFrom"), {NamedNode(place.document): 0, page: 0}),
        (v.tg("pageNumber"), place.page),
        (v.tg("charOffset"), place.start),
        (v.tg("charLength"), place.end - place.start),
        (v.tg("quote"), place.quote),
    )


def _document_quads(place: Evidence) -> list[Quad]:
    said = ((v.RDF_TYPE, v.tg("Document")), (v.dcterms("title"), place.title))
    return stated(v.SOURCE_GRAPH, place.document, *said, (v.tg("path"), place.path))


def _write_rdf(quads: Iterable[Quad], out: BinaryIO, chosen: RdfFormat) -> None:
    prefixes = None if chosen == RdfFormat.N_QUADS else _PREFIXES
    with Inert(out) as guarded:
        serialize(quads, guarded, chosen, prefixes=prefixes)


class Inert(io.BufferedIOBase, BinaryIO):
    """Passes text on with what could command a terminal as escapes of Turtle or XML."""

    def __init__(self, out: BinaryIO, notation: Notation = "u") -> None:
        self._out = out
        self._notation = notation
        self._decoder = getincrementaldecoder("utf-8")()

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        raw = bytes(data)  # type: ignore[call-overload]  # any buffer
        text = self._decoder.decode(raw)
        self._out.write(inert(text, self._notation).encode())
        return len(raw)


# --- every format ---


def _graphml(source: KnowledgeSource, out: BinaryIO, sources: bool) -> None:
    from tgraph.extensions.interchange.knowledge.property_graph import write_graphml

    write_graphml(source.knowledge, Inert(out, "xml"))


def _csv(source: KnowledgeSource, folder: Path, sources: bool) -> None:
    from tgraph.extensions.interchange.knowledge.property_graph import write_csv

    write_csv(source, folder, sources)


def _graphrag(source: KnowledgeSource, folder: Path, sources: bool) -> None:
    from tgraph.extensions.interchange.knowledge.graphrag_tables import write_tables

    write_tables(source, folder)


def _markdown(source: KnowledgeSource, folder: Path, sources: bool) -> None:
    from tgraph.extensions.interchange.knowledge.notes import write_notes

    write_notes(source, folder)


STREAMS: Mapping[str, Callable[[KnowledgeSource, BinaryIO, bool], None]] = {
    "trig": _trig,
    "turtle": _turtle,
    "nquads": _nquads,
    "graphml": _graphml,
}
"""The formats of one file."""

FOLDERS: Mapping[str, Callable[[KnowledgeSource, Path, bool], None]] = {
    "csv": _csv,
    "graphrag": _graphrag,
    "markdown": _markdown,
}
"""The formats of several files."""


def write_knowledge(
    source: KnowledgeSource, format: str, output: Path | BinaryIO, *, sources: bool = False
) -> None:
    """Write what is known in a format; ``sources`` adds where it is stated, to formats in which
    that is not always so.

    A file is there whole or not at all. ``UsageError`` for a format that there is not, and where
    several files have no folder of their own to go to.
    """
    if format in STREAMS:
        _write_stream(source, format, output, sources)
    elif format not in FOLDERS:
        every = ", ".join([*STREAMS, *FOLDERS])
        raise UsageError(f"There is no format {format!r} for knowledge.", f"There are: {every}.")
    elif not isinstance(output, Path):
        raise UsageError(f"The format {format} is several files.", "Name a new folder.")
    else:
        _write_folder(source, format, output, sources)


def _write_stream(
    source: KnowledgeSource, format: str, output: Path | BinaryIO, sources: bool
) -> None:
    if not isinstance(output, Path):
        STREAMS[format](source, output, sources)
        return
    is_device = output.exists() and not output.is_file()
    with _to_disk(output), _opened(output, is_device=is_device) as file:
        STREAMS[format](source, file, sources)


def _write_folder(source: KnowledgeSource, format: str, folder: Path, sources: bool) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is there already.", "Name a new or empty folder.")
    with _to_disk(folder):
        folder.mkdir(mode=0o700, exist_ok=True)
        FOLDERS[format](source, folder, sources)


def _opened(output: Path, *, is_device: bool) -> AbstractContextManager[BinaryIO]:
    return output.open("wb") if is_device else private_file(output.resolve())


@contextmanager
def _to_disk(place: Path) -> Iterator[None]:
    if not place.absolute().parent.is_dir():
        raise UsageError(f"{place} can't be written: its folder doesn't exist.")
    try:
        yield
    except OSError as error:
        raise UsageError(f"{place} can't be written: {error.strerror}.") from error
