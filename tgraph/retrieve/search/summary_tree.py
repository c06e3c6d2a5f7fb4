"""RAPTOR's two searches of the summary tree (Sarthi and others 2024, section 3).

Collapsed tree search ranks summaries of all levels and chunks together, so that a question
finds a suitable level of generality. Tree traversal starts at the top and follows the best
nodes of each level down."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from tgraph.index.summary_tree import (
    TreeNode,
    is_chunk,
    standing_tree,
    summary_texts,
    ways_down,
)
from tgraph.model import Candidate, Evidence, Item, RankedOrder, Retrieval
from tgraph.retrieve.base import Context, Question, in_conversation
from tgraph.retrieve.candidates import chunk_evidence, chunk_item, chunk_tokens, cost_of
from tgraph.retrieve.modes.raptor import RaptorSearchSettings
from tgraph.retrieve.orders import (
    MOST_BEYOND,
    CutOff,
    CutOffs,
    Hits,
    Missing,
    RecordedSearch,
    cut_order,
    list_hit_iris,
)
from tgraph.retrieve.reasons import WordedReason, explain


class CollapsedTree:
    """A retriever for the mode ``raptor``: nearest nodes to the question, from all levels."""

    step = "TreeSearch"
    matches_entities = False

    def __init__(self, settings: RaptorSearchSettings) -> None:
        self._settings = settings

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        settings, vector = self._settings, context.embed([in_conversation(question)])
        hits = nearest_nodes(vector, _hit_count(settings, context), settings, context)
        why = "{item} is {place} nodes of the tree by similarity to {question}, and the first"
        total = _count_nodes(settings, context)
        orders = cut_by_likeness(hits, settings, "k", "node", (why, "were taken"), total)
        best = select_hits(hits, settings.k, settings)
        return _build_retrieval(best, vector, settings.evidence_limit, orders, context)


class TreeTraversal:
    """A retriever for the mode ``raptor-traversal``: best top nodes, then best nodes below,
    level by level."""

    step = "TreeSearch"
    matches_entities = False

    def __init__(self, settings: RaptorSearchSettings) -> None:
        self._settings = settings

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        settings, vector = self._settings, context.embed([in_conversation(question)])
        every = list(traverse_layers(vector, settings, context))
        chosen = [hit for layer in every for hit in select_hits(layer, settings.top_k, settings)]
        orders: list[RankedOrder] = []
        for depth, layer in reversed(list(enumerate(every, 1))):
            why = (
                f"in layer {depth} from the top of the tree {{item}} is {{place}} by similarity to"
            )
            reason = f"{why} {{question}}, and", "were followed"
            orders += cut_by_likeness(layer, settings, "top_k", "layer", reason)
        return _build_retrieval(chosen, vector, settings.evidence_limit, tuple(orders), context)


def select_hits(hits: Hits, nearest: int, own: RaptorSearchSettings) -> Hits:
    """Select sorted hits: the ``nearest`` first hits, or all hits above the settings'
    similarity threshold."""
    if own.threshold is None:
        return hits[:nearest]
    return [hit for hit in hits if hit[1] >= own.threshold]


def _hit_count(own: RaptorSearchSettings, context: Context) -> int:
    """Return the necessary hit count per node kind, so that no selected node is missed."""
    return own.k if own.threshold is None else _largest_node_count(context)


def _largest_node_count(context: Context) -> int:
    """Return the larger node count of the two kinds, summaries and chunks."""
    return max(1, *(len(context.vectors[kind]) for kind in ("summary", "chunk")))


def _searched_levels(own: RaptorSearchSettings, context: Context) -> range | None:
    """Return the tree levels to search, lowest first; None for all levels."""
    if own.start_layer is None and own.num_layers is None:
        return None
    top = max((node.level for node in tree_of(context).values()), default=0)
    start = top if own.start_layer is None else min(own.start_layer, top)
    lowest = 0 if own.num_layers is None else max(0, start - own.num_layers + 1)
    return range(lowest, start + 1)


def nearest_nodes(vector: object, count: int, own: RaptorSearchSettings, context: Context) -> Hits:
    """Return summaries and chunks of the searched levels, nearest first, at most ``count`` per
    kind plus further hits."""
    searched, tree = _searched_levels(own, context), tree_of(context)
    hits: list[tuple[str, float]] = []
    for kind in ("summary", "chunk"):
        vectors = context.vectors[kind]
        if searched is None:
            hits += vectors.search(vector, count, beyond=MOST_BEYOND)[0]  # type: ignore[arg-type]
        elif among := [iri for iri in vectors.keys if _tree_level(iri, tree) in searched]:
            hits += vectors.search(vector, count, among, MOST_BEYOND)[0]  # type: ignore[arg-type]
    return sorted(hits, key=lambda hit: (-hit[1], hit[0]))


def _tree_level(node: str, tree: Mapping[str, TreeNode]) -> int:
    """Return a node's tree level; 0 for chunks."""
    return tree[node].level if node in tree else 0


