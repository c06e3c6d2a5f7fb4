"""Well-known vocabulary terms interpreted as knowledge (names, descriptions, identity,
statements about statements), plus resource names drawn from the entire graph."""

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


def _create_nodes(*iris: str) -> tuple[NamedNode, ...]:
    return tuple(map(NamedNode, iris))


LABELS = {
    node: rank
    for rank, nodes in enumerate(
        (
            (v.RDFS_LABEL,),
            _create_nodes(v.SKOS + "prefLabel"),
            _create_nodes(*(f"{base}name" for base in _SCHEMA)),
            _create_nodes(_FOAF + "name"),
            _create_nodes(v.DCTERMS + "title", _DC + "title"),
        )
    )
    for node in nodes
}
"""What names a resource, the best first."""

ALIASES = frozenset(
    _create_nodes(
        v.SKOS + "altLabel", v.SKOS + "hiddenLabel", *(f"{base}alternateName" for base in _SCHEMA)
    )
)
DESCRIPTIONS = frozenset(
    _create_nodes(
        v.RDFS + "comment",
        v.SKOS + "definition",
        *(f"{base}description" for base in _SCHEMA),
        v.DCTERMS + "description",
        _DC + "description",
    )
)
SAME = frozenset(_create_nodes(_OWL + "sameAs", v.SKOS + "exactMatch"))
STATEMENT = NamedNode(v.RDF + "Statement")
PARTS = _create_nodes(v.RDF + "subject", v.RDF + "predicate", v.RDF + "object")
DERIVED = v.prov("wasDerivedFrom")
_LIST = NamedNode(v.RDF + "first")
_SKOLEM = f"{v.URN}skolem:"


@dataclass(slots=True)
class Reified:
    """A statement described by a resource: parts found so far, sources, and whether the graph
    asserts the statement too."""

    parts: list[NamedNode | Literal | Triple | None] = field(default_factory=lambda: [None] * 3)
    sources: dict[str, None] = field(default_factory=dict)
    asserted: bool = False

    @property
    def triple(self) -> tuple[NamedNode, NamedNode, NamedNode | Literal] | None:
        """The reified triple, provided all terms are resources or literals."""
        subject, predicate, obj = self.parts
        if not isinstance(subject, NamedNode) or not isinstance(predicate, NamedNode):
            return None
        return (subject, predicate, obj) if isinstance(obj, NamedNode | Literal) else None


class Resources:
    """Graph-wide resource data: names, types, and statements described by resources.

    ``languages`` are preferred name languages, best first; then come names without a language,
    then English names. A resource without name is called by its type if it is a blank node,
    else by the last part of its IRI."""

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
        """Read all graph statements."""
        for triple in stated:
            predicate, subject, obj = triple.predicate, triple.subject.value, triple.object
            if predicate == v.RDF_TYPE:
                self._record_type(subject, obj)
            elif isinstance(obj, Literal):
                if predicate in LABELS:
                    self._record_name(subject, LABELS[predicate], obj)
                elif predicate == PARTS[2]:
                    self._record_part(subject, predicate, obj)
            elif isinstance(obj, Triple):
                reified = self._reified.setdefault(reifier_of(triple), Reified())
                reified.parts = [self._plain_term(part) for part in obj]
            elif predicate in SAME:
                self._same.setdefault(obj.value, subject)
                self._same.setdefault(subject, obj.value)
            elif predicate in PARTS:
                self._record_part(subject, predicate, obj)
            if predicate == _LIST:
                self._lists.add(subject)
        self._reified = {
            node: reified for node, reified in self._reified.items() if reified.triple is not None
        }

    def read_reified(self, stated: Iterable[StatedTriple]) -> None:
        """Record which reified statements are also asserted, and their sources."""
        reified_by_triple: dict[object, list[Reified]] = {}
        for reified in self._reified.values():
            reified_by_triple.setdefault(reified.triple, []).append(reified)
        for triple in stated:
            if triple.predicate == DERIVED and isinstance(triple.object, NamedNode):
                speaking = self._reified.get(triple.subject.value)
                if speaking is not None:
                    speaking.sources[triple.object.value] = None
            for reified in reified_by_triple.get(triple[:3], ()):
                reified.asserted = True

    def is_described(self, iri: str) -> bool:
        """Tell whether the graph names or types a resource, thereby giving evidence."""
        return iri in self._names or iri in self._types

    @property
    def reifies(self) -> bool:
        return bool(self._reified)

    def find_reified(self, resource: str) -> Reified | None:
        """Return the statement a resource describes."""
        return self._reified.get(resource)

    def name(self, iri: str) -> str:
        """Return a resource's name."""
        label = self.stated_name(iri) or self.stated_name(self._same.get(iri, ""))
        if label:
            return label
        if (reified := self._reified.get(iri)) is not None and reified.triple is not None:
            subject, predicate, obj = reified.triple
            end = obj.value if isinstance(obj, Literal) else self.name(obj.value)
            if iri not in (subject.value, end):
                return f"{self.name(subject.value)} {self.relation(predicate.value)} {end}"
        if iri.startswith(_SKOLEM):
            return self.type(iri) if iri in self._types else self._unnamed_label(iri)
        return v.local_words(iri)

    def _unnamed_label(self, iri: str) -> str:
        return "list" if iri in self._lists else "unnamed"

    def stated_name(self, iri: str) -> str:
        """Return the name stated in the graph, or blank text."""
        ranked_name = self._names.get(iri)
        return ranked_name[2] if ranked_name else ""

    def relation(self, iri: str) -> str:
        """Return a relation's name."""
        return self.stated_name(iri) or v.local_words(iri)

    def type(self, iri: str) -> str:
        """Return a resource's type name, by default ``concept``."""
        kind = self._types.get(iri)
        return self.kind(kind) if kind else "concept"

    def kind(self, iri: str) -> str:
        """Return a type's name."""
        return self.stated_name(iri) or v.local_words(iri)

    def _record_name(self, subject: str, rank: int, label: Literal) -> None:
        text = " ".join(label.value.split())
        language = (label.language or "").lower()
        language_rank = self._rank.get(
            language, self._rank.get(language.partition("-")[0], len(self._rank))
        )
        ranked_name = language_rank, rank, text
        if text and ranked_name < self._names.get(subject, (len(self._rank) + 1, 0, "")):
            self._names[subject] = ranked_name

    def _record_type(self, subject: str, obj: object) -> None:
        if isinstance(obj, NamedNode) and not v.is_reserved(obj.value):
            self._types[subject] = min(obj.value, self._types.get(subject, obj.value))

    def _record_part(self, subject: str, predicate: NamedNode, obj: NamedNode | Literal) -> None:
        self._reified.setdefault(subject, Reified()).parts[PARTS.index(predicate)] = obj

    def _plain_term(self, term: object) -> NamedNode | Literal | None:
        return term if isinstance(term, NamedNode | Literal) else None


def reifier_of(said: StatedTriple) -> str:
    """Return the resource describing a triple term: the reifying subject, or the term's own IRI
    if merely mentioned."""
    assert isinstance(said.object, Triple)
    if said.predicate == v.RDF_REIFIES:
        return said.subject.value
    return term_iri(said.object)


def term_iri(term: Triple) -> str:
    """Return a triple term's IRI."""
    return f"{_SKOLEM}{v.digest_parts(str(term))}"
