"""The tree of summaries: clusters of chunks, of their summaries, and so on up, as far as it goes.

A summary is known by its members and its writer, so that a cluster that stays as it is keeps its
summary, and what comes back finds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from tgraph import vocabulary as v
from tgraph.engine.workshop import Workshop
from tgraph.errors import EndpointError, ModelError
from tgraph.index.cluster_summaries import ClusterSummary, ClusterWriter, Passage, QuotingWriter
from tgraph.index.mixture import Limits, soft_clusters
from tgraph.index.sources import Texts, document_of_chunk, text_value
from tgraph.index.tree import (
    TreeNode,
    is_chunk,
    standing_tree,
    summary_iri,
    summary_key,
    summary_text,
    summary_title,
)
from tgraph.index.vectors import VectorSet, build
from tgraph.models.tokens import count_tokens
from tgraph.record.agents import agent_quads
from tgraph.record.trees import ClusterSummarising, summary_quads, tree_quads

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

STAGE = "Summarising clusters"
UNUSABLE = "summary of a cluster whose reply can't be used"


@dataclass(frozen=True, slots=True)
class _Made:
    """A summary, who wrote it, and why not who was asked."""

    summary: ClusterSummary
    writer: ClusterWriter
    error: str = ""


def wants_tree(shop: Workshop) -> bool:
    """Whether there is to be a tree: by the settings, or because there is one."""
    return shop.settings.raptor.enabled or bool(standing_tree(shop.copy.store))


def grow(shop: Workshop, chunks: VectorSet, previous: VectorSet | None) -> VectorSet:
    """Bring the tree up to date with the chunks; the vectors of its summaries."""
    tree = _Growth(shop, previous)
    nodes, vectors = list(chunks.keys), chunks
    for level in range(1, shop.settings.raptor.levels + 1):
        grown = tree.level(level, nodes, vectors)
        if grown is None:
            break
        nodes, vectors = grown
    tree.clear()
    return tree.vectors


class _Growth:
    """The tree as it grows in a run."""

    def __init__(self, shop: Workshop, previous: VectorSet | None) -> None:
        self._shop = shop
        self._previous = previous
        self._writer = shop.parts.cluster_writer
        self._texts = Texts(shop.copy.store, shop.librarian)
        self._standing = standing_tree(shop.copy.store)
        self._tree: dict[str, TreeNode] = {}
        self._rows: dict[str, NDArray[float64]] = {}
        self.vectors = self._embedded()

    def _embedded(self) -> VectorSet:
        """The vectors of the summaries so far; a text that was embedded is not embedded again."""
        store = self._shop.copy.store
        items = [(iri, summary_text(store, iri)) for iri in self._tree]
        shown = partial(self._shop.show, "Embedding", detail="summaries")
        known = self._previous
        found = build("summary", items, self._shop.embedder, known, shown, self._shop.record.call)
        if len(found):
            self._previous = found if known is None or len(found) >= len(known) else known
        return found

    def level(
        self, level: int, nodes: Sequence[str], vectors: VectorSet
    ) -> tuple[list[str], VectorSet] | None:
        """One more level above the nodes: what the next is made of; None where there is none."""
        if len(nodes) < 2:
            return None
        self._rows.update(_means(vectors))
        groups = self._groups(nodes)
        alone = {group[0] for group in groups if len(group) == 1}
        clusters = [group for group in groups if len(group) > 1]
        taken = {node for group in clusters for node in group}
        above = len(clusters) + len(alone - taken)
        if not clusters or (level > 1 and above >= len(nodes)):
            return None
        made = [self._summarised(level, group) for group in self._in_turn(clusters)]
        self.vectors = self._embedded()
        return [*made, *sorted(alone - taken)], self.vectors

    def _groups(self, nodes: Sequence[str]) -> list[tuple[str, ...]]:
        import numpy as np

        raptor = self._shop.settings.raptor
        limits = Limits(raptor.dimensions, raptor.threshold, raptor.max_cluster_tokens)
        matrix = np.stack([self._rows[node] for node in nodes])
        clusters = soft_clusters(matrix, [self._size(node) for node in nodes], limits)
        return [tuple(sorted(nodes[at] for at in rows)) for rows in clusters]

    def _size(self, node: str) -> int:
        if is_chunk(node):
            return int(text_value(self._shop.copy.store, node, v.tg("tokenCount")) or 0)
        return count_tokens(summary_text(self._shop.copy.store, node))

    def _in_turn(
        self, clusters: Sequence[tuple[str, ...]]
    ) -> Iterator[tuple[tuple[str, ...], _Made | None, datetime]]:
        """Each cluster with its summary; None where it is on record."""
        shop, store = self._shop, self._shop.copy.store
        missing = [c for c in clusters if not summary_text(store, self._iri(c, self._writer))]
        kept = [cluster for cluster in clusters if cluster not in set(missing)]
        for cluster in kept:
            yield cluster, None, shop.clock()
        shop.show(STAGE, 0, len(missing))
        by_model = self._writer.agent.kind == "model"
        results = shop.each(missing, self._write, by_model=by_model)
        for done, (cluster, made, began) in enumerate(results, 1):
            yield cluster, made, began
            shop.show(STAGE, done, len(missing))

    def _iri(self, members: Sequence[str], writer: ClusterWriter) -> str:
        return summary_iri(summary_key(members, writer.key))

    def _write(self, members: Sequence[str]) -> _Made:
        """The summary, from any thread; a reply that can't be used costs it, not the run."""
        passages = [self._passage(member) for member in members]
        try:
            return _Made(self._writer.write(passages, self._shop.record.call), self._writer)
        except EndpointError:
            raise
        except ModelError as error:
            standin = QuotingWriter(self._shop.settings.raptor.max_words)
            return _Made(standin.write(passages), standin, str(error))

    def _passage(self, node: str) -> Passage:
        store = self._shop.copy.store
        if is_chunk(node):
            title = text_value(store, document_of_chunk(node), v.dcterms("title"))
            return Passage(title, self._texts.of_chunk(node))
        return Passage(summary_title(store, node), summary_text(store, node))

    def _summarised(
        self, level: int, result: tuple[tuple[str, ...], _Made | None, datetime]
    ) -> str:
        """Put the summary on record where it is new, and into the tree; its IRI."""
        members, made, began = result
        shop, writer = self._shop, made.writer if made else self._writer
        node = TreeNode(self._iri(members, writer), level, members)
        if made is not None and not summary_text(shop.copy.store, node.iri):
            how = ClusterSummarising(
                shop.run, writer.agent, writer.prompts, began, shop.clock(), made.error
            )
            key = summary_key(members, writer.key)
            shop.copy.add(summary_quads(node, key, made.summary, how))
            shop.copy.add([*agent_quads([writer.agent]), *shop.record.prompts(writer.prompts)])
        if made is not None:
            shop.record.write_calls(shop.copy)
            shop.record.dropped.update(made.summary.dropped)
            if made.error:
                shop.record.dropped[UNUSABLE] += 1
                shop.message(f"A cluster is summarised by quotations: {made.error}")
        before = self._standing.get(node.iri)
        if before is not None and before != node:
            shop.copy.remove(tree_quads(before))
        shop.copy.add(tree_quads(node))
        self._tree[node.iri] = node
        return node.iri

    def clear(self) -> None:
        """What is in the tree no more leaves knowledge; its record stays."""
        for iri, node in self._standing.items():
            if iri not in self._tree:
                self._shop.copy.remove(tree_quads(node))


def _means(vectors: VectorSet) -> dict[str, NDArray[float64]]:
    """One unit vector for each IRI: the mean of its windows."""
    import numpy as np

    if not len(vectors):
        return {}
    total = np.zeros((len(vectors), vectors.dimension))
    np.add.at(total, vectors.owners, vectors.matrix.astype(np.float64))
    total /= np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-12)
    return {iri: total[place] for place, iri in enumerate(vectors.keys)}
