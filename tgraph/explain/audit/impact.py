"""What would fall with a document: the facts that rest on it alone, and the answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.explain.as_of.names import values_of
from tgraph.explain.trace.documents import find_document
from tgraph.explain.trace.sessions import list_sessions
from tgraph.index.sources import (
    chunks_of_document,
    derived,
    document_of_chunk,
    evidence_of_document,
    standing_documents,
    text_value,
)
from tgraph.index.stored_graph import StoredGraph
from tgraph.record.assessments import questioned
from tgraph.rendering import brief, render
from tgraph.retrieve.labels import reified
from tgraph.store.base import Store, text_of


@dataclass(frozen=True, slots=True)
class SoleFact:
    """An edge of knowledge that no other document supports."""

    edge: str
    fact: str


@dataclass(frozen=True, slots=True)
class CitingSentence:
    """A sentence of an answer that cites the document; ``alone`` if it cites nothing else."""

    index: int
    text: str
    alone: bool


@dataclass(frozen=True, slots=True)
class AffectedAnswer:
    """An answer that rests on the document. ``sentences`` are those that cite it, none where it was
    only selected for the answer. ``questioned`` is since when it does not stand, or empty."""

    session: str
    question: str
    started: str
    sentences: tuple[CitingSentence, ...]
    questioned: str


@dataclass(frozen=True, slots=True)
class Impact:
    """What rests on a document. ``shared`` counts the facts that other documents support too."""

    document: str
    title: str
    path: str
    standing: bool
    facts: tuple[SoleFact, ...]
    shared: int
    answers: tuple[AffectedAnswer, ...]

    __repr__ = brief

    def _repr_html_(self) -> str:
        return render(self, "notebook")


def read_impact(store: Store, catalogue: str, name: str) -> Impact:
    """The impact of the document that the name means. ``UsageError`` where it means none."""
    found = find_document(store, name)
    edges = _edges(store, found.document)
    alone = sorted(edge for edge, others in edges.items() if not others)
    names = reified(StoredGraph(store), alone)
    facts = [SoleFact(edge, " — ".join(names[edge].labels)) for edge in alone]
    return Impact(
        found.document,
        found.title,
        found.path,
        found.standing,
        tuple(sorted(facts, key=lambda fact: (fact.fact, fact.edge))),
        len(edges) - len(alone),
        tuple(_answers(store, catalogue, found.document)),
    )


def _edges(store: Store, document: str) -> dict[str, set[str]]:
    """The edges of knowledge that the document supports, each with the others that do."""
    standing = standing_documents(store)
    if document not in standing:
        return {}
    texts = {text_value(store, e, v.tg("edge")) for e in evidence_of_document(store, document)}
    found: dict[str, set[str]] = {}
    for text in sorted(filter(None, texts)):
        known = store.match(None, v.tg("original"), NamedNode(text), v.KNOWLEDGE_GRAPH)
        for edge in {text, *(text_of(quad.subject) for quad in known)}:
            about = NamedNode(edge), v.RDF_TYPE, v.tg("Edge"), v.KNOWLEDGE_GRAPH
            if next(store.match(*about), None):
                found[edge] = (_supporting(store, edge) & standing) - {document}
    return found


def _supporting(store: Store, edge: str) -> set[str]:
    originals = store.match(NamedNode(edge), v.tg("original"), None, v.KNOWLEDGE_GRAPH)
    found = set()
    for text in {edge, *(text_of(quad.object) for quad in originals)}:
        for quad in store.match(None, v.tg("edge"), NamedNode(text), v.SOURCE_GRAPH):
            chunk = text_value(store, text_of(quad.subject), v.prov("wasDerivedFrom"))
            found.add(document_of_chunk(chunk))
    return found


def _answers(store: Store, catalogue: str, document: str) -> Iterator[AffectedAnswer]:
    bundles = {text_of(quad.graph_name) for quad in _references(store, document)}
    doubts = questioned(store)
    for session in list_sessions(store, catalogue):
        if session.bundle in bundles and _has_answer(store, session.bundle):
            doubt = doubts.get(session.explain_id)
            yield AffectedAnswer(
                session.explain_id,
                session.question,
                session.started,
                tuple(_sentences(store, session.bundle, document)),
                doubt.time if doubt else "",
            )


def answers_on(store: Store, catalogue: str, edges: Iterable[str]) -> tuple[str, ...]:
    """The sessions (IRIs) whose answers rest on one of the edges, or on evidence of it, and still
    stand."""
    bundles = {text_of(quad.graph_name) for edge in edges for quad in _uses(store, edge)}
    doubts = questioned(store)
    return tuple(
        session.explain_id
        for session in list_sessions(store, catalogue)
        if session.bundle in bundles - {""}
        and session.explain_id not in doubts
        and _has_answer(store, session.bundle)
    )


def _uses(store: Store, edge: str) -> Iterator[Quad]:
    """Where bundles say that the edge was selected, or that something comes from its evidence."""
    for quad in store.match(None, v.tg("edge"), NamedNode(edge), None):
        if quad.graph_name == v.SOURCE_GRAPH:
            yield from store.match(None, v.prov("wasDerivedFrom"), quad.subject, None)
        elif any(store.match(quad.subject, v.RDF_TYPE, v.tg("EdgeSelection"), quad.graph_name)):
            yield quad


def _has_answer(store: Store, bundle: str) -> bool:
    """Whether the session came to an answer; one that failed has none to call into question."""
    return any(store.match(None, v.RDF_TYPE, v.tg("Answer"), NamedNode(bundle)))


def _references(store: Store, document: str) -> Iterator[Quad]:
    """Where bundles say that something selected or cited comes from the document."""
    for page in (document, *derived(store, document, "Page")):
        yield from store.match(None, v.oa("hasSource"), NamedNode(page), None)
    for part in (*chunks_of_document(store, document), *evidence_of_document(store, document)):
        yield from store.match(None, v.prov("wasDerivedFrom"), NamedNode(part), None)


def _sentences(store: Store, bundle: str, document: str) -> Iterator[CitingSentence]:
    graph = NamedNode(bundle)
    found = []
    for quad in store.match(None, v.RDF_TYPE, v.tg("Sentence"), graph):
        cited = _cited(store, quad.subject, graph)
        if document in cited:
            said = {q.predicate: text_of(q.object) for q in store.match(quad.subject, graph=graph)}
            number, text = int(said[v.tg("index")]), said[v.tg("text")]
            found.append(CitingSentence(number, text, cited == {document}))
    yield from sorted(found, key=lambda sentence: sentence.index)


def _cited(store: Store, sentence: object, graph: NamedNode) -> set[str]:
    """The documents that a sentence cites."""
    found = set()
    for citation in values_of(store, text_of(sentence), v.tg("citation"), graph, NamedNode):
        for where in values_of(store, citation, v.oa("hasTarget"), graph, NamedNode):
            for page in values_of(store, where, v.oa("hasSource"), graph, NamedNode):
                digest = page.removeprefix(v.document_iri("")).removeprefix(f"{v.URN}page:")
                found.add(v.document_iri(digest.partition(":")[0]))
    return found
