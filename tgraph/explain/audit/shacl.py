"""SHACL validation (W3C SHACL, 2017) of all bundles, of sessions and of later statements about
sessions: SHACL constraints by pyshacl, SPARQL constraints by Oxigraph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from pyoxigraph import Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.explain.trace.record_quads import replace_triple_terms, session_quads
from tgraph.explain.trace.sessions import SessionSummary, find_session, list_sessions
from tgraph.record.bundle import KINDS, SESSION
from tgraph.resources import read_text
from tgraph.store.base import Solutions, Store
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.statements import format_nquads

if TYPE_CHECKING:
    from rdflib import Graph

ALL = "all"
TOGETHER = 50
"""Sessions validated at once: what they share, such as the evidence, is then checked once."""

ShaclViolation = tuple[str, str, str, str, str]


@dataclass(frozen=True, slots=True)
class Rule:
    """A SPARQL constraint of the shapes (SHACL, section 5): each ``?value`` found by its query
    is a violation. ``focus`` is the constrained node."""

    focus: str
    select: str
    message: str


def check_shapes(store: Store, catalogue: str, session: str = ALL) -> tuple[ShaclViolation, ...]:
    """Return violations as (session, focus node, path, value, message); empty if all shapes
    hold.

    The session is empty if the violation belongs to sources instead of a session."""
    chosen: Sequence[SessionSummary] = (
        list_sessions(store, catalogue)
        if session == ALL
        else [find_session(store, catalogue, session)]
    )
    shapes, rules = _load_shapes()
    violations: list[ShaclViolation] = []
    for start in range(0, len(chosen), TOGETHER):
        session_batch = chosen[start : start + TOGETHER]
        violations += _find_violations(
            store, {s.bundle: s.explain_id for s in session_batch}, shapes, rules
        )
    if session == ALL:
        for statement in _later_statements(store, catalogue):
            violations += _find_violations(store, statement, shapes, rules)
    return tuple(sorted(set(violations)))


def _later_statements(store: Store, catalogue: str) -> Iterator[dict[str, str]]:
    """Yield, for each later statement of any kind, a mapping from its bundle and related
    session bundles to their subjects."""
    graph = NamedNode(catalogue)
    for kind in KINDS.values():
        if kind is SESSION:
            continue
        for quad in store.match(None, kind.subject_property, None, graph):
            bundle = _term_string(quad.subject)
            yield {bundle: _term_string(quad.object), **_judged_sessions(store, bundle)}


def _judged_sessions(store: Store, bundle: str) -> dict[str, str]:
    """Return sessions by bundle whose answers or sentences this bundle mentions."""
    sessions = {}
    for predicate in (v.prov("wasDerivedFrom"), v.prov("used")):
        for quad in store.match(None, predicate, None, NamedNode(bundle)):
            answer = _term_string(quad.object)
            if answer.startswith(v.answer_iri("")):
                uuid = answer.removeprefix(v.answer_iri(""))
                sessions[v.bundle_iri(uuid)] = v.session_iri(uuid)
    return sessions


@cache
def _load_shapes() -> tuple[Graph, tuple[Rule, ...]]:
    """Return SHACL shapes, and SPARQL rules separately: rdflib needs far longer than Oxigraph
    for queries, mainly for parsing. Both are read once in a process and never changed."""
    from rdflib import SH, Graph

    shapes = Graph().parse(data=read_text("ontology", "shapes.ttl"), format="turtle")
    rules: list[Rule] = []
    for shape, rule in shapes.subject_objects(SH.sparql):
        select, message = shapes.value(rule, SH.select), shapes.value(rule, SH.message)
        rule_texts = _term_string(select), _term_string(message)
        rules += [
            Rule(_term_string(focus), *rule_texts) for focus in shapes.objects(shape, SH.targetNode)
        ]
    shapes.remove((None, SH.sparql, None))
    return shapes, tuple(rules)


def _find_violations(
    store: Store, bundles: Mapping[str, str], shapes: Graph, rules: Iterable[Rule]
) -> Iterator[ShaclViolation]:
    """Yield bundle violations with their subjects."""
    quads: dict[Quad, None] = {}
    owners: dict[str, str] = {}
    for bundle, subject in bundles.items():
        for quad in session_quads(store, bundle):
            quads[quad] = None
            if quad.graph_name == NamedNode(bundle):
                owners[_term_string(quad.subject)] = subject
    plain = list(replace_triple_terms(quads))
    yield from _of_rules(plain, rules)
    for focus, path, value, message in _of_shapes(plain, shapes):
        yield (owners.get(focus, ""), focus, path, value, message)


def _of_rules(quads: Iterable[Quad], rules: Iterable[Rule]) -> Iterator[ShaclViolation]:
    data = OxigraphStore.memory()
    data.fill(quads)
    for rule in rules:
        results = data.query(rule.select)
        assert isinstance(results, Solutions)
        for row in results:
            yield ("", rule.focus, "", _term_string(row["value"]), rule.message)


def _of_shapes(quads: Iterable[Quad], shapes: Graph) -> Iterator[tuple[str, str, str, str]]:
    """What pyshacl finds: focus node, path, value and message."""
    from pyshacl import validate
    from rdflib import RDF, SH, Graph

    data = Graph().parse(data=format_nquads(quads), format="nt")
    conforms, report, text = validate(data, shacl_graph=shapes, inference="none")
    if conforms:
        return
    if not isinstance(report, Graph):
        yield ("", "", "", " ".join(str(text).split()))
        return
    for result in report.subjects(RDF.type, SH.ValidationResult):
        parts = (SH.focusNode, SH.resultPath, SH.value, SH.resultMessage)
        focus, path, value, message = (_term_string(report.value(result, part)) for part in parts)
        yield focus, path, value, message


def _term_string(term: Any) -> str:
    if isinstance(term, NamedNode | Literal):
        return term.value
    return "" if term is None else str(term)
