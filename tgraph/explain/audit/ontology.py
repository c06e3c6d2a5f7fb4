"""Ontology audit: knowledge violating standing ontologies, with document positions."""

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
from tgraph.explain.audit.shacl_worker import ShapeResult, validate_shapes
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
from tgraph.index.standing_knowledge import StandingEvidence, term_value
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
AuditRow = tuple[str, str, str, str, str, str]


@dataclass(frozen=True, slots=True)
class Violation:
    """An ontology violation: problem, subject (entity or edge) and detail."""

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
    """Return the ontology audit, limited to a reason if given.

    Without an ontology the result is empty and ``message`` reports this. Raise ``UsageError``
    for an unknown reason."""
    if more:
        raise UsageError(f"The audit {ONTOLOGY.name} has at most one argument.")
    if of and of != ALL and of not in REASONS:
        raise UsageError(f"There is no reason {of!r}.", f"There are: {', '.join(REASONS)}, all.")
    fit = standing_fit(store, librarian, settings)
    if fit is None:
        message("There is no ontology. `tgraph ontology add FILE` adds an ontology.")
        return AuditResult(ONTOLOGY, (), True)
    audit = _OntologyAudit(store, librarian, fit)
    violations = list(audit.violations(of))
    if of in ("", ALL, SHAPE):
        violations += audit.of_shapes(message)
    rows = tuple(row for violation in violations for row in audit.rows(violation))
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
        """Yield sorted violations of a reason; without a reason, all except unknown types and
        properties."""
        passing = {UNKNOWN_TYPE, UNKNOWN_PROPERTY} if not of else set()
        violations = [*self._find_outside(), *self._find_disjoint(), *self._find_multiple_values()]
        for violation in sorted(
            violations, key=lambda one: (REASONS.index(one.problem), one.subject)
        ):
            if violation.problem not in passing and of in ("", ALL, violation.problem):
                yield violation

    def _find_outside(self) -> Iterator[Violation]:
        for quad in self._store.match(None, _OUTSIDE, None, v.KNOWLEDGE_GRAPH):
            subject, reason = term_value(quad.subject), term_value(quad.object)
            if reason in REASONS:
                yield Violation(reason, subject, self._violation_detail(subject, reason))

    def _violation_detail(self, subject: str, reason: str) -> str:
        if not subject.startswith(f"{v.URN}edge:"):
            return "No class of the ontology matches the types of the entity."
        triple = self._texts.triple(subject)
        if triple is None or reason == UNKNOWN_PROPERTY:
            return "No property of the ontology matches the predicate."
        if reason == UNKNOWN_TYPE:
            return "The two entities have no class of the ontology."
        ontology_property = self._fit.find_property(triple)
        return (
            self._describe_mismatch(ontology_property, triple, reason) if ontology_property else ""
        )

    def _describe_mismatch(self, known: OntologyProperty, triple: Triple, reason: str) -> str:
        domains, ranges = self._fit.ends_of(known)
        choices = domains if reason == DOMAIN else ranges
        expected = " and ".join(
            " or ".join(sorted(map(self._ontology.label, choice))) for choice in choices
        )
        if reason == RANGE and not choices:
            expected = (
                " or ".join(sorted(map(self._ontology.label, known.datatypes))) or "an entity"
            )
        return f"{known.label}: the {reason} is {expected}. {self._describe_ends(triple)}"

    def _describe_ends(self, triple: Triple) -> str:
        end_texts = []
        for end in (triple.subject, triple.object):
            if isinstance(end, NamedNode):
                kinds = self._class_labels(end.value)
                end_texts.append(
                    f"{self._names.entity(end.value)}: {', '.join(kinds) or 'no class'}"
                )
            elif isinstance(end, Literal):
                end_texts.append(f"{end.value}: {self._ontology.label(end.datatype.value)}")
        return "; ".join(end_texts)

    def _class_labels(self, entity: str) -> list[str]:
        quads = self._store.match(NamedNode(entity), v.RDF_TYPE, None, v.KNOWLEDGE_GRAPH)
        class_iris = {term_value(q.object) for q in quads} & self._ontology.classes.keys()
        return sorted(map(self._ontology.label, class_iris))

    def _find_disjoint(self) -> Iterator[Violation]:
        """Yield violations for entities with two disjoint types in documents."""
        if not any(ontology_class.disjoint for ontology_class in self._ontology.classes.values()):
            return
        absorbed: defaultdict[str, list[str]] = defaultdict(list)
        for name, entity in self._merges.items():
            absorbed[entity].append(name)
        for quad in self._store.match(None, v.RDF_TYPE, v.tg("Entity"), v.KNOWLEDGE_GRAPH):
            entity = term_value(quad.subject)
            members = sorted({entity, *absorbed[entity]})
            evidence = [item for name in members for item in self._texts.of_entity(name)]
            classes = sorted(self._fit.classes_of(evidence).items())
            for place, (first_class, first) in enumerate(classes):
                for second_class, second in classes[place + 1 :]:
                    if self._ontology.are_disjoint(first_class, second_class):
                        labels = (
                            self._ontology.label(first_class),
                            self._ontology.label(second_class),
                        )
                        problem_text = (
                            f"The entity has the types {first!r} ({labels[0]}) and {second!r}"
                        )
                        yield Violation(DISJOINT, entity, f"{problem_text} ({labels[1]}).")

    def _find_multiple_values(self) -> Iterator[Violation]:
        """Yield violations for single-valued properties with several values."""
        for ontology_property in self._ontology.properties.values():
            for problem, is_limited, end in (
                (FUNCTIONAL, ontology_property.functional, 0),
                (INVERSE, ontology_property.inverse_functional, 2),
            ):
                if is_limited:
                    yield from self._values_of(ontology_property, problem, end)

    def _values_of(self, known: OntologyProperty, problem: str, end: int) -> Iterator[Violation]:
        predicate = NamedNode(known.predicate)
        quads_by_end: defaultdict[object, list[Quad]] = defaultdict(list)
        for quad in self._store.match(None, predicate, None, v.KNOWLEDGE_GRAPH):
            quads_by_end[quad[end]].append(quad)
        for quads in quads_by_end.values():
            other_ends = [quad[2 - end] for quad in quads]
            if len(quads) > 1 and _values_differ(other_ends):
                values = ", ".join(sorted(map(self._term_label, other_ends)))
                for quad in sorted(quads, key=str):
                    edge = v.edge_iri(*quad.triple)
                    yield Violation(problem, edge, f"{known.label} has several values: {values}.")

    def _term_label(self, term: object) -> str:
        if isinstance(term, NamedNode):
            return self._names.entity(term.value) or term.value
        return term_value(term)

    # --- what shapes tell ---

    def of_shapes(self, message: Callable[[str], None]) -> list[Violation]:
        """Return violations found in knowledge by ontology shapes."""
        shapes = []
        for record in standing_ontologies(self._store):
            content = self._librarian.read_content(record.content)
            if read_ontology(content, record.name).has_shapes:
                shapes.append(_parse_triples(content, record.name))
        if not shapes:
            return []
        quads = list(islice(self._validation_quads("".join(shapes)), MOST_QUADS + 1))
        if len(quads) > MOST_QUADS:
            message(f"Only {MOST_QUADS:,} statements were validated against the shapes.")
        data = to_bytes((quad.triple for quad in quads[:MOST_QUADS]), RdfFormat.N_TRIPLES)
        return [self._of_shape(result) for result in validate_shapes(shapes, data.decode())]

    def _validation_quads(self, shapes: str) -> Iterator[Quad]:
        """Yield quads for shape validation: statements about targeted entities, classes of
        mentioned entities, class hierarchy."""
        yield from _hierarchy_quads(self._ontology)
        visited: set[object] = set()
        for entity in self._target_entities(shapes):
            node = NamedNode(entity)
            outgoing = self._store.match(node, None, None, v.KNOWLEDGE_GRAPH)
            back = self._store.match(None, None, node, v.KNOWLEDGE_GRAPH)
            statement_quads = [
                quad for quad in (*outgoing, *back) if v.is_statement(quad.predicate)
            ]
            yield from statement_quads
            for end in dict.fromkeys(
                (node, *(e for q in statement_quads for e in (q.subject, q.object)))
            ):
                if isinstance(end, NamedNode) and end not in visited:
                    visited.add(end)
                    yield from self._describe_node(end)

    def _describe_node(self, node: NamedNode) -> Iterator[Quad]:
        for predicate in (v.RDF_TYPE, v.RDFS_LABEL):
            yield from self._store.match(node, predicate, None, v.KNOWLEDGE_GRAPH)

    def _target_entities(self, shapes: str) -> Iterable[str]:
        """Yield entities of targeted classes, or all entities if shapes use other target kinds."""
        shape_quads = parse(BytesIO(shapes.encode()), RdfFormat.N_TRIPLES)
        by: defaultdict[str, set[str]] = defaultdict(set)
        for quad in shape_quads:
            if quad.predicate.value.startswith(f"{SHACL}target"):
                by[quad.predicate.value.removeprefix(SHACL)].add(term_value(quad.object))
        target_classes = by["targetClass"] if set(by) == {"targetClass"} else None
        for quad in self._store.match(None, v.RDF_TYPE, v.tg("Entity"), v.KNOWLEDGE_GRAPH):
            assert isinstance(quad.subject, NamedNode)
            kinds = self._store.match(quad.subject, v.RDF_TYPE, None, v.KNOWLEDGE_GRAPH)
            above = {
                iri
                for kind in kinds
                for iri in self._ontology.collect_superclasses(term_value(kind.object))
            }
            if target_classes is None or target_classes & above:
                yield quad.subject.value

    def _of_shape(self, result: ShapeResult) -> Violation:
        label = self._ontology.label(result.path) if ":" in result.path else ""
        message_text = f"{label}: {result.message}" if label else result.message
        return Violation(
            SHAPE, self._edge_of(result) or result.focus, " ".join(message_text.split())
        )

    def _edge_of(self, result: ShapeResult) -> str:
        """Return the edge IRI of a shape result with a value; empty without a match."""
        for node in (result.focus, result.path):
            if ":" not in node:
                return ""
        subject, predicate = NamedNode(result.focus), NamedNode(result.path)
        for quad in self._store.match(subject, predicate, None, v.KNOWLEDGE_GRAPH):
            if term_value(quad.object) == result.value:
                return v.edge_iri(*quad.triple)
        return ""

    # --- with their evidence ---

    def rows(self, violation: Violation) -> Iterator[AuditRow]:
        """Yield a violation row for each of its first evidence places, or a single row without
        places."""
        subject = violation.subject
        subject_text = self._names.entity(subject)
        evidence: Sequence[Evidence]
        if subject.startswith(f"{v.URN}edge:"):
            edge = self._names.edges([subject]).get(subject)
            subject_text = " — ".join(edge.labels) if edge else subject
            evidence = self._of_edge(subject)
        else:
            evidence = [place for place, _ in self._of_entity(subject)]
        head = violation.problem, subject_text or subject, violation.detail
        for place in evidence[:_PLACES]:
            page = f"page {place.page}, " if place.page is not None else ""
            yield (*head, place.path, f"{page}{place.start}–{place.end}", place.quote)
        if not evidence:
            yield (*head, "", "", "")

    def _of_edge(self, edge: str) -> Sequence[Evidence]:
        edge_evidence = self._places.of_edges([edge], _PLACES).get(edge, ())
        merged_edges = self._texts.merged_into(edge) if not edge_evidence else []
        merged_evidence = self._places.of_edges(merged_edges, _PLACES) if merged_edges else {}
        return edge_evidence or [place for places in merged_evidence.values() for place in places]

    def _of_entity(self, entity: str) -> list[tuple[Evidence, str]]:
        evidence_pairs = self._places.of_entities([entity]).get(entity, [])
        return sorted(
            evidence_pairs, key=lambda pair: (pair[0].path, pair[0].page or 0, pair[0].start)
        )


def _parse_triples(content: bytes, name: str) -> str:
    """The file's triples as N-Triples; triple terms, which SHACL has not, are left out."""
    quads = triples_of(content, name)
    triples = (quad.triple for quad in quads if not isinstance(quad.object, Triple))
    return to_bytes(triples, RdfFormat.N_TRIPLES).decode()


def _hierarchy_quads(ontology: Ontology) -> Iterator[Quad]:
    for ontology_class in ontology.classes.values():
        for above in sorted(ontology_class.parents):
            node, predicate = NamedNode(ontology_class.iri), NamedNode(f"{v.RDFS}subClassOf")
            yield Quad(node, predicate, NamedNode(above), v.KNOWLEDGE_GRAPH)


def _values_differ(terms: Sequence[object]) -> bool:
    """Tell whether values differ, treating values of different precision (a year and its day)
    as equal."""
    if not all(isinstance(term, Literal) for term in terms):
        return len(set(terms)) > 1
    longest = max(map(term_value, terms), key=len)
    return not all(longest.startswith(term_value(term)) for term in terms)
