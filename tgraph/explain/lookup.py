"""Look-ups by names: in knowledge, and in what the texts call things."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.explain.earlier import Place, overlap, span_of
from tgraph.explain.names import Names
from tgraph.explain.said import kind_of
from tgraph.extract.resolve import name_key
from tgraph.index.sources import derived, range_of_chunk, text_value
from tgraph.index.standing import StandingEvidence, commonest
from tgraph.record.merges import standing_merges
from tgraph.retrieve.labels import Triple, local_name
from tgraph.retrieve.lexical import STOP_WORDS, terms
from tgraph.retrieve.seeds import match_names
from tgraph.retrieve.subgraph import all_edges
from tgraph.store.base import Store

_WORD = re.compile(r"\w+(?:['’.\-]\w+)*\.?")
_LONGEST_NAME = 8


class Lookup:
    """Reads one store; what no longer stands is found too."""

    def __init__(self, store: Store) -> None:
        self.texts = StandingEvidence(store, lambda _: True)
        self.names = Names(store, lambda _: "")
        self._store = store
        self._merges = standing_merges(store)

    def entities_called(self, name: str) -> set[str]:
        """The entities of that name; where there are none, those with the alias."""
        key = name_key(name)
        alike = self.texts.entities_with(key)
        exact = {e for e in alike if key in self.keys(e)}
        labelled = {
            e for e in match_names(name, self._store) if name_key(self.names.of_entity(e)) == key
        }
        return (exact | labelled) or alike or set(match_names(name, self._store))

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
            aliases = self._store.match(
                NamedNode(entity), v.SKOS_ALT_LABEL, None, v.KNOWLEDGE_GRAPH
            )
            found.update((q.object.value, None) for q in aliases if isinstance(q.object, Literal))
        return list(found)

    def label_of(self, entities: set[str]) -> str:
        for entity in sorted(self.whole(entities)):
            if label := self.names.of_entity(entity):
                return label
        known = [commonest(self.texts.of_entity(entity), "name") for entity in sorted(entities)]
        return next(filter(None, known), in_words(min(entities)))

    def chunks_at(self, place: Place) -> list[str]:
        parent = v.page_of(place.document, place.page)
        return [
            chunk
            for chunk in sorted(derived(self._store, parent, "Chunk"))
            if range_of_chunk(chunk)[0] < place.end and place.start < range_of_chunk(chunk)[1]
        ]

    def stands_in(self, evidence: str, place: Place) -> bool:
        return overlap(span_of(evidence, self._store), place.span)


def in_words(iri: str) -> str:
    """A relation's or entity's IRI in words."""
    return local_name(iri).replace("-", " ")
