"""The record is where it is, not what is said: whatever a stranger states, by whichever door, the
record says what it said before."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, Triple, parse, serialize

import tgraph
from tests.support.examples import examples
from tgraph import vocabulary as v
from tgraph.engine.components import Components
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import QueryError, TgraphError, VerificationError
from tgraph.explain.audit.impact import read_impact
from tgraph.explain.audit.named_audits import list_audits, run_audit
from tgraph.explain.trace.documents import list_documents
from tgraph.explain.trace.sessions import list_sessions
from tgraph.extensions.interchange import import_graph
from tgraph.extensions.operations.backup import back_up, restore_backup
from tgraph.extract.base import Extractor
from tgraph.model import (
    Agent,
    Chunk,
    ExtractedEntity,
    ExtractedRelationship,
    Extraction,
    Prompt,
    Span,
)
from tgraph.models.base import CallSink, no_sink
from tgraph.record.assessments import find_questioned_sessions
from tgraph.record.boundary import foreign_subjects, is_reserved_statement, names_reserved
from tgraph.resources import read_text
from tgraph.settings import load_settings
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.statements import read_nquads, to_bytes
from tgraph.testing import HashingEmbedder, ScriptedModel

TEXTS = {
    "curie.txt": "Marie Curie discovered Polonium in Paris. Pierre Curie worked with Marie Curie.",
    "holm.txt": "Mira Holm built Sorvik Light in Bergen. Jon Dahl kept Sorvik Light.",
}
QUESTION = "What did Marie Curie discover?"
SHADOW = NamedNode("urn:x:shadow")
OTHER = "5f0c1d8e-0000-4000-8000-000000000000"
PREFIXES = f"@prefix tg: <{v.TG}> .\n@prefix prov: <{v.PROV}> .\n@prefix rdf: <{v.RDF}> .\n"


def open_graph(root: Path) -> KnowledgeGraph:
    parts = Components(
        load_settings(None),
        root.parent / "cache",
        chat=ScriptedModel(),
        embedder=HashingEmbedder(),
    )
    return tgraph.open(root, create=True, parts=parts)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph's folder with two sessions, one verified; tests work on copies."""
    place = tmp_path_factory.mktemp("recorded")
    for name, text in TEXTS.items():
        (place / name).write_text(text)
    with open_graph(place / "g") as graph:
        graph.index([place / name for name in TEXTS])
        graph.ask(QUESTION)
        graph.verify()
        graph.ask("Who kept Sorvik Light?", history=())
    return place / "g"


@pytest.fixture
def graph(recorded: Path, tmp_path: Path) -> Iterator[KnowledgeGraph]:
    shutil.copytree(recorded, tmp_path / "g")
    with open_graph(tmp_path / "g") as opened:
        yield opened


# --- what the record says -------------------------------------------------------------------------

_OF_THE_WHOLE = {"costs", "dropped", "extraction-losses", "model-changes", "models-and-prompts"}
_OF_THE_WHOLE |= {"prompt-versions", "reading-losses", "unused-documents"}
"""Audits of all that was read: an import is among it, whatever it says."""
_OF_KNOWLEDGE = {"contradictions", "fact-sources", "isolated", "knowledge", "ontology"}
_OF_KNOWLEDGE |= {"summary-sources"}


def audit_record(graph: KnowledgeGraph, names: set[str]) -> dict[str, object]:
    """What audits say that need nothing, or a session."""
    return {name: graph.audit(name).rows for name in sorted(names)}


def session_audits() -> set[str]:
    optional = {a.name for a in list_audits() if all(p.default is not None for p in a.parameters)}
    return optional - _OF_THE_WHOLE - _OF_KNOWLEDGE - {"shapes", "integrity"}


def read_record(graph: KnowledgeGraph, known: set[str]) -> dict[str, object]:
    """What commands say of the sessions, and of the documents ``known`` before."""
    sessions = graph.sessions.summaries()
    documents = [d for d in graph.documents.summaries() if d.document in known]
    integrity = graph.integrity()
    why_not = graph.why_not(sessions[-1].explain_id, "Pierre Curie")
    return {
        "sessions": list(sessions),
        "traces": [graph.trace(session.explain_id) for session in sessions],
        "documents": documents,
        "impact": [graph.impact(document.document) for document in documents],
        "why-not": replace(why_not, notes=()),  # which say that knowledge has changed since
        "integrity": (integrity.ok, integrity.problems),
        "audits": audit_record(graph, session_audits()),
        "document": graph.audit("answers-on-document", documents[0].document).rows,
        "verify": verify_copy(graph, sessions[-1].explain_id),
    }


