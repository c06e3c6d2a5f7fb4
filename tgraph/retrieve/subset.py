"""A state as if only what the filters admit had been indexed: its quads and its vectors."""

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
from tgraph.index.reports.report import evidence as ways_of
from tgraph.index.sources import derived
from tgraph.index.summary_tree import standing_tree, ways_down
from tgraph.index.vectors.items import KINDS, items_of
from tgraph.index.vectors.stores import vector_store
from tgraph.rendering import many
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
    """An evidence with its chunk and what it is for, under the name that knowledge has."""

    iri: str
    chunk: str
    subject: str
    described: tuple[str, ...]


class Admitted:
    """The part of a state that rests on ``documents`` and, where given, on ``entities``, without
    what doesn't hold on one of the days ``at``."""

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
        """Everything that retrieval reads of it, from the knowledge and the source graph."""
        yield from self._sources()
        for piece in self._pieces:
            yield from self._about(piece.iri, v.SOURCE_GRAPH)
        for edge in self._edges:
            yield from self._edge(edge)
        for entity in self._entities | self._ends:
            yield from self._entity(entity)
        for claim in self._subjects("claim"):
            yield from self._about(claim, v.KNOWLEDGE_GRAPH)
        yield from self._merges()
        for weighting in standing_weightings(self._store):
            yield from self._about(weighting, v.SOURCE_GRAPH)
        yield from self._classes()
        yield from self._communities()
        yield from self._reports()
        yield from self._summaries()

    # --- what is admitted ---

    @cached_property
    def _all_chunks(self) -> list[str]:
        parents = [p for d in self._documents for p in (d, *derived(self._store, d, "Page"))]
        return [chunk for parent in parents for chunk in derived(self._store, parent, "Chunk")]

    @cached_property
    def _chunks(self) -> set[str]:
        """Those that speak of what is admitted."""
        chunks = set(self._all_chunks)
        return chunks if self._of_type is None else chunks & {p.chunk for p in self._pieces}

    @cached_property
    def _pieces(self) -> list[AdmittedPiece]:
        if self._validity is None:
            return self._all_pieces
        left_out = self._validity.left_out
        return [piece for piece in self._all_pieces if piece.iri not in left_out]

    @cached_property
    def _all_pieces(self) -> list[AdmittedPiece]:
        found = [piece for chunk in self._all_chunks for piece in self._evidence(chunk)]
        return [piece for piece in found if self._concerns(piece.subject)]

    @cached_property
    def _validity(self) -> Validity | None:
        if self._at is None:
            return None
        evidence = dict.fromkeys(piece.iri for piece in self._all_pieces)
        return Validity(self._store, self._at, evidence)

    def untimely(self) -> str:
        """What was left out because it doesn't hold on these days, in words; empty where nobody
        asked for that."""
        if self._validity is None:
            return ""
        if not self._validity.is_dated:
            return "no claim has a date, so that nothing was left out."
        gone = {piece.subject for piece in self._all_pieces} - {p.subject for p in self._pieces}
        counts = (
            many(sum(subject.startswith(prefix) for subject in gone), what)
            for prefix, what in ((_CLAIM, "claim"), (_EDGE, "fact"))
        )
        return f"{' and '.join(counts)} of other times were left out."

    def _evidence(self, chunk: str) -> Iterator[AdmittedPiece]:
        for evidence in derived(self._store, chunk, "Evidence"):
            node = NamedNode(evidence)
            described = tuple(self._values(node, _DESCRIPTION, v.SOURCE_GRAPH))
            for predicate in _OF:
                for said in self._values(node, predicate, v.SOURCE_GRAPH):
                    for subject in self._known(said):
                        yield AdmittedPiece(evidence, chunk, subject, described)

    def _known(self, said: str) -> list[str]:
        """What knowledge has for a statement's subject as a text has it: itself, or what it was
        merged into."""
        if said.startswith(_EDGE):
            quads = self._store.match(None, v.tg("original"), NamedNode(said), v.KNOWLEDGE_GRAPH)
            merged = [text_of(quad.subject) for quad in quads]
            return merged or [said]
        return [self._canonical.get(said, said)]

    @cached_property
    def _canonical(self) -> dict[str, str]:
        """The names that are merged into others."""
        found = {}
        for quad in self._store.match(None, v.tg("absorbed"), None, v.SOURCE_GRAPH):
            if not self._ended(text_of(quad.subject)):
                for entity in self._values(quad.subject, v.tg("canonical"), v.SOURCE_GRAPH):
                    found[text_of(quad.object)] = entity
        return found

    def _ended(self, subject: str) -> bool:
        times = self._values(NamedNode(subject), v.prov("invalidatedAtTime"), v.SOURCE_GRAPH)
        return next(times, None) is not None

    def _concerns(self, subject: str) -> bool:
        """Whether the entity, or one in which the edge or claim stands, is of a type asked for."""
        if self._of_type is None:
            return True
        if subject.startswith(_EDGE):
            return any(end in self._of_type for end in self._ends_of(subject))
        if subject.startswith(_CLAIM):
            node = NamedNode(subject)
            about = [v.tg("subject"), v.tg("object")]
            said = (e for p in about for e in self._values(node, p, v.KNOWLEDGE_GRAPH))
            return any(entity in self._of_type for entity in said)
        return subject in self._of_type

    def _ends_of(self, edge: str) -> list[str]:
        triple = self._triples(edge)
        if triple is None:
            return []
        return [end.value for end in (triple.subject, triple.object) if isinstance(end, NamedNode)]

    def _triples(self, edge: str) -> Triple | None:
        quads = self._store.match(NamedNode(edge), v.RDF_REIFIES, None, v.SOURCE_GRAPH)
        return next((q.object for q in quads if isinstance(q.object, Triple)), None)

    def _subjects(self, kind: str) -> set[str]:
        return {piece.subject for piece in self._pieces if _kind(piece.subject) == kind}

    @cached_property
    def _edges(self) -> set[str]:
        return self._subjects("edge")

    @cached_property
    def _entities(self) -> set[str]:
        ends = self._ends if self._of_type is None else self._ends & self._of_type
        return self._subjects("entity") | ends

    @cached_property
    def _ends(self) -> set[str]:
        return {end for edge in self._edges for end in self._ends_of(edge) if self._is_entity(end)}

    def _is_entity(self, end: str) -> bool:
        return next(self._store.match(NamedNode(end), v.RDF_TYPE, _ENTITY), None) is not None

    @cached_property
    def _descriptions(self) -> dict[str, list[str]]:
        found: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for piece in self._pieces:
            found[piece.subject].update(dict.fromkeys(filter(None, piece.described)))
        return {subject: list(texts) for subject, texts in found.items()}

    # --- its quads ---

    def _sources(self) -> Iterator[Quad]:
        for document in self._documents:
            yield from self._about(document, v.SOURCE_GRAPH)
            for page in derived(self._store, document, "Page"):
                yield from self._about(page, v.SOURCE_GRAPH)
            node = NamedNode(document)
            for quad in self._store.match(None, v.prov("specializationOf"), node, v.SOURCE_GRAPH):
                yield from self._about(text_of(quad.subject), v.SOURCE_GRAPH)
        for chunk in self._chunks:
            yield from self._about(chunk, v.SOURCE_GRAPH)
            yield from self._about(chunk, v.KNOWLEDGE_GRAPH)
            for context in self._values(NamedNode(chunk), v.tg("context")):
                yield from self._about(context, v.SOURCE_GRAPH)

    def _edge(self, edge: str) -> Iterator[Quad]:
        triple = self._triples(edge)
        if triple is None:
            return
        asserted = Quad(triple.subject, triple.predicate, triple.object, v.KNOWLEDGE_GRAPH)
        if next(self._store.match(asserted.subject, asserted.predicate, asserted.object), None):
            yield asserted
            yield from self._described(edge)
            for original in [edge, *self._values(NamedNode(edge), v.tg("original"))]:
                node = NamedNode(original)
                yield from self._store.match(node, v.RDF_REIFIES, None, v.SOURCE_GRAPH)

    def _entity(self, entity: str) -> Iterator[Quad]:
        """What knowledge says of it beside statements; what only is the other end of an edge is
        no entity here, and has its label and types alone."""
        whole = entity in self._entities
        for quad in self._described(entity):
            named = quad.predicate in (v.RDF_TYPE, v.RDFS_LABEL) and quad.object != _ENTITY
            if not v.is_statement(quad.predicate) and (whole or named):
                yield quad

    def _described(self, subject: str) -> Iterator[Quad]:
        """What knowledge says of it; a description that rests on more than is admitted gives way to
        those that are."""
        own = self._descriptions.get(subject, [])
        told = False
        for quad in self._about(subject, v.KNOWLEDGE_GRAPH):
            if quad.predicate != _DESCRIPTION or text_of(quad.object) in own:
                yield quad
                told = told or quad.predicate == _DESCRIPTION
        if own and not told:
            node, text = NamedNode(subject), Literal(" ".join(own))
            yield Quad(node, _DESCRIPTION, text, v.KNOWLEDGE_GRAPH)

    def _merges(self) -> Iterator[Quad]:
        for entity in self._entities:
            merges = self._store.match(None, v.tg("canonical"), NamedNode(entity), v.SOURCE_GRAPH)
            for quad in merges:
                yield from self._about(text_of(quad.subject), v.SOURCE_GRAPH)

    def _classes(self) -> Iterator[Quad]:
        for kind in ("Relation", "EntityType"):
            for quad in self._store.match(None, v.RDF_TYPE, v.tg(kind), v.KNOWLEDGE_GRAPH):
                yield from self._about(text_of(quad.subject), v.KNOWLEDGE_GRAPH)

    # --- communities and their reports ---

    def _communities(self) -> Iterator[Quad]:
        """Those that an admitted entity is in, with such members only."""
        for quad in self._store.match(None, v.RDF_TYPE, v.tg("Community"), v.KNOWLEDGE_GRAPH):
            about = list(self._about(text_of(quad.subject), v.KNOWLEDGE_GRAPH))
            kept = [
                q
                for q in about
                if q.predicate != v.tg("member") or text_of(q.object) in self._entities
            ]
            if any(q.predicate == v.tg("member") for q in kept):
                yield from kept

    def _reports(self) -> Iterator[Quad]:
        places = {piece.iri for piece in self._pieces}
        for quad in self._store.match(None, v.RDF_TYPE, v.tg("CommunityReport"), v.KNOWLEDGE_GRAPH):
            yield from self._report(text_of(quad.subject), places)

    def _report(self, report: str, places: set[str]) -> Iterator[Quad]:
        """The report with the findings that rest on admitted evidence alone. Where it rests on more
        as a whole, the findings' headings take the place of its summary."""
        node = NamedNode(report)
        findings = [
            finding
            for finding in self._values(node, v.tg("finding"))
            if (rests := ways_of(self._store, finding)) and rests.keys() <= places
        ]
        if not findings:
            return
        whole = ways_of(self._store, report).keys() <= places
        for quad in self._about(report, v.KNOWLEDGE_GRAPH):
            left_out = quad.predicate == v.tg("finding") and text_of(quad.object) not in findings
            if not left_out and (whole or quad.predicate not in _SAID_OF_ALL):
                yield quad
        if not whole:
            said = " ".join(
                text for f in findings for text in self._values(NamedNode(f), v.tg("summaryText"))
            )
            yield Quad(node, v.tg("summaryText"), Literal(said), v.KNOWLEDGE_GRAPH)
            yield Quad(node, v.tg("ratingExplanation"), Literal(""), v.KNOWLEDGE_GRAPH)
        yield from self._grounds(report)
        for finding in findings:
            yield from self._about(finding, v.KNOWLEDGE_GRAPH)
            yield from self._grounds(finding)

    def _grounds(self, part: str) -> Iterator[Quad]:
        """The way from a report or finding to its evidence."""
        for step in {step for way in ways_of(self._store, part).values() for step in way}:
            yield from self._store.match(NamedNode(step), _DERIVED, None, v.SOURCE_GRAPH)

    # --- the tree of summaries ---

    def _summaries(self) -> Iterator[Quad]:
        """Those that rest on admitted chunks alone."""
        tree = standing_tree(self._store)
        for summary in tree:
            if ways_down(tree, summary).keys() <= self._chunks:
                yield from self._about(summary, v.KNOWLEDGE_GRAPH)
                yield from self._about(summary, v.SOURCE_GRAPH)

    # --- reading ---

    def _about(self, subject: str, graph: object) -> Iterator[Quad]:
        return self._store.match(NamedNode(subject), None, None, graph)  # type: ignore[arg-type]

    def _values(
        self, subject: object, predicate: NamedNode, graph: object = v.KNOWLEDGE_GRAPH
    ) -> Iterator[str]:
        quads = self._store.match(subject, predicate, None, graph)  # type: ignore[arg-type]
        return (text_of(quad.object) for quad in quads)


