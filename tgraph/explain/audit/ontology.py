"""Knowledge against the ontologies that stand: what they rule out, with where documents say it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import islice

from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, Triple, parse

from tgraph import vocabulary as v
from tgraph.errors import UsageError
from tgraph.explain.as_of.names import NamesAsOf
from tgraph.explain.audit.named_audits import ONTOLOGY, AuditResult
from tgraph.explain.audit.shacl_worker import ShapeResult, validate
from tgraph.extract.ontology import Ontology, OntologyProperty
from tgraph.extract.ontology_reader import SHACL, read_ontology, triples_of
from tgraph.index.evidence import EvidenceReader, stored_evidence
from tgraph.index.ontology_fit import (
    DOMAIN,
    RANGE,
    UNKNOWN_PROPERTY,
    UNKNOWN_TYPE,
    OntologyFit,
)
from tgraph.index.sources import Texts, document_of_chunk, standing_documents
from tgraph.index.standing_knowledge import StandingEvidence, value
from tgraph.librarian import Librarian
from tgraph.model import Evidence
from tgraph.record.merges import standing_merges
from tgraph.record.ontologies import standing_fit, standing_ontologies
from tgraph.settings import Settings
from tgraph.store.base import Store
from tgraph.store.statements import to_bytes

ALL = "all"
DISJOINT, FUNCTIONAL, INVERSE, SHAPE = "disjoint", "functional", "inverse functional", "shape"
REASONS = (DOMAIN, RANGE, DISJOINT, FUNCTIONAL, INVERSE, SHAPE, UNKNOWN_TYPE, UNKNOWN_PROPERTY)
MOST_QUADS = 200_000
"""Statements that are validated against shapes."""
_PLACES = 3
"""Of one violation."""

_OUTSIDE = v.tg("outsideOntology")
Row = tuple[str, str, str, str, str, str]


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that the ontology rules out: of which entity or edge, and what is wrong."""

    problem: str
    subject: str
    detail: str


def audit_ontology(
    store: Store,
    librarian: Librarian,
    settings: Settings,
    message: Callable[[str], None],
    of: str = "",
    *more: str,
) -> AuditResult:
    """The audit of that name; without an ontology there is nothing to list, and ``message`` says
    so. ``UsageError`` for a reason that there is not."""
    if more:
        raise UsageError(f"The audit {ONTOLOGY.name} takes one argument at most.")
    if of and of != ALL and of not in REASONS:
        raise UsageError(f"There is no reason {of!r}.", f"There are: {', '.join(REASONS)}, all.")
    fit = standing_fit(store, librarian, settings)
    if fit is None:
        message("No ontology stands. `tgraph ontology add FILE` adds one.")
        return AuditResult(ONTOLOGY, (), True)
    audit = _OntologyAudit(store, librarian, fit)
    found = list(audit.violations(of))
    if of in ("", ALL, SHAPE):
        found += audit.of_shapes(message)
    rows = tuple(row for each in found for row in audit.rows(each))
    return AuditResult(ONTOLOGY, rows, not rows)


