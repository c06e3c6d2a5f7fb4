"""The record of summaries: description summaries, cluster summaries, and chunk contexts."""

from __future__ import annotations

from dataclasses import dataclass

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.extract.summaries import Summary
from tgraph.index.cluster_summaries import ClusterSummary
from tgraph.index.descriptions import Described
from tgraph.index.summary_tree import TreeNode
from tgraph.record.activities import Authorship, state_entity
from tgraph.store.statements import Statements, build_statements, iri_node


def state_summary(
    out: Statements, described: Described, summary: str, text: Summary, how: Authorship
) -> None:
    """State the summary with the given IRI: making activity, summary, and sentences in order."""
    by = how.activity(
        "summarising", ("Summarising",), "Summary of descriptions", summary, dropped=text.dropped
    ).state(out)
    originals = described.originals
    state_entity(
        out,
        summary,
        "DescriptionSummary",
        (v.tg("text"), text.text),
        (v.prov("generatedAtTime"), how.ended),
        (v.tg("summarises"), iri_node(described.subject)),
        by=by,
        origins=sorted({evidence for original in originals for evidence in original.evidence}),
    )
    for index, sentence in enumerate(text.sentences):
        name = f"{summary}:{index}"
        state_entity(
            out,
            name,
            "SummarySentence",
            (v.tg("text"), sentence.text),
            (v.dcterms("isPartOf"), iri_node(summary)),
            (v.tg("index"), index),
            by=by,
            origins=sorted(
                {evidence for at in sentence.rests_on for evidence in originals[at].evidence}
            ),
        )
        out.add(summary, (v.tg("sentence"), iri_node(name)))


@dataclass(frozen=True, slots=True)
class ChunkContext:
    """A chunk's context; ``key`` identifies the input and maker.

    The link between chunk and current context is knowledge; the context's making is source, and
    remains after another context replaces it."""

    chunk: str
    document: str
    text: str
    key: str

    @property
    def iri(self) -> str:
        return f"{v.URN}context:{v.digest_parts(self.chunk, self.key, self.text)}"


def context_link(chunk: str, context: str) -> Quad:
    """Return the knowledge quad linking the chunk to the context."""
    return Quad(NamedNode(chunk), v.tg("context"), NamedNode(context), v.KNOWLEDGE_GRAPH)


def context_quads(made: ChunkContext, how: Authorship) -> list[Quad]:
    """Return context quads plus the making activity, part of the run."""
    out = Statements(v.SOURCE_GRAPH)
    by = how.activity(
        "situating", ("Situating",), "Context of a chunk", made.iri, used=(made.chunk,)
    ).state(out)
    state_entity(
        out,
        made.iri,
        "ChunkContext",
        (v.tg("text"), made.text),
        (v.tg("inputHash"), made.key),
        by=by,
        origins=(made.chunk, made.document),
    )
    return out.quads


def tree_quads(node: TreeNode) -> list[Quad]:
    """Return knowledge quads of a standing summary, with level and members."""
    return build_statements(
        v.KNOWLEDGE_GRAPH,
        node.iri,
        (v.RDF_TYPE, v.tg("Summary")),
        (v.tg("level"), node.level),
        (v.tg("member"), map(iri_node, node.members)),
    )


def cluster_summary_quads(
    node: TreeNode, key: str, summary: ClusterSummary, how: Authorship
) -> list[Quad]:
    """Return summary quads, derived from the members, plus the making activity, part of the
    run."""
    out = Statements(v.SOURCE_GRAPH)
    kinds, label = ("ClusterSummarising",), "Summary of a cluster"
    activity = how.activity("cluster-summarising", kinds, label, node.iri, dropped=summary.dropped)
    by = activity.state(out)
    state_entity(
        out,
        node.iri,
        "SummaryRecord",
        (v.tg("text"), summary.text),
        (v.tg("inputHash"), key),
        label=summary.title,
        by=by,
        origins=node.members,
    )
    return out.quads