def traverse_layers(vector: object, own: RaptorSearchSettings, context: Context) -> Iterator[Hits]:
    """Yield tree layers in traversal order; below the first layer, only children of selected
    nodes follow.

    Each layer is complete and starts with the node nearest to the question. The first layer
    holds nodes without a parent; if the settings choose a start level, the layer holds all
    nodes of this level and parentless nodes of lower levels. ``select_hits`` chooses the nodes
    to follow."""
    tree, searched = tree_of(context), _searched_levels(own, context)
    chosen: set[str] = set()
    below = {member for node in tree.values() for member in node.members}
    nodes = (*tree, *context.vectors["chunk"].keys)
    level = dict.fromkeys(iri for iri in nodes if iri not in below)
    if searched is not None:
        first = searched[-1]
        level = {
            iri: None
            for iri in nodes
            if _tree_level(iri, tree) == first or (iri in level and _tree_level(iri, tree) < first)
        }
    count = _largest_node_count(context) if own.num_layers is None else own.num_layers
    while level and count:
        count -= 1
        near = [hit for hit in _rank_nodes(level, vector, context) if hit[0] not in chosen]
        yield near
        followed = [iri for iri, _ in select_hits(near, own.top_k, own)]
        chosen.update(followed)
        level = dict.fromkeys(m for iri in followed if iri in tree for m in tree[iri].members)


def tree_of(context: Context) -> Mapping[str, TreeNode]:
    """Return the published state's summary tree, read once."""
    return context.read_once("tree of summaries", lambda: standing_tree(context.store))


def _rank_nodes(nodes: Mapping[str, None], vector: object, context: Context) -> Hits:
    """Rank nodes by similarity to the question, nearest first."""
    chunks = [node for node in nodes if is_chunk(node)]
    summaries = [node for node in nodes if not is_chunk(node)]
    hits: list[tuple[str, float]] = []
    for kind, members in (("chunk", chunks), ("summary", summaries)):
        if members:
            hits += context.vectors[kind].search(vector, len(members), members)[0]  # type: ignore[arg-type]
    return sorted(hits, key=lambda hit: (-hit[1], hit[0]))


def _count_nodes(own: RaptorSearchSettings, context: Context) -> int:
    """How many summaries and chunks the searched levels have."""
    searched, tree = _searched_levels(own, context), tree_of(context)
    sets = [context.vectors[kind] for kind in ("summary", "chunk")]
    if searched is None:
        return sum(map(len, sets))
    return sum(_tree_level(iri, tree) in searched for vectors in sets for iri in vectors.keys)


def _build_retrieval(
    hits: Hits,
    vector: object,
    limit: int,
    orders: tuple[RankedOrder, ...],
    context: Context,
) -> Retrieval:
    """Build a retrieval: one candidate per hit, in hit order."""
    chunks = [iri for iri, _ in hits if is_chunk(iri)]
    chunk_places = chunk_evidence(context, chunks)
    tokens = chunk_tokens(context, list(chunk_places))
    texts = _read_texts(context, [iri for iri, _ in hits if not is_chunk(iri)])
    rows: list[tuple[Item, float, tuple[Evidence, ...], int, WordedReason]] = []
    for iri, score in hits:
        if iri in chunk_places:
            item = chunk_item(chunk_places[iri], context)
            cost = cost_of(item, tokens.get(iri))
            why = explain("chunk-similarity", score=score)
            rows.append((item, score, (chunk_places[iri],), cost, why))
        elif not is_chunk(iri):
            item = Item("summary", iri, *texts.get(iri, ("", "")))
            places = summary_evidence(item, vector, limit, context)
            level = tree_of(context)[iri].level
            if places:
                why = explain("summary-similarity", level=level, score=score)
                rows.append((item, score, places, cost_of(item), why))
    candidates = tuple(
        Candidate(
            item,
            rank,
            min(1.0, max(0.0, score)),
            evidence=places,
            reasons=(why,),
            tokens=cost,
        )
        for rank, (item, score, places, cost, why) in enumerate(rows, 1)
    )
    return Retrieval(candidates, 0, len(candidates), orders=orders)


