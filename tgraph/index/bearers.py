"""Evidence of a name under the names of its bearers.

Evidence as extracted never changes. Where documents mean different bearers of one name, what they
say is stated a second time under the bearer's name, and only that counts while the bearers are told
apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pyoxigraph import Literal, NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.extract.resolution import name_key
from tgraph.index.homonyms import Bearer
from tgraph.index.sources import document_of_chunk, evidence_of_document
from tgraph.index.standing_knowledge import Properties, properties_of, term_value
from tgraph.store.base import Store
from tgraph.store.statements import edge_of, reifier_quad

RESTATES = "restates"
_ABOUT = ("entity", "subject", "object")
_STATEMENTS = ("edge", "claim", "entity")


class BearerAssignment:
    """Which bearer each document means by a name."""

    def __init__(self, store: Store, bearers: Iterable[Bearer]) -> None:
        self._store = store
        self.bearers: dict[str, dict[str, Bearer]] = {}
        for bearer in sorted(bearers, key=lambda bearer: bearer.iri):
            for document in bearer.documents:
                self.bearers.setdefault(document, {})[bearer.name] = bearer

    def weigh(self, item: Properties) -> Properties | None:
        """Return the evidence if it counts: under the name of the text, or restated under the
        bearer's, never both."""
        document = document_of_chunk(term_value(item["wasDerivedFrom"][0]))
        bearers = self.bearers.get(document)
        if not bearers:
            return None if RESTATES in item else item
        names = set(_read_names(self._store, item))
        if not names.isdisjoint(bearers):
            return None
        if RESTATES not in item:
            return item
        original = item[RESTATES][0]
        assert isinstance(original, NamedNode)
        expected = set(_read_names(self._store, properties_of(self._store, original)))
        return item if names == {_rename(name, bearers) for name in expected} else None

    def restate(self, document: str) -> Iterator[Quad]:
        """Yield a document's evidence under the names of the bearers, unless it is there."""
        bearers = self.bearers.get(document, {})
        for evidence in evidence_of_document(self._store, document) if bearers else ():
            item = properties_of(self._store, NamedNode(evidence))
            names = set(_read_names(self._store, item))
            if RESTATES not in item and not names.isdisjoint(bearers):
                yield from self._restate_evidence(evidence, item, bearers)

    def _restate_evidence(
        self, evidence: str, item: Properties, bearers: Mapping[str, Bearer]
    ) -> Iterator[Quad]:
        replaced: dict[str, list[NamedNode | Literal]] = {
            name: [_rename_term(term, bearers) for term in item[name]]
            for name in _ABOUT
            if name in item
        }
        if "edge" in item:
            edge, triple = _read_edge(self._store, item)
            renamed = Triple(
                NamedNode(_rename(term_value(triple.subject), bearers)),
                triple.predicate,
                _rename_term(triple.object, bearers),
            )
            replaced["edge"] = [NamedNode(edge_of(renamed))]
            yield from self._state_edge(edge, renamed, item["wasDerivedFrom"][0])
        elif "claim" in item:
            replaced["claim"] = [NamedNode(_claim_of({**item, **replaced}))]
        else:
            replaced |= _names_of_bearer(item, bearers[term_value(item["entity"][0])])
        statements = [term_value(replaced[p][0]) for p in _STATEMENTS if p in replaced]
        restated = NamedNode(f"{v.URN}evidence:{v.digest_parts(*statements, RESTATES, evidence)}")
        if next(self._store.match(restated, None, None, v.SOURCE_GRAPH), None) is not None:
            return
        for quad in self._store.match(NamedNode(evidence), None, None, v.SOURCE_GRAPH):
            name = quad.predicate.value.removeprefix(v.TG)
            if name not in replaced:
                yield Quad(restated, quad.predicate, quad.object, v.SOURCE_GRAPH)
        for name, terms in replaced.items():
            yield from (Quad(restated, v.tg(name), term, v.SOURCE_GRAPH) for term in terms)
        yield Quad(restated, v.tg("restates"), NamedNode(evidence), v.SOURCE_GRAPH)

    def _state_edge(
        self, original: str, triple: Triple, chunk: NamedNode | Literal
    ) -> Iterator[Quad]:
        """Yield the edge's reifier, and the edge in the chunk's subgraphs with the original."""
        edge = NamedNode(edge_of(triple))
        yield reifier_quad(edge.value, triple)
        for quad in self._store.match(None, v.tg("contains"), NamedNode(original), v.SOURCE_GRAPH):
            derived = Quad(quad.subject, v.prov("wasDerivedFrom"), chunk, v.SOURCE_GRAPH)
            if next(self._store.match(*derived), None) is not None:
                yield Quad(quad.subject, v.tg("contains"), edge, v.SOURCE_GRAPH)


def _names_of_bearer(item: Properties, bearer: Bearer) -> dict[str, list[NamedNode | Literal]]:
    """Return the naming properties of an entity's evidence under the bearer's name; the name of the
    text is an alias by which the bearer is found and not merged."""
    keys = {term.value for term in item.get("nameKey", ())}
    return {
        "name": [Literal(bearer.label)],
        "nameKey": [Literal(name_key(bearer.label))],
        "alias": list({*item.get("alias", ()), *item["name"]}),
        "aliasKey": [term for term in item.get("aliasKey", ()) if term.value not in keys],
    }


def _claim_of(item: Properties) -> str:
    """Return the IRI of a claim with these properties."""
    ends = [term_value(item[name][0]) if name in item else "" for name in ("subject", "object")]
    details = [term_value(item[name][0]) for name in ("claimType", "claimStatus", "description")]
    dates = [
        str(v.canonicalise_literal(term)) if isinstance(term, Literal) else ""
        for name in ("claimStart", "claimEnd")
        for term in (item[name][0] if name in item else None,)
    ]
    return v.claim_iri(*ends, *details, *dates)


def _read_names(store: Store, item: Properties) -> Iterator[str]:
    """Yield the entities that a piece of evidence is about."""
    yield from (term_value(term) for name in _ABOUT for term in item.get(name, ()))
    if "edge" in item:
        _, triple = _read_edge(store, item)
        ends = triple.subject, triple.object
        yield from (end.value for end in ends if isinstance(end, NamedNode))


def _read_edge(store: Store, item: Properties) -> tuple[str, Triple]:
    edge = item["edge"][0]
    assert isinstance(edge, NamedNode)
    triple = next(store.match(edge, v.RDF_REIFIES, None, v.SOURCE_GRAPH)).object
    assert isinstance(triple, Triple)
    return edge.value, triple


def _rename(name: str, bearers: Mapping[str, Bearer]) -> str:
    return bearers[name].iri if name in bearers else name


def _rename_term(term: object, bearers: Mapping[str, Bearer]) -> NamedNode | Literal:
    assert isinstance(term, NamedNode | Literal)
    return NamedNode(_rename(term.value, bearers)) if isinstance(term, NamedNode) else term