_EDGE, _CLAIM = f"{v.URN}edge:", f"{v.URN}claim:"
_SAID_OF_ALL = (v.tg("summaryText"), v.tg("ratingExplanation"))


def _kind(subject: str) -> str:
    """What evidence that speaks of the subject is of."""
    return (
        "edge" if subject.startswith(_EDGE) else "claim" if subject.startswith(_CLAIM) else "entity"
    )


# --- narrowing ---


KEPT = 4
"""Copies that are kept of one state."""


def narrowed(context: Context, filters: Filters) -> Context:
    """The context that sees only what the filters admit. ``UsageError`` as for its parts.

    The state is copied, as far as it is admitted, and every mode reads the copy: so nothing from
    outside can come back in any mode. A copy costs what it holds, and is kept for the next
    question.
    """
    if not filters:
        return context
    found = context.remembered("narrowed", KEPT).get(filters, lambda: _narrow(context, filters))
    assert isinstance(found, Context)
    return replace(found, sink=context.sink)


def is_empty(context: Context) -> bool:
    """Whether there is nothing at all to answer from."""
    chunks = context.store.match(None, v.RDF_TYPE, v.tg("Chunk"), v.SOURCE_GRAPH)
    return next(chunks, None) is None


def _narrow(context: Context, filters: Filters) -> Context:
    documents = admitted_documents(filters, context.store)
    if filters.languages:
        documents = in_languages(documents, filters.languages, context.store, context.texts)
    entities = admitted_entities(filters, context.store)
    admitted = Admitted(context.store, documents, entities, valid_span(filters))
    store = OxigraphStore.memory(admitted.quads())
    untimely = admitted.untimely()
    note = (f"Valid at {filters.valid_at}: {untimely}",) if untimely else ()
    texts = context.texts.over(store)
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
    )


class NarrowedVectors(Mapping[str, "VectorIndex"]):
    """The vectors of what a narrowed store holds, taken from those of the whole state."""

    def __init__(self, whole: Context, store: Store) -> None:
        self._whole = whole
        self._store = store
        self._sets: dict[str, VectorIndex] = {}

    def __getitem__(self, kind: str) -> VectorIndex:
        if kind not in self._sets:
            whole = self._whole.vectors[kind]
            texts = self._whole.texts.over(self._store)
            places = stored_evidence(self._store, texts, self._whole.doubt)
            items = items_of(kind, self._store, texts.librarian, places)
            self._sets[kind] = vector_store().build_vectors(
                kind, items, self._whole.embedder, whole, exact=True
            )
        return self._sets[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(KINDS)

    def __len__(self) -> int:
        return len(KINDS)
