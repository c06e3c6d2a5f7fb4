"""Lookup of expected content by IRI, path, name, fact or text."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Literal as Choice

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.explain.as_of.corpus import Accession, CorpusAsOf, DocumentPlace, span_of, spans_overlap
from tgraph.explain.as_of.names import values_of
from tgraph.explain.trace.bundle_reader import kind_of
from tgraph.explain.trace.derivation import DisplayNames
from tgraph.extract.resolution import name_key
from tgraph.index.sources import (
    chunks_of_document,
    derived_items,
    document_of_chunk,
    range_of_chunk,
    text_value,
)
from tgraph.index.standing_knowledge import StandingEvidence, commonest_value
from tgraph.index.stored_graph import StoredGraph
from tgraph.record.merges import standing_merges
from tgraph.retrieve.entity_matching import match_names
from tgraph.retrieve.labels import Triple, local_name, read_reified_edges
from tgraph.retrieve.subgraph import all_edges
from tgraph.retrieve.text.lexical import STOP_WORDS, terms
from tgraph.store.base import Store, match_record

_WORD = re.compile(r"\w+(?:['’.\-]\w+)*\.?")
_LONGEST_NAME = 8


class NameLookup:
    """Name lookup in one store, including content no longer standing."""

    def __init__(self, store: Store) -> None:
        self.texts = StandingEvidence(store, lambda _: True)
        self.names = DisplayNames(store, lambda _: "")
        self._store = store
        self._merges = standing_merges(store)

    def entities_called(self, name: str) -> set[str]:
        """Return entities matching a name exactly, otherwise entities matching the alias."""
        key = name_key(name)
        alike = self.texts.entities_with(key)
        exact = {e for e in alike if key in self.keys(e)}
        matched = match_names(name, StoredGraph(self._store))
        labelled = {e for e in matched if name_key(self.names.recalled.entity(e)) == key}
        return (exact | labelled) or alike or set(matched)

    def keys(self, entity: str) -> set[str]:
        return {
            term.value for item in self.texts.of_entity(entity) for term in item.get("nameKey", ())
        }

    def named_in(self, text: str) -> Iterator[tuple[str, set[str]]]:
        """The entities that a text names, the longest names first taken."""
        words = [(m.start(), m.end()) for m in _WORD.finditer(text)]
        place = 0
        while place < len(words):
            for length in range(min(_LONGEST_NAME, len(words) - place), 0, -1):
                name = text[words[place][0] : words[place + length - 1][1]]
                if length == 1 and name.casefold() in STOP_WORDS:
                    continue
                entities = self.entities_called(name) or self.entities_called(name.rstrip("."))
                if entities:
                    yield name, entities
                    place += length - 1
                    break
            place += 1

    def find_edges_between(self, entities: set[str], others: set[str]) -> dict[str, str]:
        """Return edges between two entity sets, with predicate text."""
        merged_others = self.expand_merges(others)
        return {
            edge: in_words(triple[1].value)
            for edge, triple in self.edges_of(self.expand_merges(entities)).items()
            if merged_others & {triple[0].value, triple[2].value}
        }

    def edges_of(self, entities: set[str]) -> dict[str, Triple]:
        """Return edges touching the entities, both knowledge edges and text edges."""
        edges: dict[str, Triple] = {}
        for entity in sorted(self.expand_merges(entities)):
            edges |= all_edges(entity, self._store)
            for triple in self.texts.edges_naming(entity).values():
                s, p, o = triple.subject, triple.predicate, triple.object
                if isinstance(s, NamedNode) and isinstance(o, NamedNode | Literal):
                    edges[v.edge_iri(s, p, o)] = (s, p, o)
        return edges

    def expand_merges(self, entities: Iterable[str]) -> set[str]:
        """Return entities with their canonical entities, plus all entities merged into these."""
        canonical = {self._merges.get(entity, entity) for entity in entities}
        return canonical | {a for a, c in self._merges.items() if c in canonical} | set(entities)

    def iterate_successors(self, edge: str) -> Iterator[str]:
        for quad in self._store.match(None, v.tg("mergedFrom"), NamedNode(edge), v.SOURCE_GRAPH):
            if isinstance(quad.subject, NamedNode):
                yield quad.subject.value

    def stated_by(self, evidence: Iterable[str]) -> frozenset[str]:
        """Return edges stated by evidence, including their current IRIs after merges."""
        edges = {text_value(self._store, item, v.tg("edge")) for item in evidence} - {""}
        return frozenset(
            edges
            | {current_edge for edge in edges for current_edge in self.iterate_successors(edge)}
        )

    def evidence_for(self, role: str, subjects: Iterable[str]) -> list[str]:
        return [
            quad.subject.value
            for subject in sorted(subjects)
            for quad in self._store.match(None, v.tg(role), NamedNode(subject), v.SOURCE_GRAPH)
            if isinstance(quad.subject, NamedNode) and kind_of(quad.subject.value) == "evidence"
        ]

    def names_of(self, entities: Iterable[str]) -> list[str]:
        """Return entity names in texts: names, plus mentions made of name words."""
        names_found: dict[str, None] = {}
        for entity in sorted(entities):
            for item in self.texts.of_entity(entity):
                names = [term.value for term in item.get("name", ())]
                name_words = set(terms(" ".join(names)))
                mentions = [term.value for term in item.get("quote", ())]
                parts = [m for m in mentions if terms(m) and name_words.issuperset(terms(m))]
                names_found.update(dict.fromkeys([*names, *parts]))
            aliases = values_of(self._store, entity, v.SKOS_ALT_LABEL, v.KNOWLEDGE_GRAPH)
            names_found.update(dict.fromkeys(aliases))
        return list(names_found)

    def label_of(self, entities: set[str]) -> str:
        for entity in sorted(self.expand_merges(entities)):
            if label := self.names.recalled.entity(entity):
                return label
        labels = [
            commonest_value(self.texts.of_entity(entity), "name") for entity in sorted(entities)
        ]
        return next(filter(None, labels), in_words(min(entities)))

    def chunks_at(self, place: DocumentPlace) -> list[str]:
        parent = v.page_of(place.document, place.page)
        return [
            chunk
            for chunk in sorted(derived_items(self._store, parent, "Chunk"))
            if range_of_chunk(chunk)[0] < place.end and place.start < range_of_chunk(chunk)[1]
        ]


def in_words(iri: str) -> str:
    """A relation's or entity's IRI in words."""
    return local_name(iri).replace("-", " ")


ExpectedKind = Choice["entity", "fact", "chunk", "document", "text", "item"]

_PARTS = re.compile(r"\s+(?:—|–|-|->|→|\|)\s+")
_MOST_PLACES = 200


@dataclass(frozen=True, slots=True)
class Expected:
    """Expected content: candidate IRIs in a record, and document places.

    ``names`` are required text names, one of each group. ``evidence`` was extracted from
    standing documents before the session, ``later`` is other evidence. For facts named in words
    and for texts, ``places`` are their positions."""

    kind: ExpectedKind
    label: str
    iris: frozenset[str] = frozenset()
    names: tuple[tuple[str, ...], ...] = ()
    entities: frozenset[str] = frozenset()
    edges: frozenset[str] = frozenset()
    claims: frozenset[str] = frozenset()
    chunks: frozenset[str] = frozenset()
    documents: frozenset[str] = frozenset()
    evidence: frozenset[str] = frozenset()
    later: frozenset[str] = frozenset()
    places: tuple[DocumentPlace, ...] = field(default=(), repr=False)

    @property
    def in_items(self) -> frozenset[str]:
        """All IRIs naming the expected content as edge or item."""
        return self.iris | self.entities | self.edges | self.claims | self.chunks

    @property
    def is_place(self) -> bool:
        """Whether the expected content is a document or chunk, regardless of text."""
        return self.kind in ("chunk", "document")

    @property
    def is_known(self) -> bool:
        """Whether any expected content exists."""
        return bool(self.in_items or self.documents or self.evidence or self.places)


class ExpectedFinder:
    """Finder for expected content in a store as known to a session."""

    def __init__(self, earlier: CorpusAsOf) -> None:
        self._earlier = earlier
        self._store = earlier.store
        self._look = NameLookup(earlier.store)

    def find(self, wanted: str) -> Expected:
        """Return the content meant by an IRI, path, name, fact (``subject — predicate —
        object``, or a sentence naming both ends) or document text.

        Unknown words become a text."""
        text = " ".join(wanted.split())
        for way in (self._by_iri, self._by_path, self._by_name, self._by_fact, self._by_text):
            expected = way(text)
            if expected is not None:
                return expected
        return self._by_title(text) or Expected("text", text, names=((text,),))

    # --- ways ---

    def _by_iri(self, text: str) -> Expected | None:
        if not text.startswith(v.URN):
            return None
        kind = kind_of(text)
        if kind == "entity":
            return self.entity({text})
        if kind == "edge":
            return self.fact(self._look.names.display_name(text), {text})
        if kind == "chunk":
            return self._create_from_chunks("chunk", self._look.names.display_name(text), [text])
        if kind in ("document", "page"):
            document = v.document_iri(text.split(":")[3])
            return self._create_document(
                [a for a in self._earlier.accessions if a.document == document]
            )
        if kind == "evidence":
            edge = text_value(self._store, text, v.tg("edge"))
            entity = text_value(self._store, text, v.tg("entity"))
            if edge:
                return self.fact(self._look.names.display_name(edge), {edge})
            if entity:
                return self.entity({entity})
        node = NamedNode(text)
        known = self._store.match(node, None, None, v.KNOWLEDGE_GRAPH)
        exists = next(chain(known, match_record(self._store, node)), None) is not None
        evidence = self._look.evidence_for("claim", [text]) if kind == "claim" else []
        iris = frozenset({text} if exists else ())
        return self._with_evidence(
            Expected("item", self._look.names.display_name(text), iris), evidence
        )

    def _by_path(self, text: str) -> Expected | None:
        path, absolute_path = os.path.normpath(text), os.path.abspath(text)  # noqa: PTH100
        accessions = [
            a
            for a in self._earlier.accessions
            if a.path == text
            or os.path.normpath(a.path) == path
            or os.path.abspath(a.path) == absolute_path  # noqa: PTH100
            or ("." in path and (a.path.endswith(f"/{path}") or path.endswith(f"/{a.path}")))
        ]
        return self._create_document(accessions) if accessions else None

    def _by_title(self, text: str) -> Expected | None:
        accessions = [a for a in self._earlier.accessions if a.title.casefold() == text.casefold()]
        return self._create_document(accessions) if accessions else None

    def _by_name(self, text: str) -> Expected | None:
        entities = self._look.entities_called(text)
        if not entities:
            return None
        expected = self.entity(entities)
        return replace(expected, names=tuple((*group, text) for group in expected.names))

    def _by_fact(self, text: str) -> Expected | None:
        parts = _PARTS.split(text)
        if len(parts) == 3:
            subject, predicate, obj = parts
            return self._fact_of(text, self._look.entities_called(subject), obj, predicate)
        named_entities = list(self._look.named_in(text))
        if len(named_entities) < 2:
            return None
        matching_edges: set[str] = set()
        text_words = frozenset(terms(text))
        for place, (name, entities) in enumerate(named_entities):
            for other_name, other_entities in named_entities[place + 1 :]:
                edges = self._look.find_edges_between(entities, other_entities)
                verb = text_words - set(terms(f"{name} {other_name}"))
                matching_edges |= {
                    e for e, label in edges.items() if not verb or verb & set(terms(label))
                }
        if matching_edges:
            return self.fact(text, matching_edges)
        ends = self._create_unstated_fact(text, (named_entities[0][0], named_entities[1][0]))
        return self._by_text(text) or (ends if ends.places else None)

    def _fact_of(self, text: str, subject: set[str], obj: str, predicate: str) -> Expected:
        """Return edges matching subject, predicate and object; otherwise places naming both
        ends."""
        objects = self._look.entities_called(obj)
        predicate_words, key = set(terms(predicate)), name_key(obj)
        edges = set()
        for edge, triple in self._look.edges_of(subject).items():
            end = triple[2]
            is_end = (
                name_key(end.value) == key if isinstance(end, Literal) else end.value in objects
            )
            is_called = not predicate_words or predicate_words & set(
                terms(in_words(triple[1].value))
            )
            if is_end and is_called and triple[0].value in subject:
                edges.add(edge)
        ends = (_PARTS.split(text)[0], obj)
        return self.fact(text, edges) if edges else self._create_unstated_fact(text, ends)

    def _by_text(self, text: str) -> Expected | None:
        places = tuple(islice(self._earlier.find((text,)), _MOST_PLACES))
        return self._create_text(text, places) if places else None

    # --- what they find ---

    def entity(self, entities: set[str]) -> Expected:
        """Return an entity with all merged names, edges and claims."""
        merged_entities = self._look.expand_merges(entities)
        evidence = self._look.evidence_for("entity", merged_entities)
        spoken = self._look.names_of(merged_entities)
        label = self._look.label_of(entities)
        roles = [self._look.texts.claims_naming(entity) for entity in sorted(merged_entities)]
        expected = Expected(
            "entity",
            label,
            names=(tuple(dict.fromkeys([label, *spoken])),),
            entities=frozenset(merged_entities),
            edges=frozenset(self._look.edges_of(merged_entities)),
            claims=frozenset(claim for claims in roles for claim in claims),
        )
        return self._with_evidence(expected, evidence)

    def fact(self, label: str, edges: set[str]) -> Expected:
        """Return a fact: equivalent edges plus edges merged into these."""
        merged_edges = set(edges)
        for edge in edges:
            merged_edges |= set(self._look.texts.merged_into(edge)) | set(
                self._look.iterate_successors(edge)
            )
        edges_by_iri = read_reified_edges(StoredGraph(self._store), sorted(merged_edges))
        ends = list(
            dict.fromkeys((edge.subject_label, edge.object_label) for edge in edges_by_iri.values())
        )
        names = tuple((name,) for name in ends[0]) if ends else ()
        expected = Expected("fact", label, names=names, edges=frozenset(edges_by_iri))
        return self._with_evidence(expected, self._look.evidence_for("edge", edges_by_iri))

    def _create_unstated_fact(self, label: str, ends: tuple[str, str]) -> Expected:
        """Return a fact stated by no edge; its places are sentences naming both ends."""
        end_words = [set(terms(end)) for end in ends]
        places = []
        for place in islice(self._earlier.find((ends[0],)), _MOST_PLACES):
            sentence = self._earlier.widen_to_sentence(place)
            if all(words <= set(terms(sentence.quote)) for words in end_words):
                places.append(sentence)
        distinct = tuple(dict.fromkeys(places))
        chunks = [chunk for place in distinct for chunk in self._look.chunks_at(place)]
        names = tuple((end,) for end in ends)
        return Expected("fact", label, names=names, chunks=frozenset(chunks), places=distinct)

    def _create_document(self, accessions: list[Accession]) -> Expected:
        documents = {a.document for a in accessions}
        chunks = [c for d in sorted(documents) for c in chunks_of_document(self._store, d)]
        expected = self._create_from_chunks(
            "document", accessions[0].path if accessions else "", chunks
        )
        return replace(expected, documents=frozenset(documents))

    def _create_from_chunks(self, kind: ExpectedKind, label: str, chunks: list[str]) -> Expected:
        evidence = [e for chunk in chunks for e in derived_items(self._store, chunk, "Evidence")]
        stated_edges = self._look.stated_by([e for e in evidence if self._earlier.knew(e)])
        stored_chunks = [c for c in chunks if text_value(self._store, c, v.RDF_TYPE)]
        documents = frozenset(document_of_chunk(chunk) for chunk in stored_chunks)
        expected = Expected(
            kind, label, chunks=frozenset(stored_chunks), documents=documents, edges=stated_edges
        )
        return self._with_evidence(expected, evidence, claims=True)

    def _create_text(self, label: str, places: tuple[DocumentPlace, ...]) -> Expected:
        chunks = {chunk: place for place in places for chunk in self._look.chunks_at(place)}
        evidence = [
            item
            for chunk in chunks
            for item in derived_items(self._store, chunk, "Evidence")
            if any(spans_overlap(span_of(item, self._store), place.span) for place in places)
        ]
        expected = Expected(
            "text",
            label,
            names=((label,),),
            chunks=frozenset(chunks),
            edges=self._look.stated_by(evidence),
            places=places,
        )
        statement_evidence = [e for e in evidence if not text_value(self._store, e, v.tg("entity"))]
        return self._with_evidence(expected, statement_evidence, claims=True)

    def _with_evidence(
        self, found: Expected, evidence: Iterable[str], *, claims: bool = False
    ) -> Expected:
        items = frozenset(evidence)
        evidence_then = frozenset(item for item in items if self._earlier.knew(item))
        chunks = {text_value(self._store, item, v.prov("wasDerivedFrom")) for item in evidence_then}
        claims_stated = (
            {text_value(self._store, e, v.tg("claim")) for e in evidence_then} - {""}
            if claims
            else ()
        )
        return replace(
            found,
            evidence=evidence_then,
            later=items - evidence_then,
            chunks=found.chunks | chunks,
            claims=found.claims | frozenset(claims_stated),
        )
