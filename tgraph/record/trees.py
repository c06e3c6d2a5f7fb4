"""The record of the tree of summaries: what each is derived from, who wrote it, by which prompt."""

from __future__ import annotations

from pyoxigraph import Quad

from tgraph import vocabulary as v
from tgraph.index.cluster_summaries import ClusterSummary
from tgraph.index.tree import TreeNode
from tgraph.record.activities import Authorship, state_entity
from tgraph.store.statements import Statements, iri


def tree_quads(node: TreeNode) -> list[Quad]:
    """What knowledge says: the summary stands, at this level, for these members."""
    out = Statements(v.KNOWLEDGE_GRAPH)
    out.add(
        node.iri,
        (v.RDF_TYPE, v.tg("Summary")),
        (v.tg("level"), node.level),
        (v.tg("member"), map(iri, node.members)),
    )
    return out.quads


def summary_quads(node: TreeNode, key: str, summary: ClusterSummary, how: Authorship) -> list[Quad]:
    """The summary, derived from its members, and the activity that made it as a part of the run."""
    out = Statements(v.SOURCE_GRAPH)
    activity = how.activity(
        "cluster-summarising",
        ("ClusterSummarising",),
        "Summary of a cluster",
        node.iri,
        dropped=summary.dropped,
    )
    activity.state(out)
    state_entity(
        out,
        node.iri,
        "SummaryRecord",
        (v.tg("text"), summary.text),
        (v.tg("inputHash"), key),
        label=summary.title,
        by=activity.iri,
        origins=node.members,
    )
    return out.quads
