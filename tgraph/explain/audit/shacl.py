"""Validation of every bundle, of a session or of what was said of sessions later, against the SHACL
shapes (W3C SHACL, 2017): what they say in SHACL by pyshacl, what in SPARQL by Oxigraph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyoxigraph import Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.explain.trace.record_quads import classic, session_quads
from tgraph.explain.trace.sessions import SessionSummary, find_session, list_sessions
from tgraph.record.bundle import KINDS, SESSION
from tgraph.resources import read_text
from tgraph.store.base import Solutions, Store
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.statements import nquads

if TYPE_CHECKING:
    from rdflib import Graph

ALL = "all"
TOGETHER = 50
"""Sessions validated at once: what they share, such as the evidence, is then checked once."""

Violation = tuple[str, str, str, str, str]


@dataclass(frozen=True, slots=True)
class Rule:
    """A SPARQL constraint of the shapes (SHACL, section 5): each ``?value`` that the query finds
    violates it. ``focus`` is the node that it is a constraint of."""

    focus: str
    select: str
    message: str


def check_shapes(store: Store, catalogue: str, session: str = ALL) -> tuple[Violation, ...]:
    """Each violation as (session, focus node, path, value, message); none where all is well.

    The session is empty where what is wrong belongs to the sources and not to a session.
    """
    chosen: Sequence[SessionSummary] = (
        list_sessions(store, catalogue)
        if session == ALL
        else [find_session(store, catalogue, session)]
    )
    shapes, rules = _shapes()
    found: list[Violation] = []
    for start in range(0, len(chosen), TOGETHER):
        some = chosen[start : start + TOGETHER]
        found += _violations(store, {s.bundle: s.explain_id for s in some}, shapes, rules)
    if session == ALL:
        for statement in _later_statements(store, catalogue):
            found += _violations(store, statement, shapes, rules)
    return tuple(sorted(set(found)))


def _later_statements(store: Store, catalogue: str) -> Iterator[dict[str, str]]:
    """For each later statement, of whatever kind, its bundle and those of the sessions that it is
    about, with whom each is about."""
    graph = NamedNode(catalogue)
    for kind in KINDS.values():
        if kind is SESSION:
            continue
        for quad in store.match(None, kind.subject_property, None, graph):
            bundle = _string(quad.subject)
            yield {bundle: _string(quad.object), **_judged(store, bundle)}


def _judged(store: Store, bundle: str) -> dict[str, str]:
    """The bundles of the sessions whose answers or sentences the bundle speaks of."""
    found = {}
    for predicate in (v.prov("wasDerivedFrom"), v.prov("used")):
        for quad in store.match(None, predicate, None, NamedNode(bundle)):
            answer = _string(quad.object)
            if answer.startswith(v.answer_iri("")):
                uuid = answer.removeprefix(v.answer_iri(""))
                found[v.bundle_iri(uuid)] = v.session_iri(uuid)
    return found


def _shapes() -> tuple[Graph, list[Rule]]:
    """The shapes, and their rules apart from them: rdflib takes far longer for a query than
    Oxigraph, and for most of that parses it."""
    from rdflib import SH, Graph

    shapes = Graph().parse(data=read_text("ontology", "shapes.ttl"), format="turtle")
    rules = []
    for shape, rule in shapes.subject_objects(SH.sparql):
        select, message = shapes.value(rule, SH.select), shapes.value(rule, SH.message)
        told = _string(select), _string(message)
        rules += [Rule(_string(focus), *told) for focus in shapes.objects(shape, SH.targetNode)]
    shapes.remove((None, SH.sparql, None))
    return shapes, rules


def _violations(
    store: Store, bundles: Mapping[str, str], shapes: Graph, rules: Iterable[Rule]
) -> Iterator[Violation]:
    """What is wrong with the bundles, each with whom it is about."""
    quads: dict[Quad, None] = {}
    owners: dict[str, str] = {}
    for bundle, subject in bundles.items():
        for quad in session_quads(store, bundle):
            quads[quad] = None
            if quad.graph_name == NamedNode(bundle):
                owners[_string(quad.subject)] = subject
    plain = list(classic(quads))
    yield from _of_rules(plain, rules)
    for focus, path, value, message in _of_shapes(plain, shapes):
        yield (owners.get(focus, ""), focus, path, value, message)


def _of_rules(quads: Iterable[Quad], rules: Iterable[Rule]) -> Iterator[Violation]:
    data = OxigraphStore.memory()
    data.fill(quads)
    for rule in rules:
        results = data.query(rule.select, union=False)
        assert isinstance(results, Solutions)
        for row in results:
            yield ("", rule.focus, "", _string(row["value"]), rule.message)


def _of_shapes(quads: Iterable[Quad], shapes: Graph) -> Iterator[tuple[str, str, str, str]]:
    """What pyshacl finds: focus node, path, value and message."""
    from pyshacl import validate
    from rdflib import RDF, SH, Graph

    data = Graph().parse(data=nquads(quads), format="nt")
    conforms, report, text = validate(data, shacl_graph=shapes, inference="none")
    if conforms:
        return
    if not isinstance(report, Graph):
        yield ("", "", "", " ".join(str(text).split()))
        return
    for result in report.subjects(RDF.type, SH.ValidationResult):
        parts = (SH.focusNode, SH.resultPath, SH.value, SH.resultMessage)
        focus, path, value, message = (_string(report.value(result, part)) for part in parts)
        yield focus, path, value, message


def _string(term: Any) -> str:
    if isinstance(term, NamedNode | Literal):
        return term.value
    return "" if term is None else str(term)