class _OntologyAudit:
    def __init__(self, store: Store, librarian: Librarian, fit: OntologyFit) -> None:
        standing = standing_documents(store)
        self._store = store
        self._librarian = librarian
        self._fit = fit
        self._ontology = fit.ontology
        self._texts = StandingEvidence(store, lambda chunk: document_of_chunk(chunk) in standing)
        self._places: EvidenceReader = stored_evidence(store, Texts(store, librarian))
        self._names = NamesAsOf(store)
        self._merges = standing_merges(store)

    # --- what the fit and knowledge tell ---

    def violations(self, of: str) -> Iterator[Violation]:
        """Those of a reason; without one, all but what no term fits."""
        passing = {UNKNOWN_TYPE, UNKNOWN_PROPERTY} if not of else set()
        found = [*self._outside(), *self._disjoint(), *self._several()]
        for each in sorted(found, key=lambda one: (REASONS.index(one.problem), one.subject)):
            if each.problem not in passing and of in ("", ALL, each.problem):
                yield each

    def _outside(self) -> Iterator[Violation]:
        for quad in self._store.match(None, _OUTSIDE, None, v.KNOWLEDGE_GRAPH):
            subject, reason = value(quad.subject), value(quad.object)
            if reason in REASONS:
                yield Violation(reason, subject, self._detail(subject, reason))

    def _detail(self, subject: str, reason: str) -> str:
        if not subject.startswith(f"{v.URN}edge:"):
            return "No class of the ontology means its types."
        triple = self._texts.triple(subject)
        if triple is None or reason == UNKNOWN_PROPERTY:
            return "No property of the ontology means it."
        if reason == UNKNOWN_TYPE:
            return "What it joins is of no class of the ontology."
        known = self._fit.meant(triple)
        return self._expected(known, triple, reason) if known else ""

    def _expected(self, known: OntologyProperty, triple: Triple, reason: str) -> str:
        domains, ranges = self._fit.ends_of(known)
        choices = domains if reason == DOMAIN else ranges
        wanted = " and ".join(
            " or ".join(sorted(map(self._ontology.label, choice))) for choice in choices
        )
        if reason == RANGE and not choices:
            wanted = " or ".join(sorted(map(self._ontology.label, known.datatypes))) or "an entity"
        return f"{known.label}: the {reason} is {wanted}. {self._ends(triple)}"

    def _ends(self, triple: Triple) -> str:
        said = []
        for end in (triple.subject, triple.object):
            if isinstance(end, NamedNode):
                kinds = self._kinds(end.value)
                said.append(f"{self._names.entity(end.value)}: {', '.join(kinds) or 'no class'}")
            elif isinstance(end, Literal):
                said.append(f"{end.value}: {self._ontology.label(end.datatype.value)}")
        return "; ".join(said)

    def _kinds(self, entity: str) -> list[str]:
        quads = self._store.match(NamedNode(entity), v.RDF_TYPE, None, v.KNOWLEDGE_GRAPH)
        found = {value(q.object) for q in quads} & self._ontology.classes.keys()
        return sorted(map(self._ontology.label, found))

    def _disjoint(self) -> Iterator[Violation]:
        """Entities of which documents say two types that nothing can be both of."""
        if not any(known.disjoint for known in self._ontology.classes.values()):
            return
        absorbed: defaultdict[str, list[str]] = defaultdict(list)
        for name, entity in self._merges.items():
            absorbed[entity].append(name)
        for quad in self._store.match(None, v.RDF_TYPE, v.tg("Entity"), v.KNOWLEDGE_GRAPH):
            entity = value(quad.subject)
            members = sorted({entity, *absorbed[entity]})
            evidence = [item for name in members for item in self._texts.of_entity(name)]
            found = sorted(self._fit.classes_of(evidence).items())
            for place, (one, first) in enumerate(found):
                for other, second in found[place + 1 :]:
                    if self._ontology.are_disjoint(one, other):
                        labels = self._ontology.label(one), self._ontology.label(other)
                        said = f"It is said to be {first!r} ({labels[0]}) and {second!r}"
                        yield Violation(DISJOINT, entity, f"{said} ({labels[1]}).")

    def _several(self) -> Iterator[Violation]:
        """Properties of which there can be one value, with several."""
        for known in self._ontology.properties.values():
            for problem, wanted, end in (
                (FUNCTIONAL, known.functional, 0),
                (INVERSE, known.inverse_functional, 2),
            ):
                if wanted:
                    yield from self._values_of(known, problem, end)

    def _values_of(self, known: OntologyProperty, problem: str, end: int) -> Iterator[Violation]:
        predicate = NamedNode(known.predicate)
        found: defaultdict[object, list[Quad]] = defaultdict(list)
        for quad in self._store.match(None, predicate, None, v.KNOWLEDGE_GRAPH):
            found[quad[end]].append(quad)
        for quads in found.values():
            others = [quad[2 - end] for quad in quads]
            if len(quads) > 1 and _differ(others):
                values = ", ".join(sorted(map(self._shown, others)))
                for quad in sorted(quads, key=str):
                    edge = v.edge_iri(*quad.triple)
                    yield Violation(problem, edge, f"{known.label} has several values: {values}.")

    def _shown(self, term: object) -> str:
        if isinstance(term, NamedNode):
            return self._names.entity(term.value) or term.value
        return value(term)

    # --- what shapes tell ---

    def of_shapes(self, message: Callable[[str], None]) -> list[Violation]:
        """What the shapes of the ontologies find in knowledge."""
        shapes = []
        for each in standing_ontologies(self._store):
            content = self._librarian.get(each.content)
            if read_ontology(content, each.name).has_shapes:
                shapes.append(_triples(content, each.name))
        if not shapes:
            return []
        quads = list(islice(self._data("".join(shapes)), MOST_QUADS + 1))
        if len(quads) > MOST_QUADS:
            message(f"Only {MOST_QUADS:,} statements were validated against the shapes.")
        data = to_bytes((quad.triple for quad in quads[:MOST_QUADS]), RdfFormat.N_TRIPLES)
        return [self._of_shape(result) for result in validate(shapes, data.decode())]

    def _data(self, shapes: str) -> Iterator[Quad]:
        """The statements about what the shapes target, the classes of what these name, and which
        class is below which."""
        yield from _hierarchy(self._ontology)
        seen: set[object] = set()
        for entity in self._targets(shapes):
            node = NamedNode(entity)
            own = self._store.match(node, None, None, v.KNOWLEDGE_GRAPH)
            back = self._store.match(None, None, node, v.KNOWLEDGE_GRAPH)
            said = [quad for quad in (*own, *back) if v.is_statement(quad.predicate)]
            yield from said
            for end in dict.fromkeys((node, *(e for q in said for e in (q.subject, q.object)))):
                if isinstance(end, NamedNode) and end not in seen:
                    seen.add(end)
                    yield from self._described(end)

    def _described(self, node: NamedNode) -> Iterator[Quad]:
        for predicate in (v.RDF_TYPE, v.RDFS_LABEL):
            yield from self._store.match(node, predicate, None, v.KNOWLEDGE_GRAPH)

    def _targets(self, shapes: str) -> Iterable[str]:
        """The entities of the classes that are targeted; all where it is not by class alone."""
        found = parse(BytesIO(shapes.encode()), RdfFormat.N_TRIPLES)
        by: defaultdict[str, set[str]] = defaultdict(set)
        for quad in found:
            if quad.predicate.value.startswith(f"{SHACL}target"):
                by[quad.predicate.value.removeprefix(SHACL)].add(value(quad.object))
        wanted = by["targetClass"] if set(by) == {"targetClass"} else None
        for quad in self._store.match(None, v.RDF_TYPE, v.tg("Entity"), v.KNOWLEDGE_GRAPH):
            assert isinstance(quad.subject, NamedNode)
            kinds = self._store.match(quad.subject, v.RDF_TYPE, None, v.KNOWLEDGE_GRAPH)
            above = {iri for kind in kinds for iri in self._ontology.above(value(kind.object))}
            if wanted is None or wanted & above:
                yield quad.subject.value

    def _of_shape(self, result: ShapeResult) -> Violation:
        label = self._ontology.label(result.path) if ":" in result.path else ""
        said = f"{label}: {result.message}" if label else result.message
        return Violation(SHAPE, self._edge_of(result) or result.focus, " ".join(said.split()))

    def _edge_of(self, result: ShapeResult) -> str:
        """The edge that a result is about, where it names a value."""
        for node in (result.focus, result.path):
            if ":" not in node:
                return ""
        subject, predicate = NamedNode(result.focus), NamedNode(result.path)
        for quad in self._store.match(subject, predicate, None, v.KNOWLEDGE_GRAPH):
            if value(quad.object) == result.value:
                return v.edge_iri(*quad.triple)
        return ""

    # --- with their evidence ---

    def rows(self, violation: Violation) -> Iterator[Row]:
        """The violation at each of its first places; once without one where it has none."""
        subject = violation.subject
        what = self._names.entity(subject)
        evidence: Sequence[Evidence]
        if subject.startswith(f"{v.URN}edge:"):
            edge = self._names.edges([subject]).get(subject)
            what = " — ".join(edge.labels) if edge else subject
            evidence = self._of_edge(subject)
        else:
            evidence = [place for place, _ in self._of_entity(subject)]
        head = violation.problem, what or subject, violation.detail
        for place in evidence[:_PLACES]:
            page = f"page {place.page}, " if place.page is not None else ""
            yield (*head, place.path, f"{page}{place.start}–{place.end}", place.quote)
        if not evidence:
            yield (*head, "", "", "")

    def _of_edge(self, edge: str) -> Sequence[Evidence]:
        found = self._places.of_edges([edge], _PLACES).get(edge, ())
        others = self._texts.merged_into(edge) if not found else []
        more = self._places.of_edges(others, _PLACES) if others else {}
        return found or [place for places in more.values() for place in places]

    def _of_entity(self, entity: str) -> list[tuple[Evidence, str]]:
        found = self._places.of_entities([entity]).get(entity, [])
        return sorted(found, key=lambda pair: (pair[0].path, pair[0].page or 0, pair[0].start))


def _triples(content: bytes, name: str) -> str:
    """The file's triples as N-Triples; triple terms, which SHACL has not, are left out."""
    quads = triples_of(content, name)
    triples = (quad.triple for quad in quads if not isinstance(quad.object, Triple))
    return to_bytes(triples, RdfFormat.N_TRIPLES).decode()


def _hierarchy(ontology: Ontology) -> Iterator[Quad]:
    for known in ontology.classes.values():
        for above in sorted(known.parents):
            node, predicate = NamedNode(known.iri), NamedNode(f"{v.RDFS}subClassOf")
            yield Quad(node, predicate, NamedNode(above), v.KNOWLEDGE_GRAPH)


def _differ(terms: Sequence[object]) -> bool:
    """Whether the values are not one value, said more and less exactly (a year and its day)."""
    if not all(isinstance(term, Literal) for term in terms):
        return len(set(terms)) > 1
    longest = max(map(value, terms), key=len)
    return not all(longest.startswith(value(term)) for term in terms)
