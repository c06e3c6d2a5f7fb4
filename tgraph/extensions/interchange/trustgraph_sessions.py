"""A session in TrustGraph's own vocabulary (2.11: question, grounding, exploration, focus,
synthesis), so that its reader parses it and its viewer shows names and sources.

Literals are plain strings there and edges are triple terms. The session is in one graph, the way
from each chunk to its document in another, and labels and documents are in the default graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, Triple, parse

from tgraph import vocabulary as v
from tgraph.explain.trace.values import Trace, TraceItem
from tgraph.store.base import Graph, Store

RETRIEVAL_GRAPH = NamedNode("urn:graph:retrieval")
_DC = "http://purl.org/dc/elements/1.1/"
_TrustGraphValue = str | NamedNode | Triple


def trustgraph_quads(trace: Trace, store: Store) -> list[Quad]:
    """Return session quads in TrustGraph form: five stages, each derived from its predecessor,
    with selected items, token counts and models; labels of named resources; and document
    provenance of source or retrieved chunks.

    A session with selected chunks but without edges has the form of TrustGraph's document
    retrieval."""
    out = _TrustGraphWriter()
    selections = list(_iterate_selections(trace))
    chunks = [item.item for item in (*trace.selected, *trace.rejected) if item.kind == "chunk"]
    _write_stages(out, trace, selections, chunks)
    _write_labels(out, trace, selections)
    places = (place.chunk for _, item in selections for place in item.evidence)
    _write_sources(out, store, dict.fromkeys([*chunks, *places]))
    for _, edge in selections:
        if edge.kind == "edge":
            _write_subgraphs(out, store, edge)
    return out.quads


@dataclass(frozen=True, slots=True)
class _StageNames:
    """TrustGraph stage names of a retrieval."""

    question: NamedNode
    label: str
    focus: str
    pattern: str
    first: str


_EDGES = _StageNames(
    v.tg("GraphRagQuestion"), "GraphRAG Question", "Focus", v.URN + "prov:{1}:{0}", "question"
)
_CHUNKS = _StageNames(
    v.tg("DocRagQuestion"),
    "DocumentRAG Question",
    "Chunk Selection",
    v.URN + "docrag:{0}/{1}",
    "docrag",
)
_STAGES = ("grounding", "exploration", "focus", "synthesis")
_WAYS = ("edge", "chunk")
"""The kinds of selections that its vocabulary has."""


def _iterate_selections(trace: Trace) -> Iterator[tuple[str, TraceItem]]:
    uuid = _session_uuid(trace)
    for item in trace.selected:
        if item.kind in _WAYS:
            yield v.session_part_iri(item.kind, uuid, int(item.iri.rpartition(":")[2])), item


def _session_uuid(trace: Trace) -> str:
    return trace.explain_id.removeprefix(v.session_iri(""))


def _write_stages(
    out: _TrustGraphWriter,
    trace: Trace,
    selections: list[tuple[str, TraceItem]],
    chunks: list[str],
) -> None:
    uuid = _session_uuid(trace)
    kinds = {item.kind for _, item in selections}
    form = _CHUNKS if kinds == {"chunk"} else _EDGES
    question = f"{v.URN}{form.first}:{uuid}"
    grounding, exploration, focus, synthesis = (form.pattern.format(uuid, s) for s in _STAGES)
    out.stage(question, (v.tg("Question"), form.question), form.label)
    out.add_quads(question, v.prov("startedAtTime"), trace.started)
    out.add_quads(question, v.tg("query"), trace.question)
    out.stage(grounding, [v.tg("Grounding")], "Grounding", question)
    out.add_quads(grounding, v.tg("concept"), *trace.concepts)
    out.stage(exploration, [v.tg("Exploration")], "Exploration", grounding)
    if form is _EDGES:
        out.add_quads(exploration, v.tg("edgeCount"), str(trace.edge_count))
        out.add_quads(exploration, v.tg("entity"), *(NamedNode(m.entity) for m in trace.matches))
    if chunks:
        out.add_quads(exploration, v.tg("chunkCount"), str(len(chunks)))
        out.add_quads(exploration, v.tg("selectedChunk"), *map(NamedNode, chunks))
    out.stage(focus, [v.tg("Focus")], form.focus, exploration)
    for iri, item in selections:
        out.selection(focus, iri, item)
    out.stage(synthesis, [v.tg("Synthesis"), v.tg("Answer")], "Synthesis", focus)
    if trace.answer:
        out.add_quads(synthesis, v.tg("document"), NamedNode(v.answer_text_iri(uuid)))
        out.add_quads(synthesis, v.tg("content"), trace.answer)
    for kind, stage in (
        ("ConceptExtraction", grounding),
        ("EdgeSelecting", focus),
        ("Synthesising", synthesis),
    ):
        out.usage(stage, trace, kind)


def _write_labels(
    out: _TrustGraphWriter, trace: Trace, selections: list[tuple[str, TraceItem]]
) -> None:
    """Write labels of entities and relations named in the session."""
    labels = {match.entity: match.label for match in trace.matches}
    for _, item in selections:
        if item.kind == "edge":
            labels |= {item.subject: item.subject_label, item.predicate: item.predicate_label}
            labels |= (
                {item.object: item.object_label}
                if isinstance(_object_term(item), NamedNode)
                else {}
            )
    for iri, label in labels.items():
        out.add_quads(iri, v.RDFS_LABEL, label, graph=v.KNOWLEDGE_GRAPH)


def _write_subgraphs(out: _TrustGraphWriter, store: Store, edge: TraceItem) -> None:
    """Write subgraphs that contain the edge, limited to chunks whose evidence was shown."""
    evidence_chunks = {NamedNode(place.chunk) for place in edge.evidence}
    for quad in store.match(None, v.tg("contains"), NamedNode(edge.item), v.SOURCE_GRAPH):
        assert isinstance(quad.subject, NamedNode)
        origins = [
            derivation.object
            for derivation in store.match(
                quad.subject, v.prov("wasDerivedFrom"), None, v.SOURCE_GRAPH
            )
            if derivation.object in evidence_chunks
        ]
        for origin in origins:
            assert isinstance(origin, NamedNode)
            kinds = [v.tg("Subgraph")]
            subgraph = quad.subject.value
            out.stage(subgraph, kinds, "Subgraph", origin.value, graph=v.SOURCE_GRAPH)
            out.add_quads(subgraph, v.tg("contains"), _edge_triple(edge), graph=v.SOURCE_GRAPH)


_COPIED = ("pageNumber", "charOffset", "charLength", "pageCount", "mimeType")
_DUBLIN = ("title", "creator", "date")


def _write_sources(out: _TrustGraphWriter, store: Store, chunks: Iterable[str]) -> None:
    """Write chunks and their provenance chain up to documents."""
    queue, visited = list(chunks), set[str]()
    while queue:
        node = queue.pop(0)
        if node in visited:
            continue
        visited.add(node)
        statements = [(q.predicate, q.object) for q in _said_of(store, node)]
        is_document = (v.RDF_TYPE, v.tg("Document")) in statements
        graph = v.KNOWLEDGE_GRAPH if is_document else v.SOURCE_GRAPH
        for predicate, value in statements:
            if predicate == v.prov("wasDerivedFrom") and isinstance(value, NamedNode):
                queue.append(value.value)
            if isinstance(value, NamedNode) and predicate in (v.RDF_TYPE, v.prov("wasDerivedFrom")):
                out.add_quads(node, predicate, value, graph=graph)
            elif isinstance(value, Literal):
                for name, text in _as_theirs(predicate, value):
                    out.add_quads(node, name, text, graph=graph)


def _said_of(store: Store, node: str) -> list[Quad]:
    return sorted(store.match(NamedNode(node), None, None, v.SOURCE_GRAPH), key=str)


def _as_theirs(predicate: NamedNode, value: Literal) -> Iterator[tuple[NamedNode, str]]:
    """Yield TrustGraph names and values for document, page or chunk properties; TrustGraph
    counts chunks from 1."""
    if predicate in (v.RDFS_LABEL, *map(v.tg, _COPIED)):
        yield predicate, value.value
    elif predicate == v.tg("chunkIndex"):
        yield predicate, str(int(value.value) + 1)
    else:
        for name in _DUBLIN:
            if predicate == v.dcterms(name):
                yield NamedNode(_DC + name), value.value


class _TrustGraphWriter:
    def __init__(self) -> None:
        self.quads: list[Quad] = []

    def add_quads(
        self,
        subject: str,
        predicate: NamedNode,
        *values: _TrustGraphValue,
        graph: Graph = RETRIEVAL_GRAPH,
    ) -> None:
        for value in values:
            term = Literal(value) if isinstance(value, str) else value
            self.quads.append(Quad(NamedNode(subject), predicate, term, graph))

    def stage(
        self,
        subject: str,
        kinds: Iterable[NamedNode],
        label: str,
        derived_from: str | None = None,
        graph: Graph = RETRIEVAL_GRAPH,
    ) -> None:
        self.add_quads(subject, v.RDF_TYPE, v.prov("Entity"), *kinds, graph=graph)
        self.add_quads(subject, v.RDFS_LABEL, label, graph=graph)
        if derived_from:
            self.add_quads(subject, v.prov("wasDerivedFrom"), NamedNode(derived_from), graph=graph)

    def selection(self, focus: str, subject: str, selected: TraceItem) -> None:
        if selected.kind == "edge":
            self.add_quads(focus, v.tg("selectedEdge"), NamedNode(subject))
            self.add_quads(subject, v.RDF_TYPE, v.tg("EdgeSelection"))
            self.add_quads(subject, v.tg("edge"), _edge_triple(selected))
        else:
            self.add_quads(focus, v.tg("selectedChunk"), NamedNode(subject))
            self.add_quads(subject, v.RDF_TYPE, v.tg("ChunkSelection"))
            self.add_quads(subject, v.tg("document"), NamedNode(selected.item))
        self.add_quads(subject, v.tg("score"), str(selected.score))
        if selected.reasoning:
            self.add_quads(subject, v.tg("reasoning"), selected.reasoning)

    def usage(self, subject: str, trace: Trace, kind: str) -> None:
        """Write token counts and called models of steps of a kind."""
        steps = {step.iri: step for step in trace.steps if step.kind == kind}
        received = sum(step.input_tokens for step in steps.values())
        if received:
            self.add_quads(subject, v.tg("inToken"), str(received))
            returned = sum(step.output_tokens for step in steps.values())
            self.add_quads(subject, v.tg("outToken"), str(returned))
            models = (call.agent for call in trace.calls if call.step in steps and call.prompt)
            self.add_quads(subject, v.tg("llmModel"), *dict.fromkeys(models))


def _edge_triple(edge: TraceItem) -> Triple:
    return Triple(NamedNode(edge.subject), NamedNode(edge.predicate), _object_term(edge))


def _object_term(edge: TraceItem) -> NamedNode | Literal:
    if not edge.object.startswith('"'):
        return NamedNode(edge.object)
    (quad,) = parse(f"<urn:s> <urn:p> {edge.object} .", RdfFormat.N_TRIPLES)
    assert isinstance(quad.object, Literal)
    return quad.object
