"""RDF files as documents with statements: each triple quotes its lines."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path, PurePath

from pyoxigraph import Literal, NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.errors import IngestError
from tgraph.extensions.interchange.graphs.base import (
    ImportedDocument,
    ImportedGraph,
    OnSkipped,
    Reading,
    SkippedRow,
)
from tgraph.extensions.interchange.graphs.isolated_files import unpack_graph
from tgraph.extensions.interchange.graphs.own_terms import OwnTerms
from tgraph.extensions.interchange.graphs.rdf_syntax import (
    SYNTAXES,
    OnProblem,
    RdfText,
    StatedTriple,
    Syntax,
    render_quads,
)
from tgraph.extensions.interchange.graphs.rdf_terms import (
    ALIASES,
    DESCRIPTIONS,
    LABELS,
    PARTS,
    SAME,
    STATEMENT,
    Resources,
    reifier_of,
    term_iri,
)
from tgraph.extensions.interchange.graphs.trustgraph import SubgraphProvenance
from tgraph.ingest.base import DEFAULT_LIMITS, FileLimits, check_lines
from tgraph.ingest.files import read_bytes, readable_stem
from tgraph.ingest.text import decode_text
from tgraph.model import (
    Chunk,
    Document,
    ExtractedEntity,
    ExtractedRelationship,
    Extraction,
    Page,
    Span,
)
from tgraph.models.tokens import count_tokens
from tgraph.record.boundary import RESERVED, names_reserved

CHUNK = 1_600
"""Characters of statements that are kept together as a chunk: a few hundred tokens."""

ITSELF = "statement of a resource about itself"
_HEAD = 4_096


@dataclass(frozen=True, slots=True)
class RdfReader:
    """Reader for RDF 1.2 in any syntax, including gzip files.

    ``languages`` are preferred name languages, best first; ``base`` resolves relative IRIs;
    ``syntax`` names a syntax (default: by suffix)."""

    languages: tuple[str, ...] = ()
    base: str = ""
    limits: FileLimits = DEFAULT_LIMITS
    encoding: str = "o200k_base"
    syntax: str = ""
    kind: str = field(default="rdf", init=False)

    def recognises(self, path: str) -> bool:
        """Tell whether a file is RDF: by suffix, for JSON and XML also by leading bytes."""
        return not self.syntax and syntax_of(path) is not None

    def read(self, path: str, skipped: OnSkipped) -> ImportedGraph:
        """Return the graph of an RDF file.

        Raise ``IngestError`` if nothing is readable."""
        chosen = (syntax for syntax in SYNTAXES if syntax.name == self.syntax)
        syntax = next(chosen, None) or syntax_of(path)
        if syntax is None:
            names = ", ".join(syntax.name for syntax in SYNTAXES)
            remedy = f"Name its format: {names}."
            raise IngestError(path, "It has no suffix of an RDF syntax.", remedy)
        content = read_bytes(Path(path), path, self.limits)
        return ImportedGraph(syntax.name, iter([self.document(path, content, syntax, skipped)]))

    def document(
        self, path: str, content: bytes, syntax: Syntax, skipped: OnSkipped
    ) -> ImportedDocument:
        """Return the document for a file's bytes."""

        def problem(line: int, reason: str, mended: bool) -> None:
            skipped(SkippedRow(path, line, reason, mended))

        key = sha256(content).hexdigest()
        if syntax.is_rendered:
            text = render_quads(content, path, syntax, self.base, self.limits, problem)
        else:
            text = _decode_text(unpack_graph(content, path, self.limits), path, self.limits)
        check_lines(text, path, self.limits)
        title = readable_stem(str(_strip_gzip(path)))
        document = Document(key, title, syntax.media_type, (Page(None, text),))
        graph = RdfGraph(RdfText(text, syntax, key, self.base), self.languages, self.encoding)
        return ImportedDocument(path, content, document, graph.readings(problem))


def syntax_of(path: str) -> Syntax | None:
    """Return the syntax indicated by a file name, or by leading bytes for JSON and XML."""
    suffix = _strip_gzip(path).suffix.lower()
    match = next((syntax for syntax in SYNTAXES if suffix in syntax.suffixes), None)
    if match is not None or suffix not in (".json", ".xml"):
        return match
    mark, name = (b'"@context"', "jsonld") if suffix == ".json" else (b"<rdf:RDF", "rdfxml")
    try:
        with Path(path).open("rb") as file:
            has_mark = mark in file.read(_HEAD)
    except OSError:
        return None
    return next(syntax for syntax in SYNTAXES if syntax.name == name) if has_mark else None


