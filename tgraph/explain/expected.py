"""What a person means who missed something in an answer: an entity, a fact, a text, a document."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Literal as Choice

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.explain.earlier import Accession, Earlier, Place
from tgraph.explain.lookup import Lookup, in_words
from tgraph.explain.said import kind_of
from tgraph.extract.resolve import name_key
from tgraph.index.sources import (
    chunks_of_document,
    derived,
    document_of_chunk,
    text_value,
)
from tgraph.retrieve.labels import reified
from tgraph.retrieve.lexical import terms

Kind = Choice["entity", "fact", "chunk", "document", "text", "item"]

_PARTS = re.compile(r"\s+(?:—|–|-|->|→|\|)\s+")
_MOST_PLACES = 200


@dataclass(frozen=True, slots=True)
class Expected:
    """What was expected: by which IRIs a record may name it, and where documents say it.

    ``names`` are what a text must contain to speak of it, one of each group. ``evidence`` is what
    had been extracted of it when the session asked, from documents that stood, ``later`` what else
    is there. Of a fact that was named in words, and of a text, ``places`` are where it stands.
    """

    kind: Kind
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
    places: tuple[Place, ...] = field(default=(), repr=False)

    @property
    def in_items(self) -> frozenset[str]:
        """Every IRI under which the record may have it as an edge or item."""
        return self.iris | self.entities | self.edges | self.claims | self.chunks

    @property
    def is_known(self) -> bool:
        """Whether anything of it is there."""
        return bool(self.in_items or self.documents or self.evidence or self.places)


class Finder:
    """Finds what is meant in a store as a session knew it."""

    def __init__(self, earlier: Earlier) -> None:
        self._earlier = earlier
        self._store = earlier.store
        self._look = Lookup(earlier.store)

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
            return self._document([a for a in self._accessions() if a.document == document])
        if kind == "evidence":
            edge = text_value(self._store, text, v.tg("edge"))
            entity = text_value(self._store, text, v.tg("entity"))
            if edge or entity:
                return (
                    self.fact(self._look.names.of(edge), {edge}) if edge else self.entity({entity})
                )
        known = next(self._store.match(NamedNode(text), None, None, None), None) is not None
        evidence = self._look.evidence_for("claim", [text]) if kind == "claim" else []
        iris = frozenset({text} if known else ())
        return self._with_evidence(Expected("item", self._look.names.of(text), iris), evidence)

    def _by_path(self, text: str) -> Expected | None:
        path, whole = os.path.normpath(text), os.path.abspath(text)  # noqa: PTH100
        found = [
            a
            for a in self._accessions()
            if a.path == text
            or os.path.normpath(a.path) == path
            or os.path.abspath(a.path) == whole  # noqa: PTH100
            or ("." in path and (a.path.endswith(f"/{path}") or path.endswith(f"/{a.path}")))
        ]
        return self._document(found) if found else None

    def _by_title(self, text: str) -> Expected | None:
        found = [a for a in self._accessions() if a.title.casefold() == text.casefold()]
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
        if not places:
            return None
        return self._text(text, places)

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
        known = reified(self._store, sorted(whole))
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

    def _chunks(self, kind: Kind, label: str, chunks: list[str]) -> Expected:
        evidence = [e for chunk in chunks for e in derived(self._store, chunk, "Evidence")]
        stated = self._look.stated_by([e for e in evidence if self._earlier.knew(e)])
        known = [c for c in chunks if next(self._store.match(NamedNode(c)), None)]
        documents = frozenset(document_of_chunk(chunk) for chunk in known)
        found = Expected(kind, label, chunks=frozenset(known), documents=documents, edges=stated)
        return self._with_evidence(found, evidence, claims=True)

    def _text(self, label: str, places: tuple[Place, ...]) -> Expected:
        chunks = {chunk: place for place in places for chunk in self._look.chunks_at(place)}
        evidence = [
            item
            for chunk in chunks
            for item in derived(self._store, chunk, "Evidence")
            if any(self._look.stands_in(item, place) for place in places)
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

    def _accessions(self) -> list[Accession]:
        return self._earlier.accessions
