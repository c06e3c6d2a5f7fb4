"""RAPTOR's two ways through the tree of summaries (Sarthi and others 2024, section 3).

The collapsed tree looks at summaries of all levels and chunks at once, so that a question finds the
generality it asks for. Tree traversal starts at the top and follows the best of each level down.
"""

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
    iris,
)


class CollapsedTree:
    """The mode ``raptor``: the nodes nearest to the question, of all levels."""

    step = "TreeSearch"
    matches_entities = False

    def __init__(self, settings: RaptorSearchSettings) -> None:
        self._settings = settings

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        own, vector = self._settings, context.embed([in_conversation(question)])
        hits = nearest_nodes(vector, _wanted(own, context), own, context)
        why = "{item} is {place} nodes of the tree by likeness to {question}, of which the first"
        total = _count_nodes(own, context)
        orders = cut_by_likeness(hits, own, "k", "node", (why, "were taken"), total)
        best = taken(hits, own.k, own)
        return _retrieval(best, vector, own.evidence_limit, orders, context)


class TreeTraversal:
    """The mode ``raptor-traversal``: the best of the top, then the best below them, and so on."""

    step = "TreeSearch"
    matches_entities = False

    def __init__(self, settings: RaptorSearchSettings) -> None:
        self._settings = settings

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        own, vector = self._settings, context.embed([in_conversation(question)])
        every = list(layers(vector, own, context))
        chosen = [hit for layer in every for hit in taken(layer, own.top_k, own)]
        orders: list[RankedOrder] = []
        for depth, layer in reversed(list(enumerate(every, 1))):
            why = f"in layer {depth} from the top of the tree {{item}} is {{place}} by likeness to"
            reason = f"{why} {{question}}, and", "were followed"
            orders += cut_by_likeness(layer, own, "top_k", "layer", reason)
        return _retrieval(chosen, vector, own.evidence_limit, tuple(orders), context)


def taken(hits: Hits, nearest: int, own: RaptorSearchSettings) -> Hits:
    """Of the hits, best first, so many, or those that are like enough, as the settings select."""
    if own.threshold is None:
        return hits[:nearest]
    return [hit for hit in hits if hit[1] >= own.threshold]


def _wanted(own: RaptorSearchSettings, context: Context) -> int:
    """How many nodes of a kind must be known, so that none that is taken is missed."""
    return own.k if own.threshold is None else _most(context)


def _most(context: Context) -> int:
    """The nodes of the kind that has most."""
    return max(1, *(len(context.vectors[kind]) for kind in ("summary", "chunk")))


def _searched(own: RaptorSearchSettings, context: Context) -> range | None:
    """The levels of the tree that the settings leave, from the lowest; None for all."""
    if own.start_layer is None and own.num_layers is None:
        return None
    top = max((node.level for node in tree_of(context).values()), default=0)
    start = top if own.start_layer is None else min(own.start_layer, top)
    lowest = 0 if own.num_layers is None else max(0, start - own.num_layers + 1)
    return range(lowest, start + 1)


def nearest_nodes(vector: object, count: int, own: RaptorSearchSettings, context: Context) -> Hits:
    """Summaries and chunks of the levels that are searched, of each at most ``count`` and some
    more, nearest to the question first."""
    searched, tree = _searched(own, context), tree_of(context)
    found: list[tuple[str, float]] = []
    for kind in ("summary", "chunk"):
        vectors = context.vectors[kind]
        if searched is None:
            found += vectors.search(vector, count, beyond=MOST_BEYOND)[0]  # type: ignore[arg-type]
        elif among := [iri for iri in vectors.keys if _level(iri, tree) in searched]:
            found += vectors.search(vector, count, among, MOST_BEYOND)[0]  # type: ignore[arg-type]
    return sorted(found, key=lambda hit: (-hit[1], hit[0]))


def _level(node: str, tree: Mapping[str, TreeNode]) -> int:
    """The level of the tree: 0 for chunks."""
    return tree[node].level if node in tree else 0


def layers(vector: object, own: RaptorSearchSettings, context: Context) -> Iterator[Hits]:
    """The layers of the tree as a traversal comes to them that follows what is ``taken`` of each;
    each layer whole, nearest to the question first. It begins with what is part of nothing larger,
    at a level to start from also with all that is of that level."""
    tree, searched = tree_of(context), _searched(own, context)
    chosen: set[str] = set()
    below = {member for node in tree.values() for member in node.members}
    nodes = (*tree, *context.vectors["chunk"].keys)
    level = dict.fromkeys(iri for iri in nodes if iri not in below)
    if searched is not None:
        first = searched[-1]
        level = {
            iri: None
            for iri in nodes
            if _level(iri, tree) == first or (iri in level and _level(iri, tree) < first)
        }
    count = _most(context) if own.num_layers is None else own.num_layers
    while level and count:
        count -= 1
        near = [hit for hit in _nearest(level, vector, context) if hit[0] not in chosen]
        yield near
        followed = [iri for iri, _ in taken(near, own.top_k, own)]
        chosen.update(followed)
        level = dict.fromkeys(m for iri in followed if iri in tree for m in tree[iri].members)


def tree_of(context: Context) -> Mapping[str, TreeNode]:
    """The tree of the published state, read once."""
    return context.once("tree of summaries", lambda: standing_tree(context.store))


