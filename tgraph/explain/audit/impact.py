"""Document impact: facts and answers that depend on a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.explain.as_of.names import values_of
from tgraph.explain.trace.documents import find_accessions
from tgraph.explain.trace.sessions import list_sessions
from tgraph.index.sources import (
    chunks_of_document,
    derived_items,
    document_of_chunk,
    evidence_of_document,
    list_standing_paths,
    readings_of,
    standing_documents,
    text_value,
)
from tgraph.index.stored_graph import StoredGraph
from tgraph.record.assessments import find_questioned_sessions
from tgraph.rendering import brief_repr, render_value
from tgraph.retrieve.labels import read_reified_edges
from tgraph.store.base import Store, match_record, text_of


@dataclass(frozen=True, slots=True)
class SoleFact:
    """A knowledge edge supported by a single document."""

    edge: str
    fact: str


@dataclass(frozen=True, slots=True)
class CitingSentence:
    """An answer sentence citing the document; ``alone`` if it cites no other document."""

    index: int
    text: str
    alone: bool


@dataclass(frozen=True, slots=True)
class AffectedAnswer:
    """An answer depending on the document.

    ``sentences`` are citing sentences, empty if the document was only selected. ``questioned``
    is the time since the answer no longer stands, or empty."""

    session: str
    question: str
    started: str
    sentences: tuple[CitingSentence, ...]
    questioned: str


@dataclass(frozen=True, slots=True)
class Impact:
    """The impact of a document at some of its paths.

    ``paths`` are the standing paths that the name means, ``copies`` other standing paths of the
    same content: while there are copies, no fact falls with the paths. ``facts`` would fall, and
    ``copied`` rest on this content alone, but also at the copies; ``shared`` counts facts
    supported by other documents too."""

    document: str
    title: str
    path: str
    standing: bool
    facts: tuple[SoleFact, ...]
    shared: int
    answers: tuple[AffectedAnswer, ...]
    paths: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    copied: tuple[SoleFact, ...] = ()

    __repr__ = brief_repr

    def _repr_html_(self) -> str:
        return render_value(self, "notebook")


def read_impact(store: Store, catalogue: str, name: str, *, all_copies: bool = False) -> Impact:
    """Return the impact of a named document: at the paths that the name means, or at all paths of
    the same content. Raise ``UsageError`` for unknown names."""
    accessions = find_accessions(store, name)
    document_info = accessions[0]
    standing = list_standing_paths(store, document_info.document)
    if all_copies and standing and not document_info.standing:
        document_info = find_accessions(store, standing[0])[0]  # a later reading may stand
    named = {accession.path for accession in accessions if accession.standing}
    paths = [path for path in standing if all_copies or path in named]
    copies = [path for path in standing if path not in paths]
    edges = _supported_edges(store, document_info.document)
    alone = sorted(edge for edge, other_documents in edges.items() if not other_documents)
    names = read_reified_edges(StoredGraph(store), alone)
    sole_facts = [SoleFact(edge, " — ".join(names[edge].labels)) for edge in alone]
    facts = tuple(sorted(sole_facts, key=lambda fact: (fact.fact, fact.edge)))
    return Impact(
        document_info.document,
        document_info.title,
        paths[0] if all_copies and paths else document_info.path,
        bool(paths),
        () if copies else facts,
        len(edges) - len(alone),
        tuple(affected_answers(store, catalogue, document_info.document)),
        tuple(paths),
        tuple(copies),
        facts if copies else (),
    )


def _supported_edges(store: Store, document: str) -> dict[str, set[str]]:
    """Return knowledge edges supported by the document, with other supporting documents."""
    standing = standing_documents(store)
    if document not in standing:
        return {}
    texts = {text_value(store, e, v.tg("edge")) for e in evidence_of_document(store, document)}
    edges: dict[str, set[str]] = {}
    for text in sorted(filter(None, texts)):
        original_quads = store.match(None, v.tg("original"), NamedNode(text), v.KNOWLEDGE_GRAPH)
        for edge in {text, *(text_of(quad.subject) for quad in original_quads)}:
            edge_pattern = NamedNode(edge), v.RDF_TYPE, v.tg("Edge"), v.KNOWLEDGE_GRAPH
            if next(store.match(*edge_pattern), None):
                edges[edge] = (_supporting_documents(store, edge) & standing) - {document}
    return edges


def _supporting_documents(store: Store, edge: str) -> set[str]:
    originals = store.match(NamedNode(edge), v.tg("original"), None, v.KNOWLEDGE_GRAPH)
    documents = set()
    for text in {edge, *(text_of(quad.object) for quad in originals)}:
        for quad in store.match(None, v.tg("edge"), NamedNode(text), v.SOURCE_GRAPH):
            chunk = text_value(store, text_of(quad.subject), v.prov("wasDerivedFrom"))
            documents.add(document_of_chunk(chunk))
    return documents


def affected_answers(store: Store, catalogue: str, document: str) -> Iterator[AffectedAnswer]:
    """Yield the answers that depend on a document in any of its readings."""
    readings = set(readings_of(store, document))
    references = (quad for reading in readings for quad in _document_references(store, reading))
    bundles = {text_of(quad.graph_name) for quad in references}
    if not bundles - {v.SOURCE_GRAPH.value}:
        return
    doubts = find_questioned_sessions(store)
    for session in list_sessions(store, catalogue):
        if session.bundle in bundles and _has_answer(store, session.bundle):
            doubt = doubts.get(session.explain_id)
            yield AffectedAnswer(
                session.explain_id,
                session.question,
                session.started,
                tuple(_citing_sentences(store, session.bundle, readings)),
                doubt.time if doubt else "",
            )


def answers_on(store: Store, catalogue: str, edges: Iterable[str]) -> tuple[str, ...]:
    """Return session IRIs whose standing answers depend on one of the edges or its evidence."""
    bundles = {text_of(quad.graph_name) for edge in edges for quad in _edge_uses(store, edge)}
    doubts = find_questioned_sessions(store)
    return tuple(
        session.explain_id
        for session in list_sessions(store, catalogue)
        if session.bundle in bundles - {""}
        and session.explain_id not in doubts
        and _has_answer(store, session.bundle)
    )


def _edge_uses(store: Store, edge: str) -> Iterator[Quad]:
    """Yield bundle quads that select the edge or derive from its evidence."""
    for quad in match_record(store, None, v.tg("edge"), NamedNode(edge)):
        if quad.graph_name == v.SOURCE_GRAPH:
            yield from match_record(store, None, v.prov("wasDerivedFrom"), quad.subject)
        elif any(store.match(quad.subject, v.RDF_TYPE, v.tg("EdgeSelection"), quad.graph_name)):
            yield quad


def _has_answer(store: Store, bundle: str) -> bool:
    """Tell whether a session has an answer; a failed session has none to question."""
    return any(store.match(None, v.RDF_TYPE, v.tg("Answer"), NamedNode(bundle)))


def _document_references(store: Store, document: str) -> Iterator[Quad]:
    """Yield bundle quads that select or cite content from the document."""
    for page in (document, *derived_items(store, document, "Page")):
        yield from match_record(store, None, v.oa("hasSource"), NamedNode(page))
    for part in (*chunks_of_document(store, document), *evidence_of_document(store, document)):
        yield from match_record(store, None, v.prov("wasDerivedFrom"), NamedNode(part))


def _citing_sentences(store: Store, bundle: str, readings: set[str]) -> Iterator[CitingSentence]:
    graph = NamedNode(bundle)
    sentences = []
    for quad in store.match(None, v.RDF_TYPE, v.tg("Sentence"), graph):
        cited = _cited_documents(store, quad.subject, graph)
        if not readings.isdisjoint(cited):
            properties = {
                q.predicate: text_of(q.object) for q in store.match(quad.subject, graph=graph)
            }
            number, text = int(properties[v.tg("index")]), properties[v.tg("text")]
            sentences.append(CitingSentence(number, text, cited <= readings))
    yield from sorted(sentences, key=lambda sentence: sentence.index)


def _cited_documents(store: Store, sentence: object, graph: NamedNode) -> set[str]:
    """Return documents cited by a sentence."""
    documents = set()
    for citation in values_of(store, text_of(sentence), v.tg("citation"), graph, NamedNode):
        for where in values_of(store, citation, v.oa("hasTarget"), graph, NamedNode):
            for page in values_of(store, where, v.oa("hasSource"), graph, NamedNode):
                digest = page.removeprefix(v.document_iri("")).removeprefix(f"{v.URN}page:")
                documents.add(v.document_iri(digest.partition(":")[0]))
    return documents
