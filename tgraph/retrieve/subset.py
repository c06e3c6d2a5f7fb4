"""A filtered state: quads and vectors as if only admitted content had been indexed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from pyoxigraph import Literal, NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.index.authority import standing_weightings
from tgraph.index.evidence import stored_evidence
from tgraph.index.reports.report import report_evidence as ways_of
from tgraph.index.sources import derived_items
from tgraph.index.summary_tree import standing_tree, ways_down
from tgraph.index.vectors.items import KINDS, items_of
from tgraph.index.vectors.stores import vector_store
from tgraph.rendering import format_count
from tgraph.retrieve.base import Context
from tgraph.retrieve.filters import (
    Filters,
    admitted_documents,
    admitted_entities,
    in_languages,
    valid_span,
)
from tgraph.retrieve.validity import Day, Validity
from tgraph.store.base import Store, text_of
from tgraph.store.oxigraph import OxigraphStore

if TYPE_CHECKING:
    from tgraph.index.vectors.base import VectorIndex


_DERIVED = v.prov("wasDerivedFrom")
_OF = (v.tg("edge"), v.tg("entity"), v.tg("claim"))
_ENTITY = v.tg("Entity")
_DESCRIPTION = v.tg("description")


@dataclass(frozen=True, slots=True)
class AdmittedPiece:
    """Admitted evidence: chunk, canonical subject IRI and descriptions."""

    iri: str
    chunk: str
    subject: str
    described: tuple[str, ...]


class Admitted:
    """Admitted content of a state, selected by filters.

    Admitted content rests on ``documents`` and, where given, on ``entities``; content not valid
    on any day of ``at`` is left out."""

    def __init__(
        self,
        store: Store,
        documents: set[str],
        entities: set[str] | None,
        at: tuple[Day, Day] | None = None,
    ) -> None:
        self._store = store
        self._documents = sorted(documents)
        self._of_type = entities
        self._at = at

    def quads(self) -> Iterator[Quad]:
        """Yield all admitted quads read by retrieval, from knowledge graph and source graph."""
        yield from self._source_quads()
        for piece in self._admitted_pieces:
            yield from self._subject_quads(piece.iri, v.SOURCE_GRAPH)
        for edge in self._admitted_edges:
            yield from self._edge_quads(edge)
        for entity in self._admitted_entities | self._entity_ends:
            yield from self._entity_quads(entity)
        for claim in self._subjects_of_kind("claim"):
            yield from self._subject_quads(claim, v.KNOWLEDGE_GRAPH)
        yield from self._merge_quads()
        for weighting in standing_weightings(self._store):
            yield from self._subject_quads(weighting, v.SOURCE_GRAPH)
        yield from self._class_quads()
        yield from self._community_quads()
        yield from self._all_report_quads()
        yield from self._summary_quads()

    # --- what is admitted ---

    @cached_property
    def _all_chunks(self) -> list[str]:
        parents = [p for d in self._documents for p in (d, *derived_items(self._store, d, "Page"))]
        return [
            chunk for parent in parents for chunk in derived_items(self._store, parent, "Chunk")
        ]

    @cached_property
    def _admitted_chunks(self) -> set[str]:
        """Chunks mentioning admitted content."""
        chunks = set(self._all_chunks)
        return (
            chunks if self._of_type is None else chunks & {p.chunk for p in self._admitted_pieces}
        )

    @cached_property
    def _admitted_pieces(self) -> list[AdmittedPiece]:
        if self._validity is None:
            return self._all_pieces
        left_out = self._validity.left_out
        return [piece for piece in self._all_pieces if piece.iri not in left_out]

    @cached_property
    def _all_pieces(self) -> list[AdmittedPiece]:
        pieces = [piece for chunk in self._all_chunks for piece in self._read_pieces(chunk)]
        return [piece for piece in pieces if self._concerns_types(piece.subject)]

    @cached_property
    def _validity(self) -> Validity | None:
        if self._at is None:
            return None
        evidence = dict.fromkeys(piece.iri for piece in self._all_pieces)
        return Validity(self._store, self._at, evidence)

    def untimely(self) -> str:
        """Describe content left out as invalid on requested days, with counts in words; empty
        without requested days."""
        if self._validity is None:
            return ""
        if not self._validity.is_dated:
            return "no claim has a date, so that nothing was left out."
        gone = {piece.subject for piece in self._all_pieces} - {
            p.subject for p in self._admitted_pieces
        }
        counts = (
            format_count(sum(subject.startswith(prefix) for subject in gone), noun)
            for prefix, noun in ((_CLAIM, "claim"), (_EDGE, "fact"))
        )
        return f"{' and '.join(counts)} of other times were left out."

    def _read_pieces(self, chunk: str) -> Iterator[AdmittedPiece]:
        for evidence in derived_items(self._store, chunk, "Evidence"):
            node = NamedNode(evidence)
            described = tuple(self._object_values(node, _DESCRIPTION, v.SOURCE_GRAPH))
            for predicate in _OF:
                for original_subject in self._object_values(node, predicate, v.SOURCE_GRAPH):
                    for subject in self._canonical_subjects(original_subject):
                        yield AdmittedPiece(evidence, chunk, subject, described)

    def _canonical_subjects(self, said: str) -> list[str]:
        """Return canonical IRIs for a statement's original subject: merge targets or, if never
        merged, the subject itself."""
        if said.startswith(_EDGE):
            quads = self._store.match(None, v.tg("original"), NamedNode(said), v.KNOWLEDGE_GRAPH)
            merged = [text_of(quad.subject) for quad in quads]
            return merged or [said]
        return [self._canonical_entities.get(said, said)]

    @cached_property
    def _canonical_entities(self) -> dict[str, str]:
        """Canonical entities by merged entity name."""
        canonicals = {}
        for quad in self._store.match(None, v.tg("absorbed"), None, v.SOURCE_GRAPH):
            if not self._is_invalidated(text_of(quad.subject)):
                for entity in self._object_values(quad.subject, v.tg("canonical"), v.SOURCE_GRAPH):
                    canonicals[text_of(quad.object)] = entity
        return canonicals

    def _is_invalidated(self, subject: str) -> bool:
        times = self._object_values(NamedNode(subject), v.prov("invalidatedAtTime"), v.SOURCE_GRAPH)
        return next(times, None) is not None

    def _concerns_types(self, subject: str) -> bool:
        """Check a subject against requested types: an entity itself, or an entity involved in
        an edge or claim."""
        if self._of_type is None:
            return True
        if subject.startswith(_EDGE):
            return any(end in self._of_type for end in self._ends_of(subject))
        if subject.startswith(_CLAIM):
            node = NamedNode(subject)
            predicates = [v.tg("subject"), v.tg("object")]
            entities = (
                e for p in predicates for e in self._object_values(node, p, v.KNOWLEDGE_GRAPH)
            )
            return any(entity in self._of_type for entity in entities)
        return subject in self._of_type

    def _ends_of(self, edge: str) -> list[str]:
        triple = self._edge_triple(edge)
        if triple is None:
            return []
        return [end.value for end in (triple.subject, triple.object) if isinstance(end, NamedNode)]

    def _edge_triple(self, edge: str) -> Triple | None:
        quads = self._store.match(NamedNode(edge), v.RDF_REIFIES, None, v.SOURCE_GRAPH)
        return next((q.object for q in quads if isinstance(q.object, Triple)), None)

    def _subjects_of_kind(self, kind: str) -> set[str]:
        return {
            piece.subject for piece in self._admitted_pieces if _subject_kind(piece.subject) == kind
        }

    @cached_property
    def _admitted_edges(self) -> set[str]:
        return self._subjects_of_kind("edge")

    @cached_property
    def _admitted_entities(self) -> set[str]:
        ends = self._entity_ends if self._of_type is None else self._entity_ends & self._of_type
        return self._subjects_of_kind("entity") | ends

    @cached_property
    def _entity_ends(self) -> set[str]:
        return {
            end
            for edge in self._admitted_edges
            for end in self._ends_of(edge)
            if self._is_entity(end)
        }

    def _is_entity(self, end: str) -> bool:
        return (
            next(self._store.match(NamedNode(end), v.RDF_TYPE, _ENTITY, v.KNOWLEDGE_GRAPH), None)
            is not None
        )

    @cached_property
    def _descriptions_by_subject(self) -> dict[str, list[str]]:
        texts_by_subject: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for piece in self._admitted_pieces:
            texts_by_subject[piece.subject].update(dict.fromkeys(filter(None, piece.described)))
        return {subject: list(texts) for subject, texts in texts_by_subject.items()}

    # --- its quads ---

    def _source_quads(self) -> Iterator[Quad]:
        for document in self._documents:
            yield from self._subject_quads(document, v.SOURCE_GRAPH)
            for page in derived_items(self._store, document, "Page"):
                yield from self._subject_quads(page, v.SOURCE_GRAPH)
            node = NamedNode(document)
            for quad in self._store.match(None, v.prov("specializationOf"), node, v.SOURCE_GRAPH):
                yield from self._subject_quads(text_of(quad.subject), v.SOURCE_GRAPH)
        for chunk in self._admitted_chunks:
            yield from self._subject_quads(chunk, v.SOURCE_GRAPH)
            yield from self._subject_quads(chunk, v.KNOWLEDGE_GRAPH)
            for context in self._object_values(NamedNode(chunk), v.tg("context")):
                yield from self._subject_quads(context, v.SOURCE_GRAPH)

    def _edge_quads(self, edge: str) -> Iterator[Quad]:
        triple = self._edge_triple(edge)
        if triple is None:
            return
        asserted = Quad(triple.subject, triple.predicate, triple.object, v.KNOWLEDGE_GRAPH)
        if next(self._store.match(*asserted), None):
            yield asserted
            yield from self._knowledge_quads(edge)
            for original in [edge, *self._object_values(NamedNode(edge), v.tg("original"))]:
                node = NamedNode(original)
                yield from self._store.match(node, v.RDF_REIFIES, None, v.SOURCE_GRAPH)

    def _entity_quads(self, entity: str) -> Iterator[Quad]:
        """Yield an entity's knowledge quads other than statements.

        A mere end of an edge counts as no entity here: only label and types are returned."""
        is_admitted = entity in self._admitted_entities
        for quad in self._knowledge_quads(entity):
            names_entity = quad.predicate in (v.RDF_TYPE, v.RDFS_LABEL) and quad.object != _ENTITY
            if not v.is_statement(quad.predicate) and (is_admitted or names_entity):
                yield quad

    def _knowledge_quads(self, subject: str) -> Iterator[Quad]:
        """Yield a subject's knowledge quads; admitted descriptions replace any description
        resting on other content."""
        descriptions = self._descriptions_by_subject.get(subject, [])
        has_description = False
        for quad in self._subject_quads(subject, v.KNOWLEDGE_GRAPH):
            if quad.predicate != _DESCRIPTION or text_of(quad.object) in descriptions:
                yield quad
                has_description = has_description or quad.predicate == _DESCRIPTION
        if descriptions and not has_description:
            node, text = NamedNode(subject), Literal(" ".join(descriptions))
            yield Quad(node, _DESCRIPTION, text, v.KNOWLEDGE_GRAPH)

    def _merge_quads(self) -> Iterator[Quad]:
        for entity in self._admitted_entities:
            merges = self._store.match(None, v.tg("canonical"), NamedNode(entity), v.SOURCE_GRAPH)
            for quad in merges:
                yield from self._subject_quads(text_of(quad.subject), v.SOURCE_GRAPH)

    def _class_quads(self) -> Iterator[Quad]:
        for kind in ("Relation", "EntityType"):
            for quad in self._store.match(None, v.RDF_TYPE, v.tg(kind), v.KNOWLEDGE_GRAPH):
                yield from self._subject_quads(text_of(quad.subject), v.KNOWLEDGE_GRAPH)

    # --- communities and their reports ---

    def _community_quads(self) -> Iterator[Quad]:
        """Yield community quads, limited to communities with admitted entities and to admitted
        members."""
        for quad in self._store.match(None, v.RDF_TYPE, v.tg("Community"), v.KNOWLEDGE_GRAPH):
            quads = list(self._subject_quads(text_of(quad.subject), v.KNOWLEDGE_GRAPH))
            admitted_quads = [
                q
                for q in quads
                if q.predicate != v.tg("member") or text_of(q.object) in self._admitted_entities
            ]
            if any(q.predicate == v.tg("member") for q in admitted_quads):
                yield from admitted_quads

    def _all_report_quads(self) -> Iterator[Quad]:
        places = {piece.iri for piece in self._admitted_pieces}
        for quad in self._store.match(None, v.RDF_TYPE, v.tg("CommunityReport"), v.KNOWLEDGE_GRAPH):
            yield from self._report_quads(text_of(quad.subject), places)

    def _report_quads(self, report: str, places: set[str]) -> Iterator[Quad]:
        """Yield a report's quads, limited to findings resting entirely on admitted evidence.

        If the report as a whole rests on further evidence, headings of findings replace the
        summary."""
        node = NamedNode(report)
        findings = [
            finding
            for finding in self._object_values(node, v.tg("finding"))
            if (rests := ways_of(self._store, finding)) and rests.keys() <= places
        ]
        if not findings:
            return
        is_complete = ways_of(self._store, report).keys() <= places
        for quad in self._subject_quads(report, v.KNOWLEDGE_GRAPH):
            left_out = quad.predicate == v.tg("finding") and text_of(quad.object) not in findings
            if not left_out and (is_complete or quad.predicate not in _SAID_OF_ALL):
                yield quad
        if not is_complete:
            summary = " ".join(
                text
                for f in findings
                for text in self._object_values(NamedNode(f), v.tg("summaryText"))
            )
            yield Quad(node, v.tg("summaryText"), Literal(summary), v.KNOWLEDGE_GRAPH)
            yield Quad(node, v.tg("ratingExplanation"), Literal(""), v.KNOWLEDGE_GRAPH)
        yield from self._derivation_quads(report)
        for finding in findings:
            yield from self._subject_quads(finding, v.KNOWLEDGE_GRAPH)
            yield from self._derivation_quads(finding)

    def _derivation_quads(self, part: str) -> Iterator[Quad]:
        """Yield derivation quads leading from a report or finding to its evidence."""
        for step in {step for way in ways_of(self._store, part).values() for step in way}:
            yield from self._store.match(NamedNode(step), _DERIVED, None, v.SOURCE_GRAPH)

    # --- the tree of summaries ---

    def _summary_quads(self) -> Iterator[Quad]:
        """Yield quads of summaries resting on admitted chunks alone."""
        tree = standing_tree(self._store)
        for summary in tree:
            if ways_down(tree, summary).keys() <= self._admitted_chunks:
                yield from self._subject_quads(summary, v.KNOWLEDGE_GRAPH)
                yield from self._subject_quads(summary, v.SOURCE_GRAPH)

    # --- reading ---

    def _subject_quads(self, subject: str, graph: object) -> Iterator[Quad]:
        return self._store.match(NamedNode(subject), None, None, graph)  # type: ignore[arg-type]

    def _object_values(
        self, subject: object, predicate: NamedNode, graph: object = v.KNOWLEDGE_GRAPH
    ) -> Iterator[str]:
        quads = self._store.match(subject, predicate, None, graph)  # type: ignore[arg-type]
        return (text_of(quad.object) for quad in quads)


_EDGE, _CLAIM = f"{v.URN}edge:", f"{v.URN}claim:"
_SAID_OF_ALL = (v.tg("summaryText"), v.tg("ratingExplanation"))


def _subject_kind(subject: str) -> str:
    """Return the kind of an evidence subject: edge, claim or entity."""
    return (
        "edge" if subject.startswith(_EDGE) else "claim" if subject.startswith(_CLAIM) else "entity"
    )


# --- narrowing ---


KEPT = 4
"""Copies that are kept of one state."""


def narrow_context(context: Context, filters: Filters) -> Context:
    """Narrow a context to content admitted by filters.

    Raise ``UsageError`` like the functions called for each filter. The admitted part of the
    state is copied and every mode reads the copy, so no mode can return content from outside. A
    copy costs memory in proportion to its content, and is kept for the next question."""
    if not filters:
        return context
    filtered_context = context.open_cache("narrowed", KEPT).load_item(
        filters, lambda: _build_narrow_context(context, filters)
    )
    assert isinstance(filtered_context, Context)
    return replace(filtered_context, sink=context.sink)


def is_empty(context: Context) -> bool:
    """Check whether a context lacks chunks to answer from."""
    chunks = context.store.match(None, v.RDF_TYPE, v.tg("Chunk"), v.SOURCE_GRAPH)
    return next(chunks, None) is None


def _build_narrow_context(context: Context, filters: Filters) -> Context:
    documents = admitted_documents(filters, context.store)
    if filters.languages:
        documents = in_languages(documents, filters.languages, context.store, context.texts)
    entities = admitted_entities(filters, context.store)
    admitted = Admitted(context.store, documents, entities, valid_span(filters))
    store = OxigraphStore.memory(admitted.quads())
    untimely = admitted.untimely()
    note = (f"Valid at {filters.valid_at}: {untimely}",) if untimely else ()
    texts = context.texts.with_store(store)
    return Context(
        store,
        texts,
        NarrowedVectors(context, store),
        context.embedder,
        context.settings,
        reader=context.reader,
        filters=filters,
        notes=(*context.notes, *note),
        generation=context.generation,
        wording=context.wording,
    )


class NarrowedVectors(Mapping[str, "VectorIndex"]):
    """Vector sets of a narrowed store, taken from the whole state's vectors."""

    def __init__(self, whole: Context, store: Store) -> None:
        self._whole = whole
        self._store = store
        self._sets: dict[str, VectorIndex] = {}

    def __getitem__(self, kind: str) -> VectorIndex:
        if kind not in self._sets:
            vectors = self._whole.vectors[kind]
            texts = self._whole.texts.with_store(self._store)
            places = stored_evidence(self._store, texts, self._whole.doubt)
            items = items_of(kind, self._store, texts.librarian, places)
            chosen_store = vector_store(self._whole.settings.vectors.store)
            self._sets[kind] = chosen_store.build_vectors(
                kind, items, self._whole.embedder, vectors, exact=True
            )
        return self._sets[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(KINDS)

    def __len__(self) -> int:
        return len(KINDS)
