"""What a person means who missed something: looked up by IRI, path, name, fact or words."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Literal as Choice

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.explain.as_of.corpus import Accession, CorpusAsOf, DocumentPlace, overlap, span_of
from tgraph.explain.as_of.names import values_of
from tgraph.explain.trace.bundle_reader import kind_of
from tgraph.explain.trace.derivation import DisplayNames
from tgraph.extract.resolution import name_key
from tgraph.index.sources import (
    chunks_of_document,
    derived,
    document_of_chunk,
    range_of_chunk,
    text_value,
)
from tgraph.index.standing_knowledge import StandingEvidence, commonest
from tgraph.index.stored_graph import StoredGraph
from tgraph.record.merges import standing_merges
from tgraph.retrieve.entity_matching import match_names
from tgraph.retrieve.labels import Triple, local_name, reified
from tgraph.retrieve.subgraph import all_edges
from tgraph.retrieve.text.lexical import STOP_WORDS, terms
from tgraph.store.base import Store

_WORD = re.compile(r"\w+(?:['’.\-]\w+)*\.?")
_LONGEST_NAME = 8


class NameLookup:
    """Reads one store; what no longer stands is found too."""

    def __init__(self, store: Store) -> None:
        self.texts = StandingEvidence(store, lambda _: True)
        self.names = DisplayNames(store, lambda _: "")
        self._store = store
        self._merges = standing_merges(store)

    def entities_called(self, name: str) -> set[str]:
        """The entities of that name; where there are none, those with the alias."""
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
                found = self.entities_called(name) or self.entities_called(name.rstrip("."))
                if found:
                    yield name, found
                    place += length - 1
                    break
            place += 1

    def between(self, entities: set[str], others: set[str]) -> dict[str, str]:
        """The edges between the two, with their predicates in words."""
        whole = self.whole(others)
        return {
            edge: in_words(triple[1].value)
            for edge, triple in self.edges_of(self.whole(entities)).items()
            if whole & {triple[0].value, triple[2].value}
        }

    def edges_of(self, entities: set[str]) -> dict[str, Triple]:
        """The edges with one of the entities at an end, of knowledge and of the texts."""
        found: dict[str, Triple] = {}
        for entity in sorted(self.whole(entities)):
            found |= all_edges(entity, self._store)
            for triple in self.texts.edges_naming(entity).values():
                s, p, o = triple.subject, triple.predicate, triple.object
                if isinstance(s, NamedNode) and isinstance(o, NamedNode | Literal):
                    found[v.edge_iri(s, p, o)] = (s, p, o)
        return found

    def whole(self, entities: Iterable[str]) -> set[str]:
        """The entities under their canonical names, and all names that were merged into these."""
        canonical = {self._merges.get(entity, entity) for entity in entities}
        return canonical | {a for a, c in self._merges.items() if c in canonical} | set(entities)

    def became(self, edge: str) -> Iterator[str]:
        for quad in self._store.match(None, v.tg("mergedFrom"), NamedNode(edge), v.SOURCE_GRAPH):
            if isinstance(quad.subject, NamedNode):
                yield quad.subject.value

    def stated_by(self, evidence: Iterable[str]) -> frozenset[str]:
        """The edges that the evidence is for, under the names they have now too."""
        edges = {text_value(self._store, item, v.tg("edge")) for item in evidence} - {""}
        return frozenset(edges | {other for edge in edges for other in self.became(edge)})

    def evidence_for(self, role: str, subjects: Iterable[str]) -> list[str]:
        return [
            quad.subject.value
            for subject in sorted(subjects)
            for quad in self._store.match(None, v.tg(role), NamedNode(subject), v.SOURCE_GRAPH)
            if isinstance(quad.subject, NamedNode) and kind_of(quad.subject.value) == "evidence"
        ]

    def names_of(self, entities: Iterable[str]) -> list[str]:
        """What texts call the entities: their names, and mentions that are a part of one."""
        found: dict[str, None] = {}
        for entity in sorted(entities):
            for item in self.texts.of_entity(entity):
                names = [term.value for term in item.get("name", ())]
                said = set(terms(" ".join(names)))
                mentions = [term.value for term in item.get("quote", ())]
                parts = [m for m in mentions if terms(m) and said.issuperset(terms(m))]
                found.update(dict.fromkeys([*names, *parts]))
            aliases = values_of(self._store, entity, v.SKOS_ALT_LABEL, v.KNOWLEDGE_GRAPH)
            found.update(dict.fromkeys(aliases))
        return list(found)

    def label_of(self, entities: set[str]) -> str:
        for entity in sorted(self.whole(entities)):
            if label := self.names.recalled.entity(entity):
                return label
        known = [commonest(self.texts.of_entity(entity), "name") for entity in sorted(entities)]
        return next(filter(None, known), in_words(min(entities)))

    def chunks_at(self, place: DocumentPlace) -> list[str]:
        parent = v.page_of(place.document, place.page)
        return [
            chunk
            for chunk in sorted(derived(self._store, parent, "Chunk"))
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
    """What was expected: by which IRIs a record may name it, and where documents say it.

    ``names`` are what a text must contain to speak of it, one of each group. ``evidence`` is what
    had been extracted of it when the session asked, from documents that stood, ``later`` what else
    is there. Of a fact that was named in words, and of a text, ``places`` are where it stands.
    """

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
        """Every IRI under which the record may have it as an edge or item."""
        return self.iris | self.entities | self.edges | self.claims | self.chunks

    @property
    def is_place(self) -> bool:
        """Whether it is characters of a document, whatever they say."""
        return self.kind in ("chunk", "document")

    @property
    def is_known(self) -> bool:
        """Whether anything of it is there."""
        return bool(self.in_items or self.documents or self.evidence or self.places)


class ExpectedFinder:
    """Finds what is meant in a store as a session knew it."""

    def __init__(self, earlier: CorpusAsOf) -> None:
        self._earlier = earlier
        self._store = earlier.store
        self._look = NameLookup(earlier.store)

    def find(self, wanted: str) -> Expected:
        """What an IRI, a path, a name, a fact (``subject — predicate — object``, or a sentence that
        names both ends) or words of a document stand for; words that stand nowhere are a text."""
        text = " ".join(wanted.split())
        for way in (self._by_iri, self._by_path, self._by_name, self._by_fact, self._by_text):
            found = way(text)
            if found is not None:
                return found
        return self._by_title(text) or Expected("text", text, names=((text,),))

    # --- ways ---

    def _by_iri(self, text: str) -> Expected | None:
        if not text.startswith(v.URN):
            return None
        kind = kind_of(text)
        if kind == "entity":
            return self.entity({text})
        if kind == "edge":
            return self.fact(self._look.names.of(text), {text})
        if kind == "chunk":
            return self._chunks("chunk", self._look.names.of(text), [text])
        if kind in ("document", "page"):
            document = v.document_iri(text.split(":")[3])
            return self._document([a for a in self._earlier.accessions if a.document == document])
        if kind == "evidence":
            edge = text_value(self._store, text, v.tg("edge"))
            entity = text_value(self._store, text, v.tg("entity"))
            if edge:
                return self.fact(self._look.names.of(edge), {edge})
            if entity:
                return self.entity({entity})
        known = next(self._store.match(NamedNode(text), None, None, None), None) is not None
        evidence = self._look.evidence_for("claim", [text]) if kind == "claim" else []
        iris = frozenset({text} if known else ())
        return self._with_evidence(Expected("item", self._look.names.of(text), iris), evidence)

    def _by_path(self, text: str) -> Expected | None:
        path, whole = os.path.normpath(text), os.path.abspath(text)  # noqa: PTH100
        found = [
            a
            for a in self._earlier.accessions
            if a.path == text
            or os.path.normpath(a.path) == path
            or os.path.abspath(a.path) == whole  # noqa: PTH100
            or ("." in path and (a.path.endswith(f"/{path}") or path.endswith(f"/{a.path}")))
        ]
        return self._document(found) if found else None

    def _by_title(self, text: str) -> Expected | None:
        found = [a for a in self._earlier.accessions if a.title.casefold() == text.casefold()]
        return self._document(found) if found else None

    def _by_name(self, text: str) -> Expected | None:
        entities = self._look.entities_called(text)
        if not entities:
            return None
        found = self.entity(entities)
        return replace(found, names=tuple((*group, text) for group in found.names))

    def _by_fact(self, text: str) -> Expected | None:
        parts = _PARTS.split(text)
        if len(parts) == 3:
            subject, predicate, obj = parts
            return self._fact_of(text, self._look.entities_called(subject), obj, predicate)
        named = list(self._look.named_in(text))
        if len(named) < 2:
            return None
        found: set[str] = set()
        said = frozenset(terms(text))
        for place, (name, entities) in enumerate(named):
            for other, others in named[place + 1 :]:
                edges = self._look.between(entities, others)
                verb = said - set(terms(f"{name} {other}"))
                found |= {e for e, label in edges.items() if not verb or verb & set(terms(label))}
        if found:
            return self.fact(text, found)
        ends = self._unextracted(text, (named[0][0], named[1][0]))
        return self._by_text(text) or (ends if ends.places else None)

    def _fact_of(self, text: str, subject: set[str], obj: str, predicate: str) -> Expected:
        """The edges of the three parts; if there are none, where texts name both ends."""
        objects = self._look.entities_called(obj)
        said, key = set(terms(predicate)), name_key(obj)
        found = set()
        for edge, triple in self._look.edges_of(subject).items():
            end = triple[2]
            is_end = (
                name_key(end.value) == key if isinstance(end, Literal) else end.value in objects
            )
            is_called = not said or said & set(terms(in_words(triple[1].value)))
            if is_end and is_called and triple[0].value in subject:
                found.add(edge)
        ends = (_PARTS.split(text)[0], obj)
        return self.fact(text, found) if found else self._unextracted(text, ends)

    def _by_text(self, text: str) -> Expected | None:
        places = tuple(islice(self._earlier.find((text,)), _MOST_PLACES))
        return self._text(text, places) if places else None

    # --- what they find ---

    def entity(self, entities: set[str]) -> Expected:
        """An entity with all the names that were merged into it, its edges and its claims."""
        whole = self._look.whole(entities)
        evidence = self._look.evidence_for("entity", whole)
        spoken = self._look.names_of(whole)
        label = self._look.label_of(entities)
        roles = [self._look.texts.claims_naming(entity) for entity in sorted(whole)]
        found = Expected(
            "entity",
            label,
            names=(tuple(dict.fromkeys([label, *spoken])),),
            entities=frozenset(whole),
            edges=frozenset(self._look.edges_of(whole)),
            claims=frozenset(claim for claims in roles for claim in claims),
        )
        return self._with_evidence(found, evidence)

    def fact(self, label: str, edges: set[str]) -> Expected:
        """Edges that state the same, with those that were merged into them."""
        whole = set(edges)
        for edge in edges:
            whole |= set(self._look.texts.merged_into(edge)) | set(self._look.became(edge))
        known = reified(StoredGraph(self._store), sorted(whole))
        ends = list(
            dict.fromkeys((edge.subject_label, edge.object_label) for edge in known.values())
        )
        names = tuple((name,) for name in ends[0]) if ends else ()
        found = Expected("fact", label, names=names, edges=frozenset(known))
        return self._with_evidence(found, self._look.evidence_for("edge", known))

    def _unextracted(self, label: str, ends: tuple[str, str]) -> Expected:
        """A fact that no edge states; the places are sentences that name both ends."""
        wanted = [set(terms(end)) for end in ends]
        places = []
        for place in islice(self._earlier.find((ends[0],)), _MOST_PLACES):
            sentence = self._earlier.around(place)
            if all(words <= set(terms(sentence.quote)) for words in wanted):
                places.append(sentence)
        distinct = tuple(dict.fromkeys(places))
        chunks = [chunk for place in distinct for chunk in self._look.chunks_at(place)]
        names = tuple((end,) for end in ends)
        return Expected("fact", label, names=names, chunks=frozenset(chunks), places=distinct)

    def _document(self, accessions: list[Accession]) -> Expected:
        documents = {a.document for a in accessions}
        chunks = [c for d in sorted(documents) for c in chunks_of_document(self._store, d)]
        found = self._chunks("document", accessions[0].path if accessions else "", chunks)
        return replace(found, documents=frozenset(documents))

    def _chunks(self, kind: ExpectedKind, label: str, chunks: list[str]) -> Expected:
        evidence = [e for chunk in chunks for e in derived(self._store, chunk, "Evidence")]
        stated = self._look.stated_by([e for e in evidence if self._earlier.knew(e)])
        known = [c for c in chunks if next(self._store.match(NamedNode(c)), None)]
        documents = frozenset(document_of_chunk(chunk) for chunk in known)
        found = Expected(kind, label, chunks=frozenset(known), documents=documents, edges=stated)
        return self._with_evidence(found, evidence, claims=True)

    def _text(self, label: str, places: tuple[DocumentPlace, ...]) -> Expected:
        chunks = {chunk: place for place in places for chunk in self._look.chunks_at(place)}
        evidence = [
            item
            for chunk in chunks
            for item in derived(self._store, chunk, "Evidence")
            if any(overlap(span_of(item, self._store), place.span) for place in places)
        ]
        found = Expected(
            "text",
            label,
            names=((label,),),
            chunks=frozenset(chunks),
            edges=self._look.stated_by(evidence),
            places=places,
        )
        said = [e for e in evidence if not text_value(self._store, e, v.tg("entity"))]
        return self._with_evidence(found, said, claims=True)

    def _with_evidence(
        self, found: Expected, evidence: Iterable[str], *, claims: bool = False
    ) -> Expected:
        items = frozenset(evidence)
        known = frozenset(item for item in items if self._earlier.knew(item))
        chunks = {text_value(self._store, item, v.prov("wasDerivedFrom")) for item in known}
        said = {text_value(self._store, e, v.tg("claim")) for e in known} - {""} if claims else ()
        return replace(
            found,
            evidence=known,
            later=items - known,
            chunks=found.chunks | chunks,
            claims=found.claims | frozenset(said),
        )