def verify_copy(graph: KnowledgeGraph, session: str) -> object:
    """What ``verify`` says of a session; in a copy, for it adds a bundle to the record."""
    with TemporaryDirectory() as place:
        shutil.copytree(graph.root, Path(place) / "g")
        with open_graph(Path(place) / "g") as copy:
            verified = copy.verify(session)
    return replace(verified, verification="", usage={}, notes=())  # of what has changed since


def known_documents(graph: KnowledgeGraph) -> set[str]:
    return {document.document for document in graph.documents.summaries()}


# --- the attacks that were found ------------------------------------------------------------------


def forged_edges(graph: KnowledgeGraph) -> list[Triple]:
    """Statements of a stranger about the first session, and of a session that there isn't."""
    uuid = graph.sessions.summaries()[-1].explain_id.rpartition(":")[2]
    store = graph.opened.read()
    evidence = next(store.match(None, v.RDF_TYPE, v.tg("Evidence"), v.SOURCE_GRAPH)).subject
    standing, ground = NamedNode(v.standing_iri(uuid)), NamedNode("urn:x:ground")
    session = NamedNode(v.session_iri(OTHER))
    return [
        Triple(standing, v.prov("wasInvalidatedBy"), ground),
        Triple(ground, v.tg("reason"), Literal("forged")),
        Triple(evidence, v.tg("quote"), Literal("forged")),
        Triple(session, v.RDF_TYPE, v.tg("Session")),
        Triple(session, v.tg("status"), Literal("no-evidence")),
        Triple(session, v.tg("query"), Literal("forged?")),
        Triple(session, v.prov("startedAtTime"), Literal("2026-01-01", datatype=v.xsd("date"))),
        Triple(NamedNode("urn:x:text"), v.tg("contentHash"), Literal("0" * 64)),
    ]


def as_own_edges(triples: list[Triple]) -> str:
    """Statements as tgraph exports edges."""
    entity = f"<urn:x:e> a <{v.TG}Entity> ; <{v.RDFS}label> 'E' .\n"
    edges = (f"<urn:x:r{n}> a tg:Edge ; rdf:reifies <<( {t} )>> .\n" for n, t in enumerate(triples))
    return PREFIXES + entity + "".join(edges)


@pytest.mark.slow
def test_what_an_imported_graph_states_of_the_record_is_left_out(
    graph: KnowledgeGraph, tmp_path: Path
) -> None:
    known, edges = known_documents(graph), forged_edges(graph)
    before = read_record(graph, known)
    (tmp_path / "a.ttl").write_text(as_own_edges(edges))
    report = import_graph(graph, [tmp_path / "a.ttl"])
    assert report.dropped == {"statement in tgraph's own terms": len(edges)}
    assert read_record(graph, known) == before
    back_up(graph.root, tmp_path / "b.tar")
    restore_backup(tmp_path / "b.tar", tmp_path / "restored")


@pytest.mark.slow
def test_what_an_update_states_of_the_record_is_refused(graph: KnowledgeGraph) -> None:
    standing, *_, content_hash = map(str, forged_edges(graph))
    for text in (standing, f"GRAPH <urn:x:mine> {{ {content_hash} }}"):
        with pytest.raises(QueryError, match="can't change"):
            graph.update(f"INSERT DATA {{ {text} }}")
    assert not graph.sparql("ASK { GRAPH <urn:x:mine> { ?s ?p ?o } }")


# --- what was let in before -----------------------------------------------------------------------


