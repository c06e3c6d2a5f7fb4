"""What the terms of well-known vocabularies mean for knowledge: names, descriptions, identity, and
statements about statements; and what a graph's resources are called, as all of it says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count

from pyoxigraph import Literal, NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.extensions.interchange.graphs.rdf_syntax import StatedTriple

_OWL = "http://www.w3.org/2002/07/owl#"
_SCHEMA = ("http://schema.org/", "https://schema.org/")
_FOAF = "http://xmlns.com/foaf/0.1/"
_DC = "http://purl.org/dc/elements/1.1/"


def _nodes(*iris: str) -> tuple[NamedNode, ...]:
    return tuple(map(NamedNode, iris))


LABELS = {
    node: rank
    for rank, nodes in enumerate(
        (
            (v.RDFS_LABEL,),
            _nodes(v.SKOS + "prefLabel"),
            _nodes(*(f"{base}name" for base in _SCHEMA)),
            _nodes(_FOAF + "name"),
            _nodes(v.DCTERMS + "title", _DC + "title"),
        )
    )
    for node in nodes
}
"""What names a resource, the best first."""

ALIASES = frozenset(
    _nodes(
        v.SKOS + "altLabel", v.SKOS + "hiddenLabel", *(f"{base}alternateName" for base in _SCHEMA)
    )
)
DESCRIPTIONS = frozenset(
    _nodes(
        v.RDFS + "comment",
        v.SKOS + "definition",
        *(f"{base}description" for base in _SCHEMA),
        v.DCTERMS + "description",
        _DC + "description",
    )
)
SAME = frozenset(_nodes(_OWL + "sameAs", v.SKOS + "exactMatch"))
STATEMENT = NamedNode(v.RDF + "Statement")
PARTS = _nodes(v.RDF + "subject", v.RDF + "predicate", v.RDF + "object")
DERIVED = v.prov("wasDerivedFrom")
_LIST = NamedNode(v.RDF + "first")
_SKOLEM = f"{v.URN}skolem:"
_OPEN = tuple(f"{v.URN}{kind}:" for kind in ("entity", "relation", "type", "skolem"))


def is_reserved(iri: str) -> bool:
    """Whether an IRI is one that tgraph says things by itself: a graph of others may not."""
    return iri.startswith(v.TG) or (iri.startswith(v.URN) and not iri.startswith(_OPEN))


@dataclass(slots=True)
class Reified:
    """A statement that a resource speaks of: its parts, as far as they are known yet, its sources,
    and whether the graph asserts it too."""

    parts: list[NamedNode | Literal | Triple | None] = field(default_factory=lambda: [None] * 3)
    sources: dict[str, None] = field(default_factory=dict)
    asserted: bool = False

    @property
    def triple(self) -> tuple[NamedNode, NamedNode, NamedNode | Literal] | None:
        """The triple, where it is one of resources and literals."""
        subject, predicate, obj = self.parts
        if not isinstance(subject, NamedNode) or not isinstance(predicate, NamedNode):
            return None
        return (subject, predicate, obj) if isinstance(obj, NamedNode | Literal) else None


class Resources:
    """What a graph says of its resources as a whole: what they are called, of what types they are,
    and which of them speak of a statement.

    ``languages`` are those of names, the best first; after them come names without a language, then
    English ones. What has no name is called by its type if it is a blank node, else by the last
    part of its IRI.
    """

    def __init__(self, languages: Sequence[str] = ()) -> None:
        order = dict.fromkeys([*(language.lower() for language in languages), "", "en"])
        self._rank = dict(zip(order, count()))
        self._names: dict[str, tuple[int, int, str]] = {}
        self._types: dict[str, str] = {}
        self._same: dict[str, str] = {}
        self._reified: dict[str, Reified] = {}
        self._statements: set[str] = set()
        self._lists: set[str] = set()

    def read(self, stated: Iterable[StatedTriple]) -> None:
        """Take in all that the graph states."""
        for said in stated:
            predicate, subject, obj = said.predicate, said.subject.value, said.object
            if predicate == v.RDF_TYPE:
                self._type(subject, obj)
            elif isinstance(obj, Literal):
                if predicate in LABELS:
                    self._name(subject, LABELS[predicate], obj)
                elif predicate == PARTS[2]:
                    self._part(subject, predicate, obj)
            elif isinstance(obj, Triple):
                known = self._reified.setdefault(reifier_of(said), Reified())
                known.parts = [self._plain(part) for part in obj]
            elif predicate in SAME:
                self._same.setdefault(obj.value, subject)
                self._same.setdefault(subject, obj.value)
            elif predicate in PARTS:
                self._part(subject, predicate, obj)
            if predicate == _LIST:
                self._lists.add(subject)
        self._reified = {
            node: known for node, known in self._reified.items() if known.triple is not None
        }

    def read_reified(self, stated: Iterable[StatedTriple]) -> None:
        """Take in which of the reified statements are asserted too, and their sources."""
        wanted: dict[object, list[Reified]] = {}
        for known in self._reified.values():
            wanted.setdefault(known.triple, []).append(known)
        for said in stated:
            if said.predicate == DERIVED and isinstance(said.object, NamedNode):
                speaking = self._reified.get(said.subject.value)
                if speaking is not None:
                    speaking.sources[said.object.value] = None
            for known in wanted.get(said[:3], ()):
                known.asserted = True

    def is_described(self, iri: str) -> bool:
        """Whether the graph names or types the resource somewhere: there is its evidence."""
        return iri in self._names or iri in self._types

    @property
    def reifies(self) -> bool:
        return bool(self._reified)

    def reified(self, resource: str) -> Reified | None:
        """The statement that a resource speaks of."""
        return self._reified.get(resource)

    def name(self, iri: str) -> str:
        """What the resource is called."""
        stated = self.stated_name(iri) or self.stated_name(self._same.get(iri, ""))
        if stated:
            return stated
        if (known := self._reified.get(iri)) is not None and known.triple is not None:
            subject, predicate, obj = known.triple
            end = obj.value if isinstance(obj, Literal) else self.name(obj.value)
            if iri not in (subject.value, end):
                return f"{self.name(subject.value)} {self.relation(predicate.value)} {end}"
        if iri.startswith(_SKOLEM):
            return self.type(iri) if iri in self._types else self._unnamed(iri)
        return v.local_words(iri)

    def _unnamed(self, iri: str) -> str:
        return "list" if iri in self._lists else "unnamed"

    def stated_name(self, iri: str) -> str:
        """The name that the graph gives it; empty where it gives none."""
        found = self._names.get(iri)
        return found[2] if found else ""

    def relation(self, iri: str) -> str:
        """What a relation is called."""
        return self.stated_name(iri) or v.local_words(iri)

    def type(self, iri: str) -> str:
        """What the resource's type is called; ``concept`` for none."""
        kind = self._types.get(iri)
        return self.kind(kind) if kind else "concept"

    def kind(self, iri: str) -> str:
        """What a type is called."""
        return self.stated_name(iri) or v.local_words(iri)

    def _name(self, subject: str, rank: int, label: Literal) -> None:
        text = " ".join(label.value.split())
        language = (label.language or "").lower()
        known = self._rank.get(
            language, self._rank.get(language.partition("-")[0], len(self._rank))
        )
        found = known, rank, text
        if text and found < self._names.get(subject, (len(self._rank) + 1, 0, "")):
            self._names[subject] = found

    def _type(self, subject: str, obj: object) -> None:
        if isinstance(obj, NamedNode) and not is_reserved(obj.value):
            self._types[subject] = min(obj.value, self._types.get(subject, obj.value))

    def _part(self, subject: str, predicate: NamedNode, obj: NamedNode | Literal) -> None:
        self._reified.setdefault(subject, Reified()).parts[PARTS.index(predicate)] = obj

    def _plain(self, term: object) -> NamedNode | Literal | None:
        return term if isinstance(term, NamedNode | Literal) else None


def reifier_of(said: StatedTriple) -> str:
    """The resource that speaks of the triple term: its subject, which reifies it, or the IRI that
    stands for the term where it is merely mentioned."""
    assert isinstance(said.object, Triple)
    if said.predicate == v.RDF_REIFIES:
        return said.subject.value
    return term_iri(said.object)


def term_iri(term: Triple) -> str:
    """The IRI of a triple term as a resource."""
    return f"{_SKOLEM}{v.digest(str(term))}"
