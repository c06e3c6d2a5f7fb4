"""The summary tree: clusters of chunks, clusters of their summaries, and further levels as far
as possible.

A summary is identified by members and writer, so that an unchanged cluster keeps its summary
and a recurring cluster finds it again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from tgraph import vocabulary as v
from tgraph.engine.index.phase import IndexContext, Made, Phase
from tgraph.index.cluster_summaries import (
    ClusterPassage,
    ClusterSummary,
    ClusterWriter,
    QuotingWriter,
)
from tgraph.index.gaussian_mixture import Limits, soft_clusters
from tgraph.index.sources import Texts, document_of_chunk, text_value
from tgraph.index.summary_tree import (
    TreeNode,
    is_chunk,
    standing_tree,
    summary_iri,
    summary_key,
    summary_text,
    summary_title,
)
from tgraph.index.vectors.base import VectorIndex
from tgraph.models.base import CallSink
from tgraph.models.tokens import count_tokens
from tgraph.record.summaries import cluster_summary_quads, tree_quads

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray


def wants_tree(context: IndexContext) -> bool:
    """Tell whether a summary tree is needed: enabled by settings, or already present."""
    return context.settings.raptor.enabled or bool(standing_tree(context.copy.store))


def grow_tree(
    context: IndexContext, chunks: VectorIndex, previous: VectorIndex | None
) -> VectorIndex:
    """Update the summary tree for the chunks and return summary vectors."""
    tree = _Tree(context, previous)
    nodes, vectors = list(chunks.keys), chunks
    for level in range(1, context.settings.raptor.levels + 1):
        grown = tree.add_level(level, nodes, vectors)
        if grown is None:
            break
        nodes, vectors = grown
    tree.clear()
    return tree.vectors


class _Tree(Phase[tuple[str, ...], ClusterSummary, ClusterWriter]):
    """A summary tree growing during a run; each item holds the members of a cluster."""

    stage = "Summarising clusters"
    unusable = "summary of a cluster whose reply can't be used"

    def __init__(self, context: IndexContext, previous: VectorIndex | None) -> None:
        super().__init__(context, context.parts.cluster_writer)
        self._previous = previous
        self._store = context.copy.store
        self._texts = Texts(self._store, context.librarian)
        self._standing = standing_tree(self._store)
        self._tree: dict[str, TreeNode] = {}
        self._rows: dict[str, NDArray[float64]] = {}
        self._level = 0
        self._grown: list[str] = []
        self.vectors = self._embed_summaries()

    def _embed_summaries(self) -> VectorIndex:
        """Return vectors of all summaries so far, without embedding the same text twice."""
        context = self.context
        items = [(iri, summary_text(self._store, iri)) for iri in self._tree]
        progress = partial(context.report_progress, "Embedding", detail="summaries")
        previous = self._previous
        vectors = context.parts.vector_store.build_vectors(
            "summary", items, context.embedder, previous, progress, context.record.call
        )
        if len(vectors):
            self._previous = (
                vectors if previous is None or len(vectors) >= len(previous) else previous
            )
        return vectors

    def add_level(
        self, level: int, nodes: Sequence[str], vectors: VectorIndex
    ) -> tuple[list[str], VectorIndex] | None:
        """Add a tree level above the nodes. Return its nodes and vectors, or None if no level
        follows."""
        if len(nodes) < 2:
            return None
        self._level = level
        self._rows.update(_mean_vectors(vectors))
        groups = self._cluster_nodes(nodes)
        alone = {group[0] for group in groups if len(group) == 1}
        clusters = [group for group in groups if len(group) > 1]
        clustered = {node for group in clusters for node in group}
        above = len(clusters) + len(alone - clustered)
        if not clusters or (level > 1 and above >= len(nodes)):
            return None
        self._grown = []
        self._summarise_clusters(clusters)
        self.vectors = self._embed_summaries()
        return [*self._grown, *sorted(alone - clustered)], self.vectors

    def _cluster_nodes(self, nodes: Sequence[str]) -> list[tuple[str, ...]]:
        import numpy as np

        raptor = self.context.settings.raptor
        limits = Limits(raptor.dimensions, raptor.threshold, raptor.max_cluster_tokens)
        matrix = np.stack([self._rows[node] for node in nodes])
        clusters = soft_clusters(matrix, [self._count_node_tokens(node) for node in nodes], limits)
        return [tuple(sorted(nodes[at] for at in rows)) for rows in clusters]

    def _count_node_tokens(self, node: str) -> int:
        if is_chunk(node):
            return int(text_value(self._store, node, v.tg("tokenCount")) or 0)
        return count_tokens(summary_text(self._store, node))

    def _summarise_clusters(self, clusters: Sequence[tuple[str, ...]]) -> None:
        """Summarise each cluster, placing recorded summaries first."""
        missing = [c for c in clusters if not summary_text(self._store, self._cluster_iri(c))]
        new = set(missing)
        for cluster in clusters:
            if cluster not in new:
                self._place_node(TreeNode(self._cluster_iri(cluster), self._level, cluster))
        self.run(missing)

    def _cluster_iri(self, members: Sequence[str]) -> str:
        return summary_iri(summary_key(members, self.maker.key))

    def produce_result(
        self, item: tuple[str, ...], maker: ClusterWriter, sink: CallSink
    ) -> ClusterSummary:
        return maker.write([self._node_passage(member) for member in item], sink)

    def _node_passage(self, node: str) -> ClusterPassage:
        if is_chunk(node):
            title = text_value(self._store, document_of_chunk(node), v.dcterms("title"))
            return ClusterPassage(title, self._texts.of_chunk(node))
        return ClusterPassage(summary_title(self._store, node), summary_text(self._store, node))

    def stand_in(self) -> ClusterWriter:
        return QuotingWriter(self.context.settings.raptor.max_words)

    def complaint(self, item: tuple[str, ...], made: Made[ClusterSummary, ClusterWriter]) -> str:
        return f"A cluster is summarised by quotations: {made.error}"

    def count_dropped(self, made: Made[ClusterSummary, ClusterWriter]) -> dict[str, int]:
        return {**made.result.dropped, **super().count_dropped(made)}

    def record(
        self,
        item: tuple[str, ...],
        made: Made[ClusterSummary, ClusterWriter],
        began: datetime,
    ) -> None:
        context, by = self.context, made.by
        key = summary_key(item, by.key)
        node = TreeNode(summary_iri(key), self._level, item)
        if not summary_text(self._store, node.iri):
            how = self.authorship(made, began)
            context.copy.add(cluster_summary_quads(node, key, made.result, how))
            self.credit(by)
        self._place_node(node)

    def _place_node(self, node: TreeNode) -> None:
        """Place a recorded summary node into the tree."""
        before = self._standing.get(node.iri)
        if before is not None and before != node:
            self.context.copy.remove(tree_quads(before))
        self.context.copy.add(tree_quads(node))
        self._tree[node.iri] = node
        self._grown.append(node.iri)

    def clear(self) -> None:
        """Remove obsolete tree nodes from knowledge; their records remain."""
        for iri, node in self._standing.items():
            if iri not in self._tree:
                self.context.copy.remove(tree_quads(node))


def _mean_vectors(vectors: VectorIndex) -> dict[str, NDArray[float64]]:
    """Return one unit vector per IRI: the mean of its window vectors."""
    import numpy as np

    if not len(vectors):
        return {}
    total = np.zeros((len(vectors), vectors.dimension))
    places = np.arange(len(vectors))
    windows = vectors.read_windows(places)
    np.add.at(total, np.repeat(places, windows.counts), windows.vectors.astype(np.float64))
    total /= np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-12)
    return {iri: total[place] for place, iri in enumerate(vectors.keys)}
