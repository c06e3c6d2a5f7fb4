"""Knowledge export in foreign formats: writers by format.

A format is written to a stream (RDF, GraphML) or into a folder (tables, notes). Texts may come
from anyone: terminal control characters become escapes of the format, spreadsheet formulas get
an apostrophe, and no file name is taken from a text unchanged."""

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
from tgraph.rendering import Notation, escape_serialised
from tgraph.store.files import private_file
from tgraph.store.statements import build_statements

# --- RDF ---

_PREFIXES = v.PREFIXES | {
    kind: f"{v.URN}{kind}:" for kind in ("entity", "relation", "type", "edge", "claim")
}


def _write_trig(source: KnowledgeSource, out: BinaryIO, sources: bool) -> None:
    _write_rdf(_with_sources(source, sources), out, RdfFormat.TRIG)


def _write_turtle(source: KnowledgeSource, out: BinaryIO, sources: bool) -> None:
    quads = (
        Quad(quad.subject, quad.predicate, quad.object, v.KNOWLEDGE_GRAPH)
        for quad in _with_sources(source, sources)
    )
    _write_rdf(quads, out, RdfFormat.TURTLE)


def _write_nquads(source: KnowledgeSource, out: BinaryIO, sources: bool) -> None:
    """Write canonical N-Quads (RDFC-1.0), so that exports can be compared line by line."""
    for line in source.knowledge.canonical_lines():
        out.write(escape_serialised(line, "u").encode())
    if sources:
        _write_rdf(_source_quads(source), out, RdfFormat.N_QUADS)


def _with_sources(source: KnowledgeSource, sources: bool) -> Iterator[Quad]:
    yield from source.knowledge.quads()
    if sources:
        yield from _source_quads(source)


def _source_quads(source: KnowledgeSource) -> Iterator[Quad]:
    """Yield source quads: evidence with quote and offsets, plus document quads."""
    written_documents: set[str] = set()
    for subject, places in source.places():
        for place in places:
            yield from _place_quads(subject, place)
            if place.document not in written_documents:
                written_documents.add(place.document)
                yield from _document_quads(place)


def _place_quads(subject: str, place: Evidence) -> list[Quad]:
    graph, page = v.SOURCE_GRAPH, NamedNode(v.page_of(place.document, place.page))
    return build_statements(
        graph, subject, (v.prov("wasDerivedFrom"), NamedNode(place.iri))
    ) + build_statements(
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
    properties = ((v.RDF_TYPE, v.tg("Document")), (v.dcterms("title"), place.title))
    return build_statements(v.SOURCE_GRAPH, place.document, *properties, (v.tg("path"), place.path))


def _write_rdf(quads: Iterable[Quad], out: BinaryIO, chosen: RdfFormat) -> None:
    prefixes = None if chosen == RdfFormat.N_QUADS else _PREFIXES
    with Inert(out) as guarded:
        serialize(quads, guarded, chosen, prefixes=prefixes)


class Inert(io.BufferedIOBase, BinaryIO):
    """A binary stream that escapes terminal control characters in Turtle or XML notation."""

    def __init__(self, out: BinaryIO, notation: Notation = "u") -> None:
        self._out = out
        self._notation = notation
        self._decoder = getincrementaldecoder("utf-8")()

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        raw = bytes(data)  # type: ignore[call-overload]  # any buffer
        text = self._decoder.decode(raw)
        self._out.write(escape_serialised(text, self._notation).encode())
        return len(raw)


# --- every format ---


def _write_graphml(source: KnowledgeSource, out: BinaryIO, sources: bool) -> None:
    from tgraph.extensions.interchange.knowledge.property_graph import write_graphml

    write_graphml(source.knowledge, Inert(out, "xml"))


def _write_csv(source: KnowledgeSource, folder: Path, sources: bool) -> None:
    from tgraph.extensions.interchange.knowledge.property_graph import write_csv

    write_csv(source, folder, sources)


def _write_graphrag(source: KnowledgeSource, folder: Path, sources: bool) -> None:
    from tgraph.extensions.interchange.knowledge.graphrag_tables import write_tables

    write_tables(source, folder)


def _write_markdown(source: KnowledgeSource, folder: Path, sources: bool) -> None:
    from tgraph.extensions.interchange.knowledge.notes import write_notes

    write_notes(source, folder)


STREAMS: Mapping[str, Callable[[KnowledgeSource, BinaryIO, bool], None]] = {
    "trig": _write_trig,
    "turtle": _write_turtle,
    "nquads": _write_nquads,
    "graphml": _write_graphml,
}
"""The formats of one file."""

FOLDERS: Mapping[str, Callable[[KnowledgeSource, Path, bool], None]] = {
    "csv": _write_csv,
    "graphrag": _write_graphrag,
    "markdown": _write_markdown,
}
"""The formats of several files."""


def write_knowledge(
    source: KnowledgeSource, format: str, output: Path | BinaryIO, *, sources: bool = False
) -> None:
    """Write knowledge in a format; ``sources`` adds evidence places where the format makes them
    optional.

    A file is written atomically. Raise ``UsageError`` for an unknown format, or for a folder
    format without a folder."""
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
    with _to_disk(output), _open_output(output, is_device=is_device) as file:
        STREAMS[format](source, file, sources)


def _write_folder(source: KnowledgeSource, format: str, folder: Path, sources: bool) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is there already.", "Name a new or empty folder.")
    with _to_disk(folder):
        folder.mkdir(mode=0o700, exist_ok=True)
        FOLDERS[format](source, folder, sources)


def _open_output(output: Path, *, is_device: bool) -> AbstractContextManager[BinaryIO]:
    return output.open("wb") if is_device else private_file(output.resolve())


@contextmanager
def _to_disk(place: Path) -> Iterator[None]:
    if not place.absolute().parent.is_dir():
        raise UsageError(f"{place} can't be written: its folder doesn't exist.")
    try:
        yield
    except OSError as error:
        raise UsageError(f"{place} can't be written: {error.strerror}.") from error
