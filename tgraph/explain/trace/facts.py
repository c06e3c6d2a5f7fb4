"""Facts of knowledge by human-readable names: facts about an entity, and lookup of a single
fact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pyoxigraph import Literal, NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.errors import UnknownNameError, UsageError
from tgraph.explain.trace.entities import EntityMerges
from tgraph.extract.resolution import name_key
from tgraph.index.sources import document_of_chunk, is_note, standing_documents
from tgraph.index.standing_knowledge import StandingEvidence, term_value
from tgraph.index.stored_graph import StoredGraph
from tgraph.retrieve.labels import labels_of, object_label
from tgraph.store.base import Store, text_of
from tgraph.store.statements import edge_of

_EDGE = f"{v.URN}edge:"
_SHORTEST = 4
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class KnownFact:
    """An edge of knowledge.

    ``object`` is an IRI, or a literal in N-Triples form; ``documents`` counts supporting
    documents, ``by_hand`` tells whether a person states the fact."""

    edge: str
    subject: str
    subject_label: str
    predicate: str
    predicate_label: str
    object: str
    object_label: str
    weight: float
    description: str
    documents: int
    by_hand: bool

    @property
    def text(self) -> str:
        return f"{self.subject_label} — {self.predicate_label} — {self.object_label}"


class Facts:
    """Reader for facts in one store state."""

    def __init__(self, store: Store) -> None:
        self.entities = EntityMerges(store)
        self._store = store
        self._standing = standing_documents(store)
        self._texts = StandingEvidence(
            store, lambda chunk: document_of_chunk(chunk) in self._standing
        )

    # --- entities ---

    def entity(self, name: str) -> str:
        """Return the knowledge entity for a name or IRI. Raise ``UsageError`` if none exists."""
        entity = self.find_entity(name)
        if entity is None:
            entity = self.entities.find(name)  # which says what may be meant
            raise UnknownNameError(
                f"{self.label(entity)!r} is not in the graph any more.",
                "No document in use names the entity, or the entity was deleted: see `tgraph "
                "curations list`.",
            )
        return entity

    def find_entity(self, name: str) -> str | None:
        """Return an entity like ``entity`` does, but None if missing.

        Raise ``UsageError`` if several entities are possible."""
        labelled = [e for e in self._find_subjects(v.RDFS_LABEL, name) if self._is_entity(e)]
        if len(labelled) == 1:
            return labelled[0]
        if name != v.entity_iri("") and self._is_entity(name):
            return name
        try:
            canonical = self.entities.canonical(self.entities.find(name))
        except UsageError as error:
            if "may be any of" in error.message:
                raise
            return None
        return canonical if self._is_entity(canonical) else None

    def members(self, entity: str) -> list[str]:
        """Return the entity plus its absorbed text names."""
        absorbed = (m.absorbed for m in self.entities.merges() if m.canonical == entity)
        return [entity, *sorted(absorbed)]

    def claims_alias(self, entity: str, name: str) -> bool:
        """Tell whether a standing document calls the entity by this alias."""
        key = name_key(name)
        evidence = (e for member in self.members(entity) for e in self._texts.of_entity(member))
        return any(term.value == key for item in evidence for term in item.get("aliasKey", ()))

    def label(self, entity: str) -> str:
        """Return an entity's knowledge label, otherwise its text name."""
        node = NamedNode(entity)
        for quad in self._store.match(node, v.RDFS_LABEL, None, v.KNOWLEDGE_GRAPH):
            return text_of(quad.object)
        return self.entities.name(entity)

    def _find_subjects(self, predicate: NamedNode, text: str) -> list[str]:
        quads = self._store.match(None, predicate, Literal(text), v.KNOWLEDGE_GRAPH)
        return sorted(text_of(quad.subject) for quad in quads)

    def _is_entity(self, iri: str) -> bool:
        try:
            pattern = NamedNode(iri), v.RDF_TYPE, v.tg("Entity"), v.KNOWLEDGE_GRAPH
        except ValueError:
            return False
        return next(self._store.match(*pattern), None) is not None

    # --- relations ---

    def relation(self, name: str) -> NamedNode:
        """Return the relation matching a label or IRI; new names receive their future IRI."""
        labelled = [
            relation
            for relation in self._find_subjects(v.RDFS_LABEL, name)
            if next(
                self._store.match(
                    NamedNode(relation), v.RDF_TYPE, v.tg("Relation"), v.KNOWLEDGE_GRAPH
                ),
                None,
            )
        ]
        if len(labelled) == 1:
            return NamedNode(labelled[0])
        return NamedNode(name if name.startswith(v.relation_iri("")) else v.relation_iri(name))

    # --- facts ---

    def read_facts_about(self, entity: str) -> list[KnownFact]:
        """Return facts with the entity as subject or object, sorted by text."""
        node = NamedNode(entity)
        ends = ((node, None), (None, node))
        triples = {
            quad.triple
            for subject, obj in ends
            for quad in self._store.match(subject, None, obj, v.KNOWLEDGE_GRAPH)
            if v.is_statement(quad.predicate) and self._is_edge(quad.triple)
        }
        facts = self._create_facts(triples)
        return sorted(facts, key=lambda fact: (fact.text, fact.edge))

    def find(self, names: Sequence[str]) -> KnownFact:
        """Return a fact by edge IRI or its beginning, or by subject, predicate and object.

        Raise ``UsageError`` if none or several match."""
        triples = self._by_names(*names) if len(names) == 3 else self._by_iri(" ".join(names))
        if len(triples) == 1:
            return next(iter(self._create_facts(triples)))
        fact_name = " — ".join(names)
        if not triples:
            near = self._facts_between(*names) if len(names) == 3 else []
            nearby_facts = "; ".join(f"{fact.text} ({fact.edge})" for fact in near[:_SHOWN])
            raise UnknownNameError(
                f"There is no fact {fact_name!r} in the graph.",
                f"There is: {nearby_facts}."
                if near
                else "`tgraph facts list ENTITY` lists the facts about an entity with ids.",
            )
        facts = self._create_facts(triples)
        fact_list = "; ".join(f"{fact.text} ({fact.edge})" for fact in facts[:_SHOWN])
        raise UsageError(
            f"{fact_name!r} may be any of {len(facts)} facts: {fact_list}.", "Give its id."
        )

    def _by_names(self, subject: str, predicate: str, obj: str) -> set[Triple]:
        subject_iri, object_iri = self.entity(subject), self.find_entity(obj)
        relation = self.relation(predicate)
        return {
            quad.triple
            for quad in self._store.match(NamedNode(subject_iri), relation, None, v.KNOWLEDGE_GRAPH)
            if term_value(quad.object) in (obj, object_iri) and self._is_edge(quad.triple)
        }

    def _facts_between(self, subject: str, predicate: str, obj: str) -> list[KnownFact]:
        """Return stated facts linking two entities."""
        ends = {self.find_entity(subject), self.find_entity(obj)} - {None}
        entity_facts = self.read_facts_about(self.entity(subject))
        return [fact for fact in entity_facts if {fact.subject, fact.object} == ends]

    def _by_iri(self, name: str) -> set[Triple]:
        digest = name.removeprefix(_EDGE).lower()
        if len(digest) < _SHORTEST:
            raise UsageError(f"{name!r} is too short for the beginning of an id.")
        beginning = f"{_EDGE}{digest}"
        exact_edge = next(iter(self._known_triples([beginning])), None)
        if exact_edge is not None:
            return {exact_edge}
        quads = self._store.match(None, v.RDF_TYPE, v.tg("Edge"), v.KNOWLEDGE_GRAPH)
        return self._known_triples(
            e for q in quads if (e := text_of(q.subject)).startswith(beginning)
        )

    def _known_triples(self, edges: Iterable[str]) -> set[Triple]:
        triples = (self._texts.triple(edge) for edge in edges)
        return {triple for triple in triples if triple is not None and self._is_edge(triple)}

    def _is_edge(self, triple: Triple) -> bool:
        pattern = NamedNode(edge_of(triple)), v.RDF_TYPE, v.tg("Edge"), v.KNOWLEDGE_GRAPH
        return next(self._store.match(*pattern), None) is not None

    def _create_facts(self, triples: Iterable[Triple]) -> list[KnownFact]:
        ordered = sorted(triples, key=str)
        nodes = {term for triple in ordered for term in triple if isinstance(term, NamedNode)}
        labels = labels_of(StoredGraph(self._store), nodes)
        return [self._create_fact(triple, labels) for triple in ordered]

    def _create_fact(self, triple: Triple, labels: dict[NamedNode, str]) -> KnownFact:
        subject, predicate, obj = triple
        assert isinstance(subject, NamedNode)
        assert isinstance(obj, NamedNode | Literal)
        edge = edge_of(triple)
        documents = self._source_documents(edge)
        return KnownFact(
            edge,
            subject.value,
            labels[subject],
            predicate.value,
            labels[predicate],
            term_value(obj) if isinstance(obj, NamedNode) else str(obj),
            object_label(obj, labels),
            float(self._read_values(edge, "weight") or 0),
            self._read_values(edge, "description"),
            sum(not is_note(self._store, document) for document in documents),
            any(is_note(self._store, document) for document in documents),
        )

    def triple(self, fact: KnownFact) -> Triple:
        """What the fact's edge reifies."""
        triple = self._texts.triple(fact.edge)
        assert triple is not None
        return triple

    def originals(self, fact: KnownFact) -> dict[str, Triple]:
        """Return the fact's edge, and its original edges in texts under other names."""
        edges = [fact.edge, *self._original_edges(fact.edge)]
        triples = ((edge, self._texts.triple(edge)) for edge in edges)
        return {edge: triple for edge, triple in triples if triple is not None}

    def _original_edges(self, edge: str) -> Iterator[str]:
        node = NamedNode(edge)
        for quad in self._store.match(node, v.tg("original"), None, v.KNOWLEDGE_GRAPH):
            yield term_value(quad.object)

    def _source_documents(self, edge: str) -> set[str]:
        evidence = (
            e for text in (edge, *self._original_edges(edge)) for e in self._texts.of_edge(text)
        )
        return {document_of_chunk(item["wasDerivedFrom"][0].value) for item in evidence}

    def _read_values(self, edge: str, name: str) -> str:
        quads = self._store.match(NamedNode(edge), v.tg(name), None, v.KNOWLEDGE_GRAPH)
        return " ".join(sorted(term_value(quad.object) for quad in quads))
