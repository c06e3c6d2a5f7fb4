"""Any RDF as a document with what it states: each triple with its lines as the quote."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from io import BytesIO
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
from tgraph.extensions.interchange.graphs.own_terms import OwnTerms
from tgraph.extensions.interchange.graphs.rdf_syntax import (
    SYNTAXES,
    OnProblem,
    RdfText,
    StatedTriple,
    Syntax,
    rendered,
)
from tgraph.extensions.interchange.graphs.rdf_terms import (
    ALIASES,
    DESCRIPTIONS,
    LABELS,
    PARTS,
    SAME,
    STATEMENT,
    Resources,
    is_reserved,
    reifier_of,
    term_iri,
)
from tgraph.extensions.interchange.graphs.trustgraph import SubgraphProvenance
from tgraph.ingest.base import DEFAULT_LIMITS, FileLimits, check_lines
from tgraph.ingest.files import read_bytes, readable_stem
from tgraph.ingest.text import decode
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

CHUNK = 1_600
"""Characters of statements that are kept together as a chunk: a few hundred tokens."""

RESERVED = "statement in tgraph's own terms"
ITSELF = "statement of a resource about itself"
_GZIP = b"\x1f\x8b"
_HEAD = 4_096


@dataclass(frozen=True, slots=True)
class RdfReader:
    """Reads RDF 1.2 in any of its syntaxes, also packed by gzip. ``languages`` are those of names,
    the best first; ``base`` is what relative IRIs are read against; ``syntax`` names one
    (default: as the suffix tells)."""

    languages: tuple[str, ...] = ()
    base: str = ""
    limits: FileLimits = DEFAULT_LIMITS
    encoding: str = "o200k_base"
    syntax: str = ""
    kind: str = field(default="rdf", init=False)

    def recognises(self, path: str) -> bool:
        """By the suffix; JSON and XML also by their first bytes."""
        return not self.syntax and syntax_of(path) is not None

    def read(self, path: str, skipped: OnSkipped) -> ImportedGraph:
        """The graph in the file. ``IngestError`` where nothing of it can be read."""
        named = (syntax for syntax in SYNTAXES if syntax.name == self.syntax)
        syntax = next(named, None) or syntax_of(path)
        if syntax is None:
            names = ", ".join(syntax.name for syntax in SYNTAXES)
            remedy = f"Name its format: {names}."
            raise IngestError(path, "It has no suffix of an RDF syntax.", remedy)
        content = read_bytes(Path(path), path, self.limits)
        return ImportedGraph(syntax.name, iter([self.document(path, content, syntax, skipped)]))

    def document(
        self, path: str, content: bytes, syntax: Syntax, skipped: OnSkipped
    ) -> ImportedDocument:
        """The document that the bytes of a file are."""

        def problem(line: int, reason: str) -> None:
            skipped(SkippedRow(path, line, reason))

        key = sha256(content).hexdigest()
        data = _unpacked(content, path, self.limits)
        if syntax.rendered:
            text = rendered(data, path, syntax, self.base, problem)
        else:
            text = _text(data, path, self.limits)
        check_lines(text, path, self.limits)
        title = readable_stem(str(_bare(path)))
        document = Document(key, title, syntax.media_type, (Page(None, text),))
        graph = RdfGraph(RdfText(text, syntax, key, self.base), self.languages, self.encoding)
        return ImportedDocument(path, content, document, graph.readings(problem))


def syntax_of(path: str) -> Syntax | None:
    """The syntax that a file's name tells, or its first bytes where these are JSON or XML."""
    suffix = _bare(path).suffix.lower()
    named = next((syntax for syntax in SYNTAXES if suffix in syntax.suffixes), None)
    if named is not None or suffix not in (".json", ".xml"):
        return named
    mark, name = (b'"@context"', "jsonld") if suffix == ".json" else (b"<rdf:RDF", "rdfxml")
    try:
        with Path(path).open("rb") as file:
            found = mark in file.read(_HEAD)
    except OSError:
        return None
    return next(syntax for syntax in SYNTAXES if syntax.name == name) if found else None


def _bare(path: str) -> PurePath:
    """The path without the suffix of gzip."""
    name = PurePath(path)
    return name.with_suffix("") if name.suffix.lower() == ".gz" else name