def _strip_gzip(path: str) -> PurePath:
    """Return the path without gzip suffix."""
    name = PurePath(path)
    return name.with_suffix("") if name.suffix.lower() == ".gz" else name


def _decode_text(data: bytes, name: str, limits: FileLimits) -> str:
    """Return RDF text decoded as UTF-8; other encodings are detected like any text."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return decode_text(data, name, limits)
    if "\0" in text:
        raise IngestError(name, "The file isn't text: it holds NUL characters.")
    if not text.strip():
        raise IngestError(name, "The file holds only white space.")
    return text


class RdfGraph:
    """Text statements, stretch by stretch, for recording evidence.

    Statements starting at positions in ``elsewhere`` are excluded, as better placed there."""

    def __init__(
        self,
        text: RdfText,
        languages: Sequence[str],
        encoding: str,
        elsewhere: Container[int] = (),
    ) -> None:
        self._text = text
        self._elsewhere = elsewhere
        self._resources = Resources(languages)
        self._encoding = encoding
        self._key = v.digest_parts("rdf 1", *languages, "", text.base)

    def readings(self, problem: OnProblem) -> Iterator[Reading]:
        """Yield chunks with their statements, in order."""
        resources = self._resources
        resources.read(self._text.read_triples(problem))
        if resources.reifies:
            resources.read_reified(self._text.read_triples())
        ours = v.TG in self._text.text
        export_terms = OwnTerms(self._text.read_triples()) if ours else None
        subgraphs = SubgraphProvenance(self._text.read_triples()) if ours else None
        for index, run in enumerate(self._group_triples()):
            chunk = self._create_chunk(run, index)
            other_triples = (
                [triple for triple in run if not export_terms.takes(triple)]
                if export_terms
                else run
            )
            extraction = StretchReader(resources, self._text.text).extraction(
                chunk, other_triples, self._key
            )
            if export_terms:
                extraction = _merge_extractions(
                    export_terms.extraction(chunk, run, self._text.text, self._key), extraction
                )
            if subgraphs:
                extraction = subgraphs.add_sources(extraction)
            yield Reading(chunk, extraction)

    def _group_triples(self) -> Iterator[list[StatedTriple]]:
        """Statements that fit a chunk; places that overlap stay together."""
        run: list[StatedTriple] = []
        end = 0
        for triple in self._text.read_triples():
            if triple.start in self._elsewhere:
                continue
            if run and triple.start >= end and triple.end - run[0].start > CHUNK:
                yield run
                run = []
            run.append(triple)
            end = max(end, triple.end)
        if run:
            yield run

    def _create_chunk(self, run: Sequence[StatedTriple], index: int) -> Chunk:
        start, end = min(triple.start for triple in run), max(triple.end for triple in run)
        text = self._text.text[start:end]
        tokens = count_tokens(text, self._encoding)
        return Chunk(self._text.key, None, index, start, end, text, tokens)


def _merge_extractions(own: Extraction, other: Extraction) -> Extraction:
    """Return an export's extraction combined with further statements of its text."""
    return replace(
        own,
        entities=own.entities + other.entities,
        relationships=own.relationships + other.relationships,
        dropped={**own.dropped, **other.dropped},
    )


