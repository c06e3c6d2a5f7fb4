"""The record is PROV: another library reads all of it, and PROV-CONSTRAINTS hold."""

from __future__ import annotations

import warnings
from datetime import datetime
from itertools import product

import networkx as nx
import pytest
from prov.model import (
    ProvActivity,
    ProvDerivation,
    ProvDocument,
    ProvEntity,
    ProvGeneration,
    ProvRecord,
)
from rdflib import RDF, Graph, Literal, Namespace
from rdflib.term import Node

PROV = Namespace("http://www.w3.org/ns/prov#")
TG = Namespace("https://trustgraph.ai/ns/")
ENDINGS = ("completed", "no-evidence", "failed", "interrupted", "aborted")
Event = tuple[str, ...]


def read_with_prov(graph: Graph) -> ProvDocument:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it skips what is not PROV: selectors, edges
        document = ProvDocument.deserialize(
            content=graph.serialize(format="turtle"), format="rdf", rdf_format="turtle"
        )
    assert isinstance(document, ProvDocument)
    return document


def identified(document: ProvDocument, kind: type[ProvRecord]) -> set[str]:
    return {record.identifier.uri for record in document.get_records(kind) if record.identifier}


def pairs(document: ProvDocument, kind: type[ProvRecord]) -> set[tuple[str, str]]:
    """The first two of what a relation relates, in PROV-DM's order."""
    return {(record.args[0].uri, record.args[1].uri) for record in document.get_records(kind)}


def said(graph: Graph, path: Node) -> set[tuple[str, str]]:
    return {(str(s), str(o)) for s, o in graph.subject_objects(path)}


@pytest.mark.parametrize("ending", [*ENDINGS, "everything"])
def test_the_prov_library_reads_every_statement(sample, whole, ending):
    graph = whole if ending == "everything" else sample.session_graph(ending)
    document = read_with_prov(graph)
    activities = {str(s) for s in graph.subjects(RDF.type, PROV.Activity)}
    entities = {str(s) for s in graph.subjects(RDF.type, PROV.Entity)}
    assert activities
    assert identified(document, ProvActivity) == activities
    assert identified(document, ProvEntity) >= entities
    # the library has no reader for the short form of a revision and skips it
    assert pairs(document, ProvDerivation) == said(graph, PROV.wasDerivedFrom)
    assert pairs(document, ProvGeneration) >= said(graph, PROV.wasGeneratedBy)
    started = {
        record.identifier.uri: record.get_startTime()
        for record in document.get_records(ProvActivity)
        if isinstance(record, ProvActivity) and record.identifier
    }
    assert {a: t for a, t in started.items() if t} == {
        str(s): o.toPython() for s, o in graph.subject_objects(PROV.startedAtTime)
    }


# --- PROV-CONSTRAINTS (W3C Recommendation, 2013): the numbers are those of its constraints ---


def violations(graph: Graph) -> list[str]:
    """What the graph breaks of PROV-CONSTRAINTS; empty where it is valid."""
    return [*_uniqueness(graph), *_types(graph), *_order(graph)]


def _uniqueness(graph: Graph) -> list[str]:
    """One start and end of an activity, one generation and invalidation of an entity (24-29)."""
    single = (
        "startedAtTime",
        "endedAtTime",
        "wasGeneratedBy",
        "generatedAtTime",
        "wasInvalidatedBy",
        "invalidatedAtTime",
    )
    return [
        f"{subject} has several {name}"
        for name in single
        for subject in set(graph.subjects(PROV[name]))
        if len(set(graph.objects(subject, PROV[name]))) > 1
    ]


DOMAINS = {
    "Activity": ("startedAtTime", "endedAtTime", "used", "wasAssociatedWith", "wasInformedBy"),
    "Entity": (
        "wasGeneratedBy",
        "wasDerivedFrom",
        "wasRevisionOf",
        "generatedAtTime",
        "invalidatedAtTime",
        "wasInvalidatedBy",
        "specializationOf",
        "hadMember",
    ),
}
RANGES = {
    "Activity": ("wasGeneratedBy", "wasInvalidatedBy", "wasInformedBy"),
    "Entity": (
        "used",
        "wasDerivedFrom",
        "wasRevisionOf",
        "specializationOf",
        "hadMember",
        "hadPlan",
    ),
    "Agent": ("wasAssociatedWith", "agent"),
}


def _types(graph: Graph) -> list[str]:
    """What statements imply of types (50), and that entities are no activities (55)."""
    kinds: dict[str, set[Node]] = {
        kind: set(graph.subjects(RDF.type, PROV[kind])) for kind in ("Activity", "Entity", "Agent")
    }
    found = []
    for kind, names in DOMAINS.items():
        for name in names:
            found += [
                f"{s} is no {kind}" for s in graph.subjects(PROV[name]) if s not in kinds[kind]
            ]
            kinds[kind] |= set(graph.subjects(PROV[name]))
    for kind, names in RANGES.items():
        for name in names:
            values = set(graph.objects(None, PROV[name]))
            found += [f"{o} is no {kind}" for o in values if o not in kinds[kind]]
            kinds[kind] |= values
    return found + [f"{x} is both" for x in kinds["Activity"] & kinds["Entity"]]