def _nearest(nodes: Mapping[str, None], vector: object, context: Context) -> Hits:
    """The nodes, nearest to the question first."""
    chunks = [node for node in nodes if is_chunk(node)]
    others = [node for node in nodes if not is_chunk(node)]
    found: list[tuple[str, float]] = []
    for kind, some in (("chunk", chunks), ("summary", others)):
        if some:
            found += context.vectors[kind].search(vector, len(some), some)[0]  # type: ignore[arg-type]
    return sorted(found, key=lambda hit: (-hit[1], hit[0]))


def _count_nodes(own: RaptorSearchSettings, context: Context) -> int:
    """How many summaries and chunks the searched levels have."""
    searched, tree = _searched(own, context), tree_of(context)
    sets = [context.vectors[kind] for kind in ("summary", "chunk")]
    if searched is None:
        return sum(map(len, sets))
    return sum(_level(iri, tree) in searched for vectors in sets for iri in vectors.keys)


def _retrieval(
    hits: Hits,
    vector: object,
    limit: int,
    orders: tuple[RankedOrder, ...],
    context: Context,
) -> Retrieval:
    """The candidates in the order of the hits."""
    chunks = [iri for iri, _ in hits if is_chunk(iri)]
    whole = chunk_evidence(context, chunks)
    tokens = chunk_tokens(context, list(whole))
    told = _texts(context, [iri for iri, _ in hits if not is_chunk(iri)])
    found: list[tuple[Item, float, tuple[Evidence, ...], int, str]] = []
    for iri, score in hits:
        if iri in whole:
            item = chunk_item(whole[iri], context)
            cost = cost_of(item, tokens.get(iri))
            found.append((item, score, (whole[iri],), cost, "it"))
        elif not is_chunk(iri):
            item = Item("summary", iri, *told.get(iri, ("", "")))
            places = summary_evidence(item, vector, limit, context)
            level = tree_of(context)[iri].level
            if places:
                found.append((item, score, places, cost_of(item), f"the summary (level {level})"))
    candidates = tuple(
        Candidate(
            item,
            rank,
            min(1.0, max(0.0, score)),
            evidence=places,
            reasons=(f"{what} is {score:.2f} similar in meaning to the question",),
            tokens=cost,
        )
        for rank, (item, score, places, cost, what) in enumerate(found, 1)
    )
    return Retrieval(candidates, 0, len(candidates), orders=orders)


def _texts(context: Context, summaries: Sequence[str]) -> dict[str, tuple[str, str]]:
    """What the summaries are called, and what they say."""
    memory = context.remembered("texts of summaries", 20_000)
    return memory.get_all(summaries, lambda missing: summary_texts(context.store, missing))


def summary_evidence(
    item: Item, vector: object, limit: int, context: Context
) -> tuple[Evidence, ...]:
    """Where a summary rests: the sentences that it quotes, else the chunks below it that are
    nearest to the question, at most ``limit``; ``via`` leads down over the summaries between."""
    ways = ways_down(tree_of(context), item.iri)
    whole = chunk_evidence(context, sorted(ways))
    quoted = [
        replace(place, via=ways[place.chunk]) for place in _quoted(item.text, list(whole.values()))
    ]
    if quoted:
        return tuple(quoted)
    near = context.vectors["chunk"].search(vector, limit, list(whole))[0]  # type: ignore[arg-type]
    return tuple(replace(whole[chunk], via=ways[chunk]) for chunk, _ in near)


def _quoted(text: str, places: Sequence[Evidence]) -> Iterator[Evidence]:
    """The exact characters of each line of the text that stands in one of the places, the first
    that has it."""
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
    """The nodes after those that are ``taken``, as many as the setting of that name, or those like
    enough. The reason has two parts: before how many are taken, and after."""
    count = int(getattr(own, limit))
    how, name = f"{count}", limit.replace("_", "-")
    if own.threshold is not None:
        count, name = len(taken(hits, count, own)), "threshold"
        how = f"{count} of a likeness of at least {own.threshold:g}"
    before, after = reason
    why = f"{before} {how} {after} ({name})"
    return cut_order(kind, name, count, iris(hits), why, total=total)


def unsearched_levels(missing: Missing, search: RecordedSearch, context: Context) -> CutOffs:
    """The levels, where the missing is on none that was searched."""
    own, tree = context.settings.raptor_search, tree_of(context)
    searched = _searched(own, context)
    levels = {_level(iri, tree) for iri in _carriers(missing, context)}
    if searched is not None and levels and not levels & set(searched):
        low, high = searched[0], searched[-1]
        here = ", ".join(map(str, sorted(levels)))
        why = f"it is on level {here} of the tree, and levels {low} to {high} were searched"
        yield CutOff("num-layers", own.num_layers, None, f"{why} (start-layer, num-layers)")


def _carriers(missing: Missing, context: Context) -> set[str]:
    """The chunks that it stands in, and the summaries that speak of it."""
    return {*missing.chunks, *(iri for iri in tree_of(context) if missing.tells(iri))}


def nodes_above(tree: Mapping[str, TreeNode], items: Collection[str]) -> set[str]:
    """The items and all nodes of the tree above them."""
    found = set(items)
    for node in tree.values():  # in the order of their levels
        if found.intersection(node.members):
            found.add(node.iri)
    return found