def _unpacked(content: bytes, name: str, limits: FileLimits) -> bytes:
    if not content.startswith(_GZIP):
        return content
    try:
        with gzip.open(BytesIO(content)) as file:
            data = file.read(limits.unpacked_bytes + 1)
    except (OSError, EOFError, zlib.error):
        raise IngestError(name, "It is a damaged gzip archive.") from None
    if len(data) > limits.unpacked_bytes:
        raise IngestError(name, f"It unpacks to more than {limits.unpacked_bytes:,} bytes.")
    return data


def _text(data: bytes, name: str, limits: FileLimits) -> str:
    """RDF's text is UTF-8; what isn't is read as any other text."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return decode(data, name, limits)
    if "\0" in text:
        raise IngestError(name, "The file isn't text: it holds NUL characters.")
    if not text.strip():
        raise IngestError(name, "The file holds only white space.")
    return text


class RdfGraph:
    """What a text states, stretch by stretch, for the record of evidence; but for what stands
    ``elsewhere`` better, by where it begins here."""

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
        self._key = v.digest("rdf 1", *languages, "", text.base)

    def readings(self, problem: OnProblem) -> Iterator[Reading]:
        """The chunks with what each states, in their order."""
        resources = self._resources
        resources.read(self._text.stated(problem))
        if resources.reifies:
            resources.read_reified(self._text.stated())
        ours = v.TG in self._text.text
        own = OwnTerms(self._text.stated()) if ours else None
        subgraphs = SubgraphProvenance(self._text.stated()) if ours else None
        for index, run in enumerate(self._runs()):
            chunk = self._chunk(run, index)
            left = [said for said in run if not own.takes(said)] if own else run
            found = StretchReader(resources, self._text.text).extraction(chunk, left, self._key)
            if own:
                found = _joined(own.extraction(chunk, run, self._text.text, self._key), found)
            if subgraphs:
                found = subgraphs.sourced(found)
            yield Reading(chunk, found)

    def _runs(self) -> Iterator[list[StatedTriple]]:
        """Statements that fit a chunk; places that overlap stay together."""
        run: list[StatedTriple] = []
        end = 0
        for said in self._text.stated():
            if said.start in self._elsewhere:
                continue
            if run and said.start >= end and said.end - run[0].start > CHUNK:
                yield run
                run = []
            run.append(said)
            end = max(end, said.end)
        if run:
            yield run

    def _chunk(self, run: Sequence[StatedTriple], index: int) -> Chunk:
        start, end = min(said.start for said in run), max(said.end for said in run)
        text = self._text.text[start:end]
        tokens = count_tokens(text, self._encoding)
        return Chunk(self._text.key, None, index, start, end, text, tokens)


def _joined(own: Extraction, other: Extraction) -> Extraction:
    """What an export states, and what else its text does."""
    return replace(
        own,
        entities=own.entities + other.entities,
        relationships=own.relationships + other.relationships,
        dropped={**own.dropped, **other.dropped},
    )


class StretchReader:
    """Turns triples into what evidence is recorded for: entities, with what is said of them, and
    relationships."""

    def __init__(self, resources: Resources, text: str) -> None:
        self._resources = resources
        self._text = text
        self._entities: list[ExtractedEntity] = []
        self._mentions: dict[str, Span] = {}
        self._described: set[str] = set()
        self._relationships: list[ExtractedRelationship] = []
        self._dropped: dict[str, int] = {}

    def extraction(self, chunk: Chunk, run: Iterable[StatedTriple], key: str) -> Extraction:
        """All that the triples state."""
        span = Span(-1, -1, "")
        for said in run:
            if (said.start, said.end) != (span.start, span.end):
                span = Span(said.start, said.end, self._text[said.start : said.end])
            self._take(said, span)
        named = (
            self._entity(iri, place)
            for iri, place in self._mentions.items()
            if iri not in self._described
        )
        entities = (*self._entities, *named)
        return Extraction(chunk.iri, entities, tuple(self._relationships), key, self._dropped)

    def _take(self, said: StatedTriple, span: Span) -> None:
        subject, predicate, obj = said.subject, said.predicate, said.object
        if is_reserved(subject.value) or is_reserved(predicate.value) or _reserved(obj):
            self._drop(RESERVED)
        elif isinstance(obj, Triple):
            self._take_term(said, obj, span)
        elif isinstance(obj, Literal):
            self._take_literal(said, obj, span)
        elif predicate == v.RDF_TYPE:
            self._describe(said, span, type=self._resources.kind(obj.value), classes=(obj.value,))
        elif predicate in SAME:
            self._describe(said, span, same=(obj.value,))
            self._mentions.setdefault(obj.value, span)
        elif predicate in PARTS and self._take_part(said, span):
            return
        else:
            self._relate(said, predicate, obj, span)

    def _take_literal(self, said: StatedTriple, obj: Literal, span: Span) -> None:
        predicate, text = said.predicate, " ".join(obj.value.split())
        if predicate in LABELS or predicate in ALIASES:
            other = text and text != self._resources.name(said.subject.value)
            self._describe(said, span, aliases=(text,) if other else ())
        elif predicate in DESCRIPTIONS and text:
            self._describe(said, span, description=text)
        elif predicate not in PARTS or not self._take_part(said, span):
            self._relate(said, predicate, obj, span)

    def _take_part(self, said: StatedTriple, span: Span) -> bool:
        """Whether the triple is a part of a statement that the graph asserts too: that is recorded
        once, with its predicate."""
        known = self._resources.reified(said.subject.value)
        if known is None or not known.asserted:
            return False
        if said.predicate == PARTS[1]:
            self._take_reified(said, span)
        return True

    def _take_reified(self, said: StatedTriple, span: Span) -> None:
        known = self._resources.reified(said.subject.value)
        assert known is not None
        assert known.triple is not None
        subject, predicate, obj = known.triple
        about = said._replace(subject=subject, predicate=predicate)
        self._relate(about, predicate, obj, span, tuple(known.sources))
        self._mentions.setdefault(said.subject.value, span)

    def _take_term(self, said: StatedTriple, term: Triple, span: Span) -> None:
        """A triple term: evidence of the statement where the graph asserts it; of a resource with
        three parts where it is merely spoken of."""
        resource = reifier_of(said)
        if said.predicate != v.RDF_REIFIES:
            self._relate(said, said.predicate, NamedNode(resource), span)
        known = self._resources.reified(resource)
        about = said._replace(subject=NamedNode(resource))
        if known is not None and known.asserted:
            self._take_reified(about, span)
        else:
            self._speak_of(about, term, span)

    def _speak_of(self, about: StatedTriple, term: Triple, span: Span) -> None:
        """A resource that is a statement which nobody makes."""
        kind = STATEMENT.value
        self._describe(about, span, type=self._resources.kind(kind), classes=(kind,))
        for part, value in zip(PARTS, term, strict=True):
            if isinstance(value, Triple):
                inner = NamedNode(term_iri(value))
                self._speak_of(about._replace(subject=inner), value, span)
                value = inner
            self._relate(about, part, value, span)

    def _relate(
        self,
        said: StatedTriple,
        predicate: NamedNode,
        obj: NamedNode | Literal,
        span: Span,
        sources: tuple[str, ...] = (),
    ) -> None:
        if said.subject == obj:
            self._drop(ITSELF)
        self._mentions.setdefault(said.subject.value, span)
        if isinstance(obj, NamedNode) and not self._resources.is_described(obj.value):
            self._mentions.setdefault(obj.value, span)
        told = ExtractedRelationship(
            said.subject,
            predicate,
            obj,
            span=span,
            label=self._resources.relation(predicate.value),
            graph=said.graph,
        )
        if sources:  # the same lines may state it by itself too
            self._relationships = [known for known in self._relationships if known != told]
            told = replace(told, sources=sources)
        self._relationships.append(told)

    def _describe(self, said: StatedTriple, span: Span, **told: object) -> None:
        iri = said.subject.value
        self._described.add(iri)
        self._entities.append(self._entity(iri, span, graph=said.graph, **told))

    def _entity(self, iri: str, span: Span, **told: object) -> ExtractedEntity:
        about = {"type": self._resources.type(iri), **told}
        return ExtractedEntity(self._resources.name(iri), span=span, iri=iri, **about)  # type: ignore[arg-type]

    def _drop(self, reason: str) -> None:
        self._dropped[reason] = self._dropped.get(reason, 0) + 1


def _reserved(term: object) -> bool:
    if isinstance(term, Triple):
        return any(map(_reserved, term))
    return isinstance(term, NamedNode) and is_reserved(term.value)