def cast_shadow(store: OxigraphStore) -> list[Quad]:
    """A copy of the whole record in knowledge and in a graph of somebody's, with other words, and
    of sessions that there aren't."""
    quads = [quad for quad in store.match() if v.is_record_graph(quad.graph_name)]
    lines = to_bytes(
        Triple(q.subject, q.predicate, q.object) for q in quads
    )  # without their graphs
    text = lines.decode()
    uuids = {s.explain_id.rpartition(":")[2] for s in list_sessions(store, CATALOGUE)}
    others = text
    for number, uuid in enumerate(sorted(uuids)):
        others = others.replace(uuid, f"{OTHER[:-1]}{number}")
    told = [*read_nquads(others.encode())]
    told += [Quad(q.subject, q.predicate, _reword(q.object)) for q in read_nquads(text.encode())]
    standing = (NamedNode(v.standing_iri(uuid)) for uuid in uuids)
    told += [Quad(node, v.prov("wasInvalidatedBy"), NamedNode("urn:x:ground")) for node in standing]
    graphs = (v.KNOWLEDGE_GRAPH, SHADOW)
    return [Quad(q.subject, q.predicate, q.object, g) for q in told for g in graphs]


def _reword(term: Any) -> Any:
    plain = isinstance(term, Literal) and term.datatype == v.xsd("string")
    return Literal(f"{term.value} (forged)") if plain else term


CATALOGUE = v.collection_iri("explainability")


@pytest.mark.slow
def test_the_record_says_the_same_whatever_knowledge_and_other_graphs_say(
    graph: KnowledgeGraph,
) -> None:
    store = OxigraphStore.memory(graph.opened.read().match())
    document = list_documents(store)[0].document
    audits = [a for a in list_audits() if all(p.default is not None for p in a.parameters)]
    audits = [a for a in audits if a.name not in _OF_KNOWLEDGE | {"integrity"}]

    def tell() -> dict[str, object]:
        said: dict[str, object] = {a.name: run_audit(store, CATALOGUE, a).rows for a in audits}
        said["impact"] = replace(read_impact(store, CATALOGUE, document), facts=(), shared=0)
        said["questioned"] = find_questioned_sessions(store)
        said["sessions"] = list(list_sessions(store, CATALOGUE))
        said["documents"] = list_documents(store)
        return said

    before = tell()
    assert sum(bool(rows) for rows in before.values()) > 12
    store.extend(cast_shadow(store))
    after = tell()
    assert {name for name in before if before[name] != after[name]} == set()


def test_no_reader_looks_into_every_graph() -> None:
    """``match`` names a graph; ``match_record`` has those of the record. What shows a resource as
    it stands, with the graph of each statement, may."""
    package = Path(tgraph.__file__).parent
    allowed = {package / "extensions/server" / name for name in ("linked_data.py",)}
    allowed.add(package / "extensions/server/workbench/knowledge_pages.py")
    found = set()
    for path in sorted(package.rglob("*.py")):
        if path not in allowed and path.parent != package / "store":
            found |= {f"{path.name}:{call.lineno}" for call in _open_look_ups(path)}
    assert found == set()


def _open_look_ups(path: Path) -> Iterator[ast.Call]:
    text = path.read_text("utf-8")
    for node in ast.walk(ast.parse(text)) if "tore.match(" in text else ():
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("tore.match"):
            whole = any(isinstance(argument, ast.Starred) for argument in node.args)
            graph = next((k.value for k in node.keywords if k.arg == "graph"), None)
            graph = graph or (node.args[3] if len(node.args) > 3 else None)
            if not whole and (graph is None or ast.unparse(graph) == "None"):
                yield node


# --- bundles --------------------------------------------------------------------------------------


def test_a_bundle_speaks_of_its_own_session_alone(graph: KnowledgeGraph) -> None:
    store = graph.opened.read()
    for session in graph.sessions.summaries():
        lines = store.lines(NamedNode(session.bundle))
        assert foreign_subjects(session.bundle, lines, "session") == ()
        association = next(line for line in lines if b"prov:association:" in line.split(b" ")[0])
        name = association.partition(b" ")[0].decode().strip("<>")
        for subject in (v.standing_iri(OTHER), v.session_iri(OTHER), "urn:x:a", f"{name}0"):
            forged = f'<{subject}> <urn:x:p> "x" <{session.bundle}> .\n'.encode()
            assert foreign_subjects(session.bundle, [*lines, forged], "session") == (subject,)
        whose = v.session_iri(session.bundle.removeprefix(v.bundle_iri("")))
        tie = f"<{whose}> <{v.PROV}qualifiedAssociation> <{name}0> <{session.bundle}> .\n".encode()
        forged = f"<{name}0> <{v.PROV}hadPlan> <urn:x:p> <{session.bundle}> .\n".encode()
        assert foreign_subjects(session.bundle, [*lines, tie, forged], "session") == (f"{name}0",)