def _order(graph: Graph) -> list[str]:
    """The order that the statements imply has no strict circle, and times agree with it."""
    events = _events(graph)
    times = _times(graph)
    found = []
    for part in nx.strongly_connected_components(events):
        edges: list[tuple[Event, Event]] = list(events.subgraph(part).edges)
        strict = [first for first, second in edges if events[first][second]["strict"]]
        found += [f"{first} has to be before itself" for first in strict]
    after = nx.transitive_closure(events)
    for first, second in product(times, times):
        if after.has_edge(first, second) and times[first] > times[second]:
            found.append(f"{first} is later than {second}")
    return found


def _events(graph: Graph) -> nx.DiGraph[Event]:
    events: nx.DiGraph[Event] = nx.DiGraph()

    def before(first: Event, second: Event, *, strict: bool = False) -> None:
        events.add_edge(first, second, strict=strict)

    for node in graph.subjects(RDF.type, PROV.Activity):
        before(("start", str(node)), ("end", str(node)))  # 30
    for later, earlier in said(graph, PROV.wasInformedBy):
        before(("start", earlier), ("end", later))  # 35
    for activity, entity in said(graph, PROV.used):
        before(("start", activity), ("use", activity, entity))  # 33
        before(("use", activity, entity), ("end", activity))
        before(("generation", entity), ("use", activity, entity))  # 37
        before(("use", activity, entity), ("invalidation", entity))  # 38
    for entity, activity in said(graph, PROV.wasGeneratedBy):
        before(("start", activity), ("generation", entity))  # 34
        before(("generation", entity), ("end", activity))
    for entity, activity in said(graph, PROV.wasInvalidatedBy):
        before(("start", activity), ("invalidation", entity))  # 34, of invalidations
        before(("invalidation", entity), ("end", activity))
    for node in graph.subjects(RDF.type, PROV.Entity):
        before(("generation", str(node)), ("invalidation", str(node)))  # 36
    for name in ("wasDerivedFrom", "wasRevisionOf"):
        for entity, origin in said(graph, PROV[name]):
            before(("generation", origin), ("generation", entity), strict=True)  # 42
    for special, general in said(graph, PROV.specializationOf):
        before(("generation", general), ("generation", special))  # 45
        before(("invalidation", special), ("invalidation", general))  # 46
    return events


def _times(graph: Graph) -> dict[Event, datetime]:
    names = {
        "start": PROV.startedAtTime,
        "end": PROV.endedAtTime,
        "generation": PROV.generatedAtTime,
        "invalidation": PROV.invalidatedAtTime,
    }
    return {
        (name, str(subject)): value.toPython()
        for name, path in names.items()
        for subject, value in graph.subject_objects(path)
        if isinstance(value, Literal)
    }


@pytest.mark.parametrize("ending", [*ENDINGS, "everything"])
def test_prov_constraints_hold(sample, whole, ending):
    graph = whole if ending == "everything" else sample.session_graph(ending)
    assert violations(graph) == []


def test_steps_lie_inside_their_session(sample):
    graph = sample.session_graph("completed")
    (session,) = graph.subjects(RDF.type, TG.Session)
    started, ended = (graph.value(session, PROV[n]) for n in ("startedAtTime", "endedAtTime"))
    parts = [
        s
        for s in graph.subjects(PROV.startedAtTime)
        if str(s).startswith("urn:trustgraph:prov:") and s != session
    ]
    assert len(parts) > 5
    for part in parts:
        assert started <= graph.value(part, PROV.startedAtTime)
        assert graph.value(part, PROV.endedAtTime) <= ended


def _time(text: str) -> Literal:
    return Literal(text, datatype="http://www.w3.org/2001/XMLSchema#dateTime")


def test_the_constraints_can_fail(session):
    """The check above is itself checked: each kind of breach is found."""
    (activity,) = session.subjects(RDF.type, TG.Session)
    (answer,) = session.subjects(RDF.type, TG.Answer)
    (selection,) = session.subjects(RDF.type, TG.Selection)
    (traversal,) = session.subjects(RDF.type, TG.Traversal)
    (extracting,) = session.subjects(RDF.type, TG.ConceptExtraction)
    breaches = {
        "several endedAtTime": (activity, PROV.endedAtTime, _time("2030-01-01T00:00:00Z")),
        "several wasGeneratedBy": (answer, PROV.wasGeneratedBy, traversal),
        "before itself": (selection, PROV.wasDerivedFrom, answer),
        "is both": (answer, RDF.type, PROV.Activity),
        "is no Activity": (answer, PROV.startedAtTime, _time("2026-01-01T00:00:00Z")),
        "is later than": (extracting, PROV.used, answer),
    }
    for expected, statement in breaches.items():
        graph = Graph() + session
        graph.add(statement)
        assert any(expected in found for found in violations(graph)), expected