class StretchReader:
    """Converter from triples to evidence: described entities and relationships."""

    def __init__(self, resources: Resources, text: str) -> None:
        self._resources = resources
        self._text = text
        self._entities: list[ExtractedEntity] = []
        self._mentions: dict[str, Span] = {}
        self._described: set[str] = set()
        self._relationships: list[ExtractedRelationship] = []
        self._dropped: dict[str, int] = {}

    def extraction(self, chunk: Chunk, run: Iterable[StatedTriple], key: str) -> Extraction:
        """Return the extraction of all triples."""
        span = Span(-1, -1, "")
        for triple in run:
            if (triple.start, triple.end) != (span.start, span.end):
                span = Span(triple.start, triple.end, self._text[triple.start : triple.end])
            self._read_triple(triple, span)
        mentioned = (
            self._create_entity(iri, place)
            for iri, place in self._mentions.items()
            if iri not in self._described
        )
        entities = (*self._entities, *mentioned)
        return Extraction(chunk.iri, entities, tuple(self._relationships), key, self._dropped)

    def _read_triple(self, said: StatedTriple, span: Span) -> None:
        subject, predicate, obj = said.subject, said.predicate, said.object
        if any(map(names_reserved, (subject, predicate, obj))):
            self._count_dropped(RESERVED)
        elif isinstance(obj, Triple):
            self._take_term(said, obj, span)
        elif isinstance(obj, Literal):
            self._take_literal(said, obj, span)
        elif predicate == v.RDF_TYPE:
            self._add_description(
                said, span, type=self._resources.kind(obj.value), classes=(obj.value,)
            )
        elif predicate in SAME:
            self._add_description(said, span, same=(obj.value,))
            self._mentions.setdefault(obj.value, span)
        elif predicate in PARTS and self._take_part(said, span):
            return
        else:
            self._add_relationship(said, predicate, obj, span)

    def _take_literal(self, said: StatedTriple, obj: Literal, span: Span) -> None:
        predicate, text = said.predicate, " ".join(obj.value.split())
        if predicate in LABELS or predicate in ALIASES:
            is_alias = text and text != self._resources.name(said.subject.value)
            self._add_description(said, span, aliases=(text,) if is_alias else ())
        elif predicate in DESCRIPTIONS and text:
            self._add_description(said, span, description=text)
        elif predicate not in PARTS or not self._take_part(said, span):
            self._add_relationship(said, predicate, obj, span)

    def _take_part(self, said: StatedTriple, span: Span) -> bool:
        """Read a reification part; tell whether the graph also asserts its statement.

        Such a statement is recorded once, with its predicate."""
        reified = self._resources.find_reified(said.subject.value)
        if reified is None or not reified.asserted:
            return False
        if said.predicate == PARTS[1]:
            self._take_reified(said, span)
        return True

    def _take_reified(self, said: StatedTriple, span: Span) -> None:
        reified = self._resources.find_reified(said.subject.value)
        assert reified is not None
        assert reified.triple is not None
        subject, predicate, obj = reified.triple
        statement = said._replace(subject=subject, predicate=predicate)
        self._add_relationship(statement, predicate, obj, span, tuple(reified.sources))
        self._mentions.setdefault(said.subject.value, span)

    def _take_term(self, said: StatedTriple, term: Triple, span: Span) -> None:
        """Read a triple term: evidence for an asserted statement, otherwise a resource with
        three properties."""
        resource = reifier_of(said)
        if said.predicate != v.RDF_REIFIES:
            self._add_relationship(said, said.predicate, NamedNode(resource), span)
        reified = self._resources.find_reified(resource)
        statement = said._replace(subject=NamedNode(resource))
        if reified is not None and reified.asserted:
            self._take_reified(statement, span)
        else:
            self._speak_of(statement, term, span)

    def _speak_of(self, about: StatedTriple, term: Triple, span: Span) -> None:
        """Describe a resource that is an unasserted statement."""
        kind = STATEMENT.value
        self._add_description(about, span, type=self._resources.kind(kind), classes=(kind,))
        for part, value in zip(PARTS, term, strict=True):
            if isinstance(value, Triple):
                inner = NamedNode(term_iri(value))
                self._speak_of(about._replace(subject=inner), value, span)
                value = inner
            self._add_relationship(about, part, value, span)

    def _add_relationship(
        self,
        said: StatedTriple,
        predicate: NamedNode,
        obj: NamedNode | Literal,
        span: Span,
        sources: tuple[str, ...] = (),
    ) -> None:
        if said.subject == obj:
            self._count_dropped(ITSELF)
        self._mentions.setdefault(said.subject.value, span)
        if isinstance(obj, NamedNode) and not self._resources.is_described(obj.value):
            self._mentions.setdefault(obj.value, span)
        relationship = ExtractedRelationship(
            said.subject,
            predicate,
            obj,
            span=span,
            label=self._resources.relation(predicate.value),
            graph=said.graph,
        )
        if sources:  # the same lines may state it by itself too
            self._relationships = [
                existing for existing in self._relationships if existing != relationship
            ]
            relationship = replace(relationship, sources=sources)
        self._relationships.append(relationship)

    def _add_description(self, said: StatedTriple, span: Span, **told: object) -> None:
        iri = said.subject.value
        self._described.add(iri)
        self._entities.append(self._create_entity(iri, span, graph=said.graph, **told))

    def _create_entity(self, iri: str, span: Span, **told: object) -> ExtractedEntity:
        properties = {"type": self._resources.type(iri), **told}
        return ExtractedEntity(self._resources.name(iri), span=span, iri=iri, **properties)  # type: ignore[arg-type]

    def _count_dropped(self, reason: str) -> None:
        self._dropped[reason] = self._dropped.get(reason, 0) + 1