def test_what_could_not_be_restored_is_no_backup(graph: KnowledgeGraph, tmp_path: Path) -> None:
    content = max(graph.opened.librarian.folder.glob("??/*"))
    content.unlink()
    with pytest.raises(VerificationError, match="could not be restored"):
        back_up(graph.root, tmp_path / "b.tar")
    assert not (tmp_path / "b.tar").exists()


# --- every term, at every name, through every door ------------------------------------------------


def list_terms() -> list[NamedNode]:
    """The terms of the ontology, and those of PROV, RDF and others that a record uses."""
    quads = parse(read_text("ontology", "tgraph.ttl"), RdfFormat.TURTLE)
    subjects = {quad.subject for quad in quads if isinstance(quad.subject, NamedNode)}
    used = {v.RDF_TYPE, v.RDF_REIFIES, v.RDFS_LABEL, *map(v.oa, ("hasSource", "exact"))}
    used |= {NamedNode(v.RDF + name) for name in ("subject", "predicate", "object")}
    prov = (
        "wasDerivedFrom wasGeneratedBy wasInvalidatedBy invalidatedAtTime generatedAtTime used "
        "startedAtTime endedAtTime wasAssociatedWith qualifiedAssociation agent hadPlan hadMember "
        "specializationOf wasRevisionOf wasInformedBy wasAttributedTo"
    )
    return sorted({*subjects, *used, *map(v.prov, prov.split())}, key=str)


def record_names(graph: KnowledgeGraph) -> list[NamedNode]:
    """The names of all that a session and its sources consist of."""
    names = {q.subject for q in graph.opened.read().match() if v.is_record_graph(q.graph_name)}
    return sorted((n for n in names if isinstance(n, NamedNode)), key=str)


def test_no_term_of_the_record_passes_at_any_name_of_it(graph: KnowledgeGraph) -> None:
    reserved = (name for name in record_names(graph) if v.is_reserved(name.value))
    names = {re.split(r":[0-9a-f-]{20,}", name.value)[0]: name for name in reserved}
    assert len(names) > 30
    said_of_edges = {*map(v.tg, ("description", "weight", "keyword"))}
    for term in list_terms():
        for name in names.values():
            quad = Quad(name, term, Literal("forged"))
            is_edge = name.value.startswith(f"{v.URN}edge:")
            assert names_reserved(quad.triple)
            if term.value.startswith((v.TG, v.PROV, v.OA)):
                assert is_reserved_statement(quad) or (is_edge and term in said_of_edges)


Door = Callable[[KnowledgeGraph, list[Triple], Path], None]


def import_as_edges(graph: KnowledgeGraph, triples: list[Triple], place: Path) -> None:
    (place / "edges.ttl").write_text(as_own_edges(triples))
    import_graph(graph, [place / "edges.ttl"])


def import_plainly(graph: KnowledgeGraph, triples: list[Triple], place: Path) -> None:
    path = place / "plain.nt"
    path.write_bytes(serialize(triples, format=RdfFormat.N_TRIPLES) or b"")
    import_graph(graph, [path])


def import_into_a_graph(graph: KnowledgeGraph, triples: list[Triple], place: Path) -> None:
    names = (v.SOURCE_GRAPH, NamedNode(graph.sessions.summaries()[0].bundle), SHADOW)
    quads = [
        Quad(triple.subject, triple.predicate, triple.object, names[n % 3])
        for n, triple in enumerate(triples)
    ]
    (place / "named.nq").write_bytes(to_bytes(quads))
    import_graph(graph, [place / "named.nq"])


def update_knowledge(graph: KnowledgeGraph, triples: list[Triple], place: Path) -> None:
    graph.update("INSERT DATA {\n" + " .\n".join(map(str, triples)) + " }")


def update_own_graph(graph: KnowledgeGraph, triples: list[Triple], place: Path) -> None:
    inside = " .\n".join(map(str, triples))
    graph.update(f"INSERT DATA {{ GRAPH <{SHADOW.value}> {{\n{inside} }} }}")


