"""TrustGraph's knowledge cores as documents with what they state.

The triples are rendered as N-Quads, a line each, as those of RDF/XML are. Where the core brings the
text of the chunk that a triple was read in, the triple rests on that instead: on the sentences that
name its ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.errors import IngestError
from tgraph.extensions.interchange.graphs.base import (
    ImportedDocument,
    ImportedGraph,
    OnSkipped,
    SkippedRow,
)
from tgraph.extensions.interchange.graphs.core_messages import (
    CoreContent,
    LibraryText,
    begins_core,
    read_core_isolated,
)
from tgraph.extensions.interchange.graphs.mentions import UnitText
from tgraph.extensions.interchange.graphs.rdf import RdfGraph, StretchReader
from tgraph.extensions.interchange.graphs.rdf_syntax import (
    CORE,
    SYNTAXES,
    OnProblem,
    RdfText,
    StatedTriple,
)
from tgraph.extensions.interchange.graphs.rdf_terms import Resources
from tgraph.extensions.interchange.graphs.text_units import TextDocument, TextUnit, texts_of
from tgraph.extensions.interchange.graphs.trustgraph import SubgraphProvenance
from tgraph.ingest.base import DEFAULT_LIMITS, FileLimits, check_lines
from tgraph.ingest.files import read_bytes, readable_stem
from tgraph.model import (
    Chunk,
    Document,
    ExtractedEntity,
    ExtractedRelationship,
    Extraction,
    Page,
    Span,
)

_NQUADS = next(syntax for syntax in SYNTAXES if syntax.name == "nquads")
_HEAD = 8
_PLAIN = ("", "text/plain", "text/markdown")


@dataclass(frozen=True, slots=True)
class CoreReader:
    """Knowledge core reader; ``languages`` are preferred name languages, best choice leading."""

    languages: tuple[str, ...] = ()
    limits: FileLimits = DEFAULT_LIMITS
    encoding: str = "o200k_base"
    kind: str = field(default="core", init=False)

    def recognises(self, path: str) -> bool:
        """Tell whether leading file bytes are a message start."""
        try:
            with Path(path).open("rb") as file:
                return begins_core(file.read(_HEAD))
        except OSError:
            return False

    def read(self, path: str, skipped: OnSkipped) -> ImportedGraph:
        """Return the graph of a knowledge core file.

        Raise ``IngestError`` if nothing is readable."""
        content = read_bytes(Path(path), path, self.limits)
        core = read_core_isolated(content, path, self.limits, skipped)
        if not core.lines and not any(entry.text for entry in core.texts.values()):
            raise IngestError(path, "It holds no message of a knowledge core that can be read.")
        graph = _CoreGraph(path, content, core, self)
        return ImportedGraph(self.kind, graph.documents(skipped))


class _CoreGraph:
    def __init__(self, path: str, content: bytes, core: CoreContent, reader: CoreReader) -> None:
        self._path, self._content, self._reader = path, content, reader
        self._library = _Library(core.texts.values())
        text = "".join(f"{line}\n" for line in core.lines)
        check_lines(text, path, reader.limits)
        self._text = RdfText(text, _NQUADS, sha256(content).hexdigest())
        self._resources = Resources(reader.languages)
        self._key = v.digest_parts("core 1", *reader.languages)
        self._read: dict[str, list[StatedTriple]] = {}
        self._subgraphs = SubgraphProvenance(())

    def documents(self, skipped: OnSkipped) -> Iterator[ImportedDocument]:
        """Yield the document of triples without texts, followed by text documents."""

        def problem(line: int, reason: str, mended: bool) -> None:
            skipped(SkippedRow(self._path, line, reason, mended))

        for entry in self._library.unread:
            number, offset = entry.place
            problem_text = f"{entry.id} is {entry.kind or 'bytes'}, and no text"
            skipped(SkippedRow(self._path, number, f"at byte {offset:,}: {problem_text}"))
        elsewhere = self._share_out()
        if self._text.text:
            yield self._triple_document(elsewhere, problem)
        documents, units = self._library.documents, self._library.units
        yield from texts_of(documents, units, self._of_chunk, self._path)

    def _share_out(self) -> set[int]:
        """Read chunk statements for chunks with stored texts; return start positions of
        statements read."""
        self._resources.read(self._text.read_triples())
        if self._resources.reifies:
            self._resources.read_reified(self._text.read_triples())
        self._subgraphs = SubgraphProvenance(self._text.read_triples())
        units = {unit.id for unit in self._library.units}
        elsewhere = set()
        for statement in self._text.read_triples() if units and self._subgraphs else ():
            if not v.is_reserved(statement.predicate.value):
                for chunk in units.intersection(self._subgraphs.chunks(statement)):
                    self._read.setdefault(chunk, []).append(statement)
                    elsewhere.add(statement.start)
        return elsewhere

    def _triple_document(self, elsewhere: set[int], problem: OnProblem) -> ImportedDocument:
        title, key = readable_stem(self._path), self._text.key
        document = Document(key, title, CORE, (Page(None, self._text.text),))
        graph = RdfGraph(self._text, self._reader.languages, self._reader.encoding, elsewhere)
        return ImportedDocument(self._path, self._content, document, graph.readings(problem))

    def _of_chunk(self, chunk: Chunk, units: Sequence[str]) -> Extraction:
        run = [statement for unit in units for statement in self._read.get(unit, ())]
        reader = StretchReader(self._resources, self._text.text)
        extraction = self._subgraphs.add_sources(
            reader.extraction(chunk, dict.fromkeys(run), self._key)
        )
        return _ChunkPlaces(chunk, self._resources).locate_spans(extraction)


class _ChunkPlaces:
    """Locator of extracted items within a chunk."""

    def __init__(self, chunk: Chunk, resources: Resources) -> None:
        self._resources = resources
        self._text = UnitText(chunk.text, chunk.start)
        self._whole = Span(chunk.start, chunk.end, chunk.text)

    def locate_spans(self, found: Extraction) -> Extraction:
        """Return the extraction with located spans, without duplicates."""
        entities = dict.fromkeys(map(self._locate_entity, found.entities))
        relationships = dict.fromkeys(map(self._locate_relationship, found.relationships))
        return replace(found, entities=tuple(entities), relationships=tuple(relationships))

    def _locate_entity(self, entity: ExtractedEntity) -> ExtractedEntity:
        quote_span = self._text.of_quote(entity.description)
        return replace(entity, span=quote_span or self._text.of_entity(entity.name))

    def _locate_relationship(self, told: ExtractedRelationship) -> ExtractedRelationship:
        ends = (self._end_name(told.subject), self._end_name(told.object))
        return replace(told, span=self._text.of_relationship(*ends) or self._whole)

    def _end_name(self, end: str | NamedNode | Literal) -> str:
        if isinstance(end, NamedNode):
            return self._resources.name(end.value)
        return end.value if isinstance(end, Literal) else end


class _Library:
    """Texts of a core.

    ``units`` are texts without parts, each listed with its containing ``documents``, or as its
    own document; ``unread`` entries have neither text nor parts with text."""

    def __init__(self, entries: Iterable[LibraryText]) -> None:
        self._entries = {entry.id: entry for entry in entries}
        texts = [entry for entry in self._entries.values() if _is_text(entry)]
        above = {entry.id: self._list_ancestors(entry) for entry in texts}
        parents = {name for names in above.values() for name in names}
        leaves = [entry for entry in texts if entry.id not in parents]
        homes = {e.id: [n for n in above[e.id] if _is_text(self._entries[n])] for e in leaves}
        self.units = [TextUnit(e.id, e.text or "", tuple(homes[e.id] or [e.id])) for e in leaves]
        self.documents = [
            TextDocument(entry.id, entry.title, entry.text or "")
            for entry in texts
            if not homes.get(entry.id)
        ]
        self.unread = [
            entry
            for entry in self._entries.values()
            if entry.place != (0, 0) and not _is_text(entry) and entry.id not in parents
        ]

    def _list_ancestors(self, entry: LibraryText) -> list[str]:
        """Return containing entries, nearest ancestor leading."""
        ancestors: dict[str, None] = {}
        while entry.parent in self._entries and entry.parent not in ancestors:
            ancestors[entry.parent] = None
            entry = self._entries[entry.parent]
        return list(ancestors)


def _is_text(entry: LibraryText) -> bool:
    return bool(entry.text) and entry.kind in _PLAIN
