"""The graph's tree of summaries (RAPTOR, Sarthi and others 2024).

The leaves are standing chunks; each summary covers a cluster of nodes below. The current tree
is knowledge (level, members); the origin of each summary, with its text, is in the source
graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.index.sources import text_value
from tgraph.store.base import Store, select_rows, text_of


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A summary with its level (1 lies directly above chunks) and its members, chunks or
    summaries."""

    iri: str
    level: int
    members: tuple[str, ...]


def summary_key(members: Iterable[str], writer_key: str) -> str:
    """Return a key identifying a summary by members and writer."""
    return v.digest_parts("tree", writer_key, *sorted(members))


def summary_iri(key: str) -> str:
    return f"{v.URN}summary:{key}"


def is_chunk(iri: str) -> bool:
    return iri.startswith(f"{v.URN}chunk:")


def standing_tree(store: Store) -> dict[str, TreeNode]:
    """Return knowledge summaries by IRI, sorted by level and IRI."""
    levels: dict[str, int] = {}
    members: defaultdict[str, list[str]] = defaultdict(list)
    for row in select_rows(store, "retrieve/tree"):
        summary, member = text_of(row["summary"]), row["member"]
        levels.setdefault(summary, int(text_of(row["level"]) or 1))
        if isinstance(member, NamedNode):
            members[summary].append(member.value)
    nodes = (TreeNode(s, level, tuple(sorted({*members[s]}))) for s, level in levels.items())
    return {node.iri: node for node in sorted(nodes, key=lambda node: (node.level, node.iri))}


def summary_texts(store: Store, summaries: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return title and text of each recorded summary."""
    items = [NamedNode(summary) for summary in summaries]
    rows = select_rows(store, "retrieve/texts", {"items": items}) if items else []
    return {text_of(row["item"]): (text_of(row["label"]), text_of(row["text"])) for row in rows}


def summary_text(store: Store, summary: str) -> str:
    """Return a summary's text; empty for unrecorded summaries."""
    return text_value(store, summary, v.tg("text"))


def summary_title(store: Store, summary: str) -> str:
    return text_value(store, summary, v.RDFS_LABEL)


def ways_down(tree: Mapping[str, TreeNode], summary: str) -> dict[str, tuple[str, ...]]:
    """Return chunks below a summary, each with the summaries on the shortest path, starting
    from the given summary."""
    ways_by_chunk: dict[str, tuple[str, ...]] = {}
    level: Sequence[tuple[str, tuple[str, ...]]] = [(summary, ())]
    visited_summaries = {summary}
    while level:
        below = []
        for node, way in level:
            for member in tree[node].members if node in tree else ():
                if is_chunk(member):
                    ways_by_chunk.setdefault(member, (*way, node))
                elif member not in visited_summaries:
                    visited_summaries.add(member)
                    below.append((member, (*way, node)))
        level = below
    return ways_by_chunk
