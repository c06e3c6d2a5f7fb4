"""A session in TrustGraph's own vocabulary (2.11: question, grounding, exploration, focus,
synthesis), so that its reader parses it.

Literals are plain strings there, edges are triple terms, and everything is in one graph.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, Triple, parse

from tgraph import vocabulary as v
from tgraph.explain.trace.values import Trace, TraceItem

RETRIEVAL_GRAPH = NamedNode("urn:graph:retrieval")
_Value = str | NamedNode | Triple


def trustgraph_quads(trace: Trace) -> list[Quad]:
    """The five stages, each derived from the one before, and the selections of the focus."""
    uuid = trace.explain_id.removeprefix(v.session_iri(""))
    question = f"{v.URN}question:{uuid}"
    grounding, exploration, focus, synthesis = (
        v.session_part_iri(stage, uuid)
        for stage in ("grounding", "exploration", "focus", "synthesis")
    )
    selections = {
        v.session_part_iri(s.kind, uuid, int(s.iri.rpartition(":")[2])): s
        for s in trace.selected
        if s.kind in _WAYS
    }
    out = _TrustGraphWriter()
    out.stage(question, ("Question", "GraphRagQuestion"), "GraphRAG Question")
    out.say(question, v.prov("startedAtTime"), trace.started)
    out.say(question, v.tg("query"), trace.question)
    out.stage(grounding, ("Grounding",), "Grounding", question)
    out.say(grounding, v.tg("concept"), *trace.concepts)
    out.stage(exploration, ("Exploration",), "Exploration", grounding)
    out.say(exploration, v.tg("edgeCount"), str(trace.edge_count))
    out.say(exploration, v.tg("entity"), *(NamedNode(m.entity) for m in trace.matches))
    out.stage(focus, ("Focus",), "Focus", exploration)
    out.say(focus, v.tg("selectedEdge"), *map(NamedNode, selections))
    for iri, selected in selections.items():
        out.selection(iri, selected)
    out.stage(synthesis, ("Synthesis", "Answer"), "Synthesis", focus)
    if trace.answer:
        out.say(synthesis, v.tg("document"), NamedNode(v.answer_text_iri(uuid)))
    return out.quads


_WAYS = ("edge", "chunk")
"""The kinds of selections that its vocabulary has."""


class _TrustGraphWriter:
    def __init__(self) -> None:
        self.quads: list[Quad] = []

    def say(self, subject: str, predicate: NamedNode, *values: _Value) -> None:
        for value in values:
            term = Literal(value) if isinstance(value, str) else value
            self.quads.append(Quad(NamedNode(subject), predicate, term, RETRIEVAL_GRAPH))

    def stage(
        self, subject: str, kinds: Iterable[str], label: str, derived_from: str | None = None
    ) -> None:
        types = [v.prov("Entity"), *(NamedNode(v.TG + kind) for kind in kinds)]
        self.say(subject, v.RDF_TYPE, *types)
        self.say(subject, v.RDFS_LABEL, label)
        if derived_from:
            self.say(subject, v.prov("wasDerivedFrom"), NamedNode(derived_from))

    def selection(self, subject: str, selected: TraceItem) -> None:
        if selected.kind == "edge":
            self.say(subject, v.RDF_TYPE, v.tg("EdgeSelection"))
            self.say(subject, v.tg("edge"), _triple(selected))
        else:
            self.say(subject, v.RDF_TYPE, NamedNode(v.TG + "ChunkSelection"))
            self.say(subject, v.tg("document"), NamedNode(selected.item))
        self.say(subject, v.tg("score"), str(selected.score))
        if selected.reasoning:
            self.say(subject, v.tg("reasoning"), selected.reasoning)


def _triple(edge: TraceItem) -> Triple:
    ends = NamedNode(edge.subject), NamedNode(edge.predicate)
    if edge.object.startswith('"'):
        (quad,) = parse(f"<urn:s> <urn:p> {edge.object} .", RdfFormat.N_TRIPLES)
        assert isinstance(quad.object, Literal)
        return Triple(*ends, quad.object)
    return Triple(*ends, NamedNode(edge.object))
