"""The tree of summaries as the graph holds it (RAPTOR, Sarthi and others 2024).

Its leaves are the standing chunks; each summary is of a cluster of what lies below it. What stands
is knowledge (level, members); how each summary came about, with its text, is in the source graph.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.index.sources import text_value
from tgraph.store.base import Store, select, text_of


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
    levels: dict[str, int] = {}
    members: defaultdict[str, list[str]] = defaultdict(list)
    for row in select(store, "retrieve/tree", union=False):
        summary, member = text_of(row["summary"]), row["member"]
        levels.setdefault(summary, int(text_of(row["level"]) or 1))
        if isinstance(member, NamedNode):
            members[summary].append(member.value)
    found = (TreeNode(s, level, tuple(sorted({*members[s]}))) for s, level in levels.items())
    return {node.iri: node for node in sorted(found, key=lambda node: (node.level, node.iri))}


def summary_texts(store: Store, summaries: Sequence[str]) -> dict[str, tuple[str, str]]:
    """What each summary on record is called, and what it says."""
    items = [NamedNode(summary) for summary in summaries]
    rows = select(store, "retrieve/texts", {"items": items}) if items else []
    return {text_of(row["item"]): (text_of(row["label"]), text_of(row["text"])) for row in rows}


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
