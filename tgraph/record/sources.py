"""The record of accessioned documents and extracted content (design, section 3.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from pyoxigraph import Literal, NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.extract.resolution import name_key
from tgraph.ingest.document_dates import DocumentDate
from tgraph.model import (
    Agent,
    Chunk,
    Document,
    ExtractedClaim,
    ExtractedEntity,
    ExtractedRelationship,
    Extraction,
    ReadingReport,
    Span,
)
from tgraph.record.activities import (
    Activity,
    Authorship,
    state_entity,
    state_invalidation,
)
from tgraph.record.boundary import admit_extraction
from tgraph.store.statements import Pair, Statements, build_statements, iri_node, reifier_quad


def document_quads(
    document: Document,
    bytes_hash: str,
    text_hashes: Sequence[str],
    layout_hashes: Sequence[str] = (),
    dated: DocumentDate | None = None,
    reread: str | None = None,
) -> list[Quad]:
    """Return quads describing a document and its pages; the librarian keeps page texts under
    ``tg:contentHash``. ``dated`` is the document's date, parsed.

    A document without pages carries its text's hash itself, as ``tg:textHash``; the hash of the
    bytes is ``tg:contentHash``. ``layout_hashes`` has the hash of each page's packed layout, empty
    for a page without; ``reread`` is the earlier reading of the same bytes. Page offsets count
    code points in the concatenated page texts."""
    out = Statements(v.SOURCE_GRAPH)
    layouts = tuple(layout_hashes) or ("",) * len(document.pages)
    length = sum(len(page.text) for page in document.pages)
    paged = document.pages and document.pages[0].number is not None
    tags = [tag for tag in document.metadata.get("tags", "").split(", ") if tag]
    out.add(
        document.iri,
        (v.RDF_TYPE, [v.prov("Entity"), v.tg("Document")]),
        (v.RDFS_LABEL, document.title),
        (v.dcterms("title"), document.title),
        (v.tg("mimeType"), document.media_type),
        (v.tg("contentHash"), bytes_hash),
        (v.prov("wasRevisionOf"), iri_node(reread) if reread else None),
        (v.tg("charLength"), length),
        (v.tg("pageCount"), len(document.pages) if paged else None),
        (v.tg("textHash"), None if paged else text_hashes[0]),
        (v.tg("layoutHash"), (None if paged else layouts[0]) or None),
        (v.dcterms("creator"), document.metadata.get("author")),
        (v.dcterms("date"), document.metadata.get("date")),
        (v.tg("calendarDate"), dated.calendar_date if dated else None),
        (v.tg("dateNote"), (dated.note or None) if dated else None),
        (v.dcterms("language"), document.metadata.get("language")),
        (v.dcterms("description"), document.metadata.get("description")),
        (v.dcterms("subject"), tags or None),
    )
    if document.report is not None:
        _state_report(out, document, document.report)
    offset = 0
    for page, text_hash, layout in zip(document.pages, text_hashes, layouts, strict=True):
        if page.number is not None:
            out.add(
                document.page_iri(page),
                (v.RDF_TYPE, [v.prov("Entity"), v.tg("Page")]),
                (v.RDFS_LABEL, f"Page {page.number}"),
                (v.prov("wasDerivedFrom"), iri_node(document.iri)),
                (v.tg("pageNumber"), page.number),
                (v.tg("charOffset"), offset),
                (v.tg("charLength"), len(page.text)),
                (v.tg("textHash"), text_hash),
                (v.tg("layoutHash"), layout or None),
            )
        offset += len(page.text)
    return out.quads


def _state_report(out: Statements, document: Document, report: ReadingReport) -> None:
    """State what of a document's file isn't in the stored text, and the counts that show it."""
    out.add(
        document.iri,
        (v.tg("reader"), report.reader or None),
        (v.tg("readingVersion"), report.version),
        (v.tg("readingWarning"), report.warnings or None),
    )
    origin = (v.prov("wasDerivedFrom"), iri_node(document.iri))
    for number, loss in enumerate(report.losses, 1):
        out.add(
            v.reading_loss_iri(document.sha256, number),
            (v.RDF_TYPE, [v.prov("Entity"), v.tg("ReadingLoss")]),
            (v.RDFS_LABEL, loss.kind),
            origin,
            (v.tg("lossKind"), loss.kind),
            (v.tg("lossCount"), loss.count),
            (v.tg("lossPlace"), loss.place or None),
            (v.tg("lossReason"), loss.reason or None),
            (v.tg("isMarked"), loss.marked),
        )
    for number, count in enumerate(report.units, 1):
        out.add(
            v.unit_count_iri(document.sha256, number),
            (v.RDF_TYPE, [v.prov("Entity"), v.tg("UnitCount")]),
            (v.RDFS_LABEL, count.unit),
            origin,
            (v.tg("countedUnit"), count.unit),
            (v.tg("unitsInFile"), count.in_file),
            (v.tg("unitsInText"), count.in_text),
            (v.tg("unitsLeftOut"), count.left_out),
        )


def accession_quads(
    accession: str,
    document: str,
    path: str,
    run: str,
    taken: datetime,
    previous: str | None,
    *,
    supersedes: bool = True,
) -> list[Quad]:
    """Return quads accessioning the document under a path, following or replacing an earlier
    content."""
    out = Statements(v.SOURCE_GRAPH)
    out.add(
        accession,
        (v.RDF_TYPE, [v.prov("Entity"), v.tg("Accession")]),
        (v.RDFS_LABEL, path),
        (v.tg("path"), path),
        (v.prov("specializationOf"), iri_node(document)),
        (v.prov("wasGeneratedBy"), iri_node(run)),
        (v.prov("generatedAtTime"), taken),
        (v.prov("wasRevisionOf"), iri_node(previous) if previous else None),
    )
    if previous and supersedes:
        state_invalidation(out, previous, run, taken)
    return out.quads


def run_quads(
    run: str,
    label: str,
    started: datetime,
    ended: datetime,
    agents: Iterable[Agent],
    counts: dict[str, int],
) -> list[Quad]:
    """Return quads of an ``index`` or ``import`` run: times, agents and results."""
    out = Statements(v.SOURCE_GRAPH)
    agent_list = tuple(agents)
    Activity(run, ("IndexRun",), label, started, ended, agent_list, dropped=counts).state(out)
    return out.quads


def chunk_quads(chunk: Chunk) -> list[Quad]:
    return build_statements(
        v.SOURCE_GRAPH,
        chunk.iri,
        (v.RDF_TYPE, [v.prov("Entity"), v.tg("Chunk")]),
        (v.RDFS_LABEL, f"Chunk {chunk.index + 1}"),
        (v.prov("wasDerivedFrom"), iri_node(v.page_of(v.document_iri(chunk.sha256), chunk.page))),
        (v.tg("chunkIndex"), chunk.index),
        (v.tg("charOffset"), chunk.start),
        (v.tg("charLength"), chunk.end - chunk.start),
        (v.tg("tokenCount"), chunk.tokens),
        (v.tg("heading"), " > ".join(chunk.headings) or None),
    )


class EvidenceRecord:
    """A chunk's extracted content: edges using the text's names, plus evidence for each edge,
    entity and claim.

    Entity resolution comes later and never changes this record. ``edges``, ``entities`` and
    ``claims`` list the recorded content; ``evidence`` maps each piece of evidence to its edge
    (empty for an entity or a claim). ``subgraph`` and ``activity`` belong to the reading which
    found the content, already on record; the evidence has the same IRIs for every run writing
    the evidence."""

    def __init__(self, subgraph: str, activity: str, chunk: Chunk, extraction: Extraction) -> None:
        self.extraction = admit_extraction(extraction)
        self.subgraph = subgraph
        self.activity = activity
        self.edges: dict[str, Triple] = {}
        self.entities: set[str] = set()
        self.claims: set[str] = set()
        self.evidence: dict[str, str] = {}
        self._stated: set[tuple[str, Span | None]] = set()
        self._chunk = chunk
        self._key = subgraph
        self._new = Statements(v.SOURCE_GRAPH)
        self._out = Statements(v.SOURCE_GRAPH)

    def quads(self) -> list[Quad]:
        """Return all quads of the record."""
        shared, new = self.state()
        return shared + new

    def state(self) -> tuple[list[Quad], list[Quad]]:
        """Return quads shared with other extractions, and the remaining quads, absent from
        stores unless the subgraph is recorded."""
        for entity in self.extraction.entities:
            self._entity(entity)
        for relationship in self.extraction.relationships:
            self._state_relationship(relationship)
        for claim in self.extraction.claims:
            self._state_claim(claim)
        return self._out.quads, self._new.take_quads()

    def _entity(self, entity: ExtractedEntity) -> None:
        subject = entity.iri or v.entity_iri(entity.name)
        self.entities.add(subject)
        details = (
            (*entity.aliases, *entity.classes, *entity.same, entity.graph) if entity.iri else ()
        )
        self._evidence(
            " ".join((subject, entity.name, entity.type, entity.description, *details)),
            entity.span,
            (v.tg("entity"), iri_node(subject)),
            (v.tg("name"), entity.name),
            (v.tg("entityType"), entity.type),
            (v.tg("description"), entity.description or None),
            (v.tg("alias"), list(entity.aliases)),
            (v.tg("nameKey"), name_key(entity.name)),
            (v.tg("aliasKey"), [name_key(alias) for alias in entity.aliases]),
            (v.tg("entityClass"), map(iri_node, entity.classes)),
            (v.tg("same"), map(iri_node, entity.same)),
            (v.tg("graph"), iri_node(entity.graph) if entity.graph else None),
        )

    def _state_relationship(self, relationship: ExtractedRelationship) -> None:
        subject = _make_node(relationship.subject, v.entity_iri)
        predicate = _make_node(relationship.predicate, v.relation_iri)
        obj: NamedNode | Literal
        if isinstance(relationship.object, Literal):
            obj = v.canonicalise_literal(relationship.object)
        else:
            obj = _make_node(relationship.object, v.entity_iri)
            self.entities.add(obj.value)
        self.entities.add(subject.value)
        edge = v.edge_iri(subject, predicate, obj)
        self.edges[edge] = Triple(subject, predicate, obj)
        self._out.add(self.subgraph, (v.tg("contains"), iri_node(edge)))
        self._out.quads.append(reifier_quad(edge, self.edges[edge]))
        if (edge, relationship.span) in self._stated:
            return  # evidence is one statement of one place: the first that the extractor made
        self._stated.add((edge, relationship.span))
        cell = relationship.cell
        self._evidence(
            edge,
            relationship.span,
            (v.tg("edge"), iri_node(edge)),
            (v.tg("name"), relationship.label or _readable_name(relationship.predicate)),
            (v.tg("description"), relationship.description or None),
            (v.tg("keyword"), list(relationship.keywords)),
            (v.tg("strength"), float(relationship.strength)),
            (v.CSVW_ROWNUM, cell.row if cell else None),
            (v.tg("tableColumn"), cell.column if cell else None),
            (v.tg("unit"), (cell.unit or None) if cell else None),
            (v.tg("tableNumber"), cell.table if cell else None),
            (v.tg("tableTitle"), (cell.title or None) if cell else None),
            (v.tg("graph"), iri_node(relationship.graph) if relationship.graph else None),
            (v.prov("hadPrimarySource"), map(iri_node, relationship.sources)),
        )

    def _state_claim(self, claim: ExtractedClaim) -> None:
        subject = claim.subject_iri or v.entity_iri(claim.subject)
        object_iri = claim.object_iri or v.entity_iri(claim.object)
        dates = (
            str(v.canonicalise_literal(date)) if date else ""
            for date in (claim.started, claim.ended)
        )
        claim_fields = (claim.type, claim.status, claim.description, *dates)
        subjects = (subject, object_iri) if claim.object else (subject, "")
        node = v.claim_iri(*subjects, *claim_fields)
        self.claims.add(node)
        self.entities.update(filter(None, subjects))
        if (node, claim.span) in self._stated:
            return
        self._stated.add((node, claim.span))
        self._evidence(
            node,
            claim.span,
            (v.tg("claim"), iri_node(node)),
            (v.tg("name"), _readable_name(claim.subject)),
            (v.tg("subject"), iri_node(subject)),
            (v.tg("object"), iri_node(object_iri) if claim.object else None),
            (v.tg("claimType"), claim.type),
            (v.tg("claimStatus"), claim.status),
            (v.tg("claimStart"), claim.started),
            (v.tg("claimEnd"), claim.ended),
            (v.tg("description"), claim.description),
        )

    def _evidence(self, statement: str, span: Span | None, *pairs: Pair) -> None:
        start, end = (span.start, span.end) if span else (self._chunk.start, self._chunk.end)
        subject = v.evidence_iri(statement, self._chunk.iri, start, end, self._key)
        self.evidence[subject] = statement if statement in self.edges else ""
        self._new.add(
            subject,
            (v.RDF_TYPE, [v.prov("Entity"), v.tg("Evidence")]),
            (v.prov("wasDerivedFrom"), iri_node(self._chunk.iri)),
            (v.prov("wasGeneratedBy"), iri_node(self.activity)),
            (v.tg("charOffset"), start),
            (v.tg("charLength"), end - start),
            (v.tg("quote"), span.quote if span else None),
            *pairs,
        )


def _make_node(name: str | NamedNode, mint: Callable[[str], str]) -> NamedNode:
    return name if isinstance(name, NamedNode) else NamedNode(mint(name))


def _readable_name(name: str | NamedNode) -> str:
    return v.local_words(name.value) if isinstance(name, NamedNode) else name


class ExtractionRecord(EvidenceRecord):
    """An extractor's findings in a chunk: activity, subgraph, edges, and evidence for each
    edge.

    ``kind`` is an additional class of the activity; ``ontologies`` guided the activity."""

    def __init__(
        self,
        how: Authorship,
        chunk: Chunk,
        extraction: Extraction,
        key: str,
        kind: str = "",
        ontologies: Sequence[str] = (),
    ) -> None:
        extraction = admit_extraction(extraction)
        subgraph = v.subgraph_iri(chunk.iri, key, extraction.reply_hash)
        kinds = ("Extraction", kind) if kind else ("Extraction",)
        used, dropped = (chunk.iri,), extraction.dropped
        self._activity = how.activity(
            "extraction", kinds, "Extraction", subgraph, used=used, dropped=dropped
        )
        super().__init__(subgraph, self._activity.iri, chunk, extraction)
        self._ontologies = tuple(ontologies)
        self._key = v.digest_parts(key, extraction.reply_hash)

    def state(self) -> tuple[list[Quad], list[Quad]]:
        """Return the same parts as ``EvidenceRecord.state``, with the activity and subgraph."""
        self._activity.state(self._new, (v.tg("ontology"), map(iri_node, self._ontologies)))
        origins = (self._chunk.iri,)
        state_entity(self._new, self.subgraph, "Subgraph", by=self.activity, origins=origins)
        return super().state()


def occurrence_quads(subgraph: str, key: str) -> list[Quad]:
    """Return quads linking a reading to its sentences, kept by the librarian under the hash
    ``key``."""
    return build_statements(v.SOURCE_GRAPH, subgraph, (v.tg("occurrences"), key))
