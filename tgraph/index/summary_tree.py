"""The tree of summaries as the graph holds it (RAPTOR, Sarthi and others 2024).

Its leaves are the standing chunks; each summary is of a cluster of what lies below it. What stands
is knowledge (level, members); how each summary came about, with its text, is in the source graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.index.sources import text_value
from tgraph.store.base import Store


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A summary: its level (1 is right above chunks) and its members, chunks or summaries."""

    iri: str
    level: int
    members: tuple[str, ...]


def summary_key(members: Iterable[str], writer_key: str) -> str:
    """What a summary is known by: its members and who wrote it, how."""
    return v.digest("tree", writer_key, *sorted(members))


def summary_iri(key: str) -> str:
    return f"{v.URN}summary:{key}"


def is_chunk(iri: str) -> bool:
    return iri.startswith(f"{v.URN}chunk:")


def standing_tree(store: Store) -> dict[str, TreeNode]:
    """The summaries that knowledge holds, by IRI, in the order of level and IRI."""
    found = []
    for quad in store.match(None, v.RDF_TYPE, v.tg("Summary"), v.KNOWLEDGE_GRAPH):
        assert isinstance(quad.subject, NamedNode)
        members = store.match(quad.subject, v.tg("member"), None, v.KNOWLEDGE_GRAPH)
        levels = store.match(quad.subject, v.tg("level"), None, v.KNOWLEDGE_GRAPH)
        level = next((q.object.value for q in levels if isinstance(q.object, Literal)), "1")
        named = sorted(q.object.value for q in members if isinstance(q.object, NamedNode))
        found.append(TreeNode(quad.subject.value, int(level), tuple(named)))
    return {node.iri: node for node in sorted(found, key=lambda node: (node.level, node.iri))}


def summary_text(store: Store, summary: str) -> str:
    """What a summary says; empty where there is no such summary on record."""
    return text_value(store, summary, v.tg("text"))


def summary_title(store: Store, summary: str) -> str:
    return text_value(store, summary, v.RDFS_LABEL)


def ways_down(tree: Mapping[str, TreeNode], summary: str) -> dict[str, tuple[str, ...]]:
    """The chunks below a summary, each with the summaries on the shortest way to it, the given one
    first."""
    found: dict[str, tuple[str, ...]] = {}
    level: Sequence[tuple[str, tuple[str, ...]]] = [(summary, ())]
    seen = {summary}
    while level:
        below = []
        for node, way in level:
            for member in tree[node].members if node in tree else ():
                if is_chunk(member):
                    found.setdefault(member, (*way, node))
                elif member not in seen:
                    seen.add(member)
                    below.append((member, (*way, node)))
        level = below
    return found