def _read_texts(context: Context, summaries: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Read titles and texts of summaries."""
    memory = context.open_cache("texts of summaries", 20_000)
    return memory.get_all(summaries, lambda missing: summary_texts(context.store, missing))


def summary_evidence(
    item: Item, vector: object, limit: int, context: Context
) -> tuple[Evidence, ...]:
    """Return a summary's evidence: quoted sentences, otherwise underlying chunks nearest to the
    question, at most ``limit``.

    ``via`` lists the summaries between the summary and each chunk."""
    ways = ways_down(tree_of(context), item.iri)
    chunk_places = chunk_evidence(context, sorted(ways))
    quoted = [
        replace(place, via=ways[place.chunk])
        for place in _find_quotes(item.text, list(chunk_places.values()))
    ]
    if quoted:
        return tuple(quoted)
    near = context.vectors["chunk"].search(vector, limit, list(chunk_places))[0]  # type: ignore[arg-type]
    return tuple(replace(chunk_places[chunk], via=ways[chunk]) for chunk, _ in near)


def _find_quotes(text: str, places: Sequence[Evidence]) -> Iterator[Evidence]:
    """Yield exact evidence for each text line, taken from the first place containing the line."""
    for line in text.split("\n"):
        words = line.split()
        if not words:
            continue
        pattern = re.compile(r"\s+".join(map(re.escape, words)))
        for place in places:
            if match := pattern.search(place.quote):
                start = place.start + match.start()
                yield replace(
                    place, start=start, end=start + len(match.group()), quote=match.group()
                )
                break


def cut_by_likeness(
    hits: Hits,
    own: RaptorSearchSettings,
    limit: str,
    kind: str,
    reason: tuple[str, str],
    total: int = 0,
) -> tuple[RankedOrder, ...]:
    """Return nodes beyond the selected nodes: beyond the count of setting ``limit``, or below
    the similarity threshold.

    The reason has two parts: text before and after the number of selected nodes."""
    count = int(getattr(own, limit))
    how, name = f"{count}", limit.replace("_", "-")
    if own.threshold is not None:
        count, name = len(select_hits(hits, count, own)), "threshold"
        how = f"{count} with a similarity of at least {own.threshold:g}"
    before, after = reason
    why = f"{before} {how} {after} ({name})"
    return cut_order(kind, name, count, list_hit_iris(hits), why, total=total)


def unsearched_levels(missing: Missing, search: RecordedSearch, context: Context) -> CutOffs:
    """Return the level limit if no searched level contains the missing item."""
    settings, tree = context.settings.raptor_search, tree_of(context)
    searched = _searched_levels(settings, context)
    levels = {_tree_level(iri, tree) for iri in _find_carriers(missing, context)}
    if searched is not None and levels and not levels & set(searched):
        low, high = searched[0], searched[-1]
        here = ", ".join(map(str, sorted(levels)))
        why = f"the text is on level {here} of the tree, and levels {low} to {high} were searched"
        yield CutOff("num-layers", settings.num_layers, None, f"{why} (start-layer, num-layers)")


def _find_carriers(missing: Missing, context: Context) -> set[str]:
    """Return chunks containing the missing item, and summaries mentioning the missing item."""
    return {*missing.chunks, *(iri for iri in tree_of(context) if missing.tells(iri))}


def nodes_above(tree: Mapping[str, TreeNode], items: Collection[str]) -> set[str]:
    """Return the items and all ancestor nodes in the tree."""
    nodes = set(items)
    for node in tree.values():  # in the order of their levels
        if nodes.intersection(node.members):
            nodes.add(node.iri)
    return nodes
