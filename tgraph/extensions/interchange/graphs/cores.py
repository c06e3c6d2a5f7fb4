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
    read_core,
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
from tgraph.extensions.interchange.graphs.rdf_terms import Resources, is_reserved
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
    """Reads a knowledge core; ``languages`` are those of names, the best first."""

    languages: tuple[str, ...] = ()
    limits: FileLimits = DEFAULT_LIMITS
    encoding: str = "o200k_base"
    kind: str = field(default="core", init=False)

    def recognises(self, path: str) -> bool:
        """By the first bytes, which are those of a message."""
        try:
            with Path(path).open("rb") as file:
                return begins_core(file.read(_HEAD))
        except OSError:
            return False

    def read(self, path: str, skipped: OnSkipped) -> ImportedGraph:
        """The core in the file. ``IngestError`` where nothing of it can be read."""
        content = read_bytes(Path(path), path, self.limits)
        core = read_core(content, path, skipped)
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
        self._key = v.digest("core 1", *reader.languages)
        self._read: dict[str, list[StatedTriple]] = {}
        self._subgraphs = SubgraphProvenance(())

    def documents(self, skipped: OnSkipped) -> Iterator[ImportedDocument]:
        """The triples, but for those with a text, and then the texts."""

        def problem(line: int, reason: str) -> None:
            skipped(SkippedRow(self._path, line, reason))

        for entry in self._library.unread:
            number, offset = entry.place
            what = f"{entry.id} is {entry.kind or 'bytes'}, and no text"
            skipped(SkippedRow(self._path, number, f"at byte {offset:,}: {what}"))
        elsewhere = self._share_out()
        if self._text.text:
            yield self._triples(elsewhere, problem)
        documents, units = self._library.documents, self._library.units
        yield from texts_of(documents, units, self._of_chunk, self._path)

    def _share_out(self) -> set[int]:
        """Read what each chunk states that the core has the text of; where that begins here."""
        self._resources.read(self._text.stated())
        if self._resources.reifies:
            self._resources.read_reified(self._text.stated())
        self._subgraphs = SubgraphProvenance(self._text.stated())
        units = {unit.id for unit in self._library.units}
        elsewhere = set()
        for said in self._text.stated() if units and self._subgraphs else ():
            if not is_reserved(said.predicate.value):
                for chunk in units.intersection(self._subgraphs.chunks(said)):
                    self._read.setdefault(chunk, []).append(said)
                    elsewhere.add(said.start)
        return elsewhere

    def _triples(self, elsewhere: set[int], problem: OnProblem) -> ImportedDocument:
        title, key = readable_stem(self._path), self._text.key
        document = Document(key, title, CORE, (Page(None, self._text.text),))
        graph = RdfGraph(self._text, self._reader.languages, self._reader.encoding, elsewhere)
        return ImportedDocument(self._path, self._content, document, graph.readings(problem))

    def _of_chunk(self, chunk: Chunk, units: Sequence[str]) -> Extraction:
        run = [said for unit in units for said in self._read.get(unit, ())]
        reader = StretchReader(self._resources, self._text.text)
        found = self._subgraphs.sourced(reader.extraction(chunk, dict.fromkeys(run), self._key))
        return _ChunkPlaces(chunk, self._resources).placed(found)


class _ChunkPlaces:
    """Finds the places in a chunk of what was read in it."""

    def __init__(self, chunk: Chunk, resources: Resources) -> None:
        self._resources = resources
        self._text = UnitText(chunk.text, chunk.start)
        self._whole = Span(chunk.start, chunk.end, chunk.text)

    def placed(self, found: Extraction) -> Extraction:
        """The same with these places: each thing in each place once."""
        entities = dict.fromkeys(map(self._entity, found.entities))
        relationships = dict.fromkeys(map(self._relationship, found.relationships))
        return replace(found, entities=tuple(entities), relationships=tuple(relationships))

    def _entity(self, entity: ExtractedEntity) -> ExtractedEntity:
        said = self._text.of_quote(entity.description)
        return replace(entity, span=said or self._text.of_entity(entity.name))

    def _relationship(self, told: ExtractedRelationship) -> ExtractedRelationship:
        ends = (self._name(told.subject), self._name(told.object))
        return replace(told, span=self._text.of_relationship(*ends) or self._whole)

    def _name(self, end: str | NamedNode | Literal) -> str:
        if isinstance(end, NamedNode):
            return self._resources.name(end.value)
        return end.value if isinstance(end, Literal) else end


class _Library:
    """The texts of a core: ``units`` are those that no other text is part of, each in the
    ``documents`` that it is part of, or one itself; ``unread`` has no text, and no part with one.
    """

    def __init__(self, entries: Iterable[LibraryText]) -> None:
        self._entries = {entry.id: entry for entry in entries}
        texts = [entry for entry in self._entries.values() if _is_text(entry)]
        above = {entry.id: self._above(entry) for entry in texts}
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

    def _above(self, entry: LibraryText) -> list[str]:
        """What the entry is part of, the nearest first."""
        found: dict[str, None] = {}
        while entry.parent in self._entries and entry.parent not in found:
            found[entry.parent] = None
            entry = self._entries[entry.parent]
        return list(found)


def _is_text(entry: LibraryText) -> bool:
    return bool(entry.text) and entry.kind in _PLAIN