def state_by_hand(graph: KnowledgeGraph, triples: list[Triple], place: Path) -> None:
    for triple in triples[:1]:
        parts = (triple.subject.value, triple.predicate.value, "forged")  # type: ignore[union-attr]
        graph.entities.add_fact(*parts, reason="forged", literal=True)


def add_as_ontology(graph: KnowledgeGraph, triples: list[Triple], place: Path) -> None:
    owl = "http://www.w3.org/2002/07/owl#"
    lines = (
        f"{t.predicate} a <{owl}DatatypeProperty> ; <{v.RDFS}label> 'discovered' .\n"
        f"{t.subject} a <{owl}Class> ; <{v.RDFS}label> 'thing' .\n"
        for t in triples
    )
    own = f"<urn:x:Ship> a <{owl}Class> ; <{v.RDFS}label> 'ship' .\n"
    (place / "terms.ttl").write_text(own + "".join(lines))
    graph.ontologies.add(place / "terms.ttl", reason="forged")


class StrangeExtractor:
    """An extractor of a package, that finds the same statements in any chunk."""

    agent = Agent("method", "strange", "1")
    prompts: tuple[Prompt, ...] = ()

    def __init__(self, triples: list[Triple]) -> None:
        self.key = v.digest_parts("strange", *map(str, triples))
        self._ends = [
            (t.subject, t.predicate, t.object)
            for t in triples
            if isinstance(t.subject, NamedNode) and isinstance(t.object, NamedNode | Literal)
        ]

    def extract(self, chunk: Chunk, title: str, sink: CallSink = no_sink) -> Extraction:
        span = Span(chunk.start, chunk.end, chunk.text)
        relationships = tuple(
            ExtractedRelationship(subject, predicate, term, span=span, sources=(subject.value,))
            for subject, predicate, term in self._ends
        )
        entities = tuple(
            ExtractedEntity("x", "y", span=span, iri=subject.value, classes=(predicate.value,))
            for subject, predicate, _ in self._ends
        )
        return Extraction(chunk.iri, entities, relationships, self.key)


def index_by_an_extractor(graph: KnowledgeGraph, triples: list[Triple], place: Path) -> None:
    extractor = StrangeExtractor(triples)
    (place / "strange.txt").write_text(f"Something is said, {extractor.key}.")

    class Parts(Components):
        @property
        def extractor(self) -> Extractor:
            return extractor

    parts = Parts(graph.opened.settings, place / "cache", embedder=HashingEmbedder())
    with tgraph.open(graph.root, parts=parts) as other:
        assert not other.index([place / "strange.txt"]).failed


DOORS: tuple[Door, ...] = (
    index_by_an_extractor,
    import_as_edges,
    import_plainly,
    import_into_a_graph,
    update_knowledge,
    update_own_graph,
    state_by_hand,
    add_as_ontology,
)


@pytest.mark.slow
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_whatever_is_stated_of_the_record_has_no_effect(
    recorded: Path, tmp_path_factory: pytest.TempPathFactory, door: Door
) -> None:
    """Terms of the record at its names, some at a time: refused, or without effect."""
    terms = list_terms()
    place = tmp_path_factory.mktemp("tried")
    shutil.copytree(recorded, place / "g")
    with closing(open_graph(place / "g")) as graph:
        names = record_names(graph)
        known = known_documents(graph)
        before = read_record(graph, known)
        objects = st.sampled_from([*names[:40], *terms]) | st.sampled_from(
            [Literal("forged"), Literal("0" * 64), Literal(1), Literal("completed")]
        )
        subjects = st.sampled_from(names) | st.just(NamedNode("urn:x:mine"))
        statements = st.builds(Triple, subjects, st.sampled_from(terms), objects)
        every = [Triple(names[n % len(names)], t, Literal("forged")) for n, t in enumerate(terms)]

        def attempt(triples: list[Triple]) -> None:
            with suppress(TgraphError):
                door(graph, triples, place)
            assert read_record(graph, known) == before

        @settings(
            max_examples=examples(3),
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        )
        @given(st.lists(statements, min_size=1, max_size=12))
        def attempt_some(triples: list[Triple]) -> None:
            attempt(triples)

        attempt(every)
        attempt_some()
