"""The record of the tree of summaries: what each is derived from, who wrote it, by which prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pyoxigraph import Quad

from tgraph import vocabulary as v
from tgraph.index.cluster_summaries import ClusterSummary
from tgraph.index.tree import TreeNode
from tgraph.model import Agent, Prompt
from tgraph.record.agents import associations
from tgraph.store.statements import Statements, iri


@dataclass(frozen=True, slots=True)
class ClusterSummarising:
    """The making of a summary in a run: by whom, when, and why not by who was asked."""

    run: str
    agent: Agent
    prompts: Sequence[Prompt]
    started: datetime
    ended: datetime
    error: str = ""


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


def summary_quads(
    node: TreeNode, key: str, summary: ClusterSummary, how: ClusterSummarising
) -> list[Quad]:
    """The summary, derived from its members, and the activity that made it as a part of the run."""
    out = Statements(v.SOURCE_GRAPH)
    activity = f"{v.URN}cluster-summarising:{how.run.rpartition(':')[2]}:{v.digest(node.iri)}"
    out.add(
        activity,
        (v.RDF_TYPE, [v.prov("Activity"), v.tg("ClusterSummarising")]),
        (v.RDFS_LABEL, "Summary of a cluster"),
        (v.dcterms("isPartOf"), iri(how.run)),
        (v.prov("startedAtTime"), how.started),
        (v.prov("endedAtTime"), how.ended),
        (v.tg("error"), how.error or None),
    )
    associations(out, activity, how.agent, how.prompts)
    for reason, count in sorted(summary.dropped.items()):
        dropped = f"{v.URN}prov:dropped:{v.digest(activity, reason)}"
        out.add(activity, (v.tg("dropped"), iri(dropped)))
        out.add(
            dropped, (v.RDF_TYPE, v.tg("Dropped")), (v.tg("reason"), reason), (v.tg("count"), count)
        )
    out.add(
        node.iri,
        (v.RDF_TYPE, [v.prov("Entity"), v.tg("SummaryRecord")]),
        (v.RDFS_LABEL, summary.title),
        (v.prov("wasGeneratedBy"), iri(activity)),
        (v.prov("wasDerivedFrom"), map(iri, node.members)),
        (v.tg("text"), summary.text),
        (v.tg("inputHash"), key),
    )
    return out.quads
