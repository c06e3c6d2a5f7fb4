"""Which limit kept something from the candidates where these are what is nearest in meaning."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tgraph.explain.expected import Expected
from tgraph.explain.likeness import Likeness
from tgraph.explain.reached import Search
from tgraph.explain.traced import Trace
from tgraph.index.tree import TreeNode, is_chunk, standing_tree, summary_title
from tgraph.retrieve.labels import reified
from tgraph.retrieve.linking import in_turn
from tgraph.retrieve.seeds import match_names
from tgraph.store.base import Store

_NEAREST: Mapping[str, Sequence[tuple[str, str]]] = {
    "basic": (("chunk", "k"),),
    "naive": (("chunk", "k"),),
    "lightrag-mix": (("chunk", "chunk-top-k"),),
}
"""Modes that take what is nearest to the question: of which kinds, and by which limits."""

_PLURALS = {"entity": "entities"}

Hits = Sequence[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class Limit:
    """What was in the way: the parameter, its value, and where the expected stood; ``rank`` is None
    where that is not on record, ``cutoff`` where it is no number. ``reason`` says it in words."""

    name: str
    cutoff: int | float | None
    rank: int | None
    reason: str


class Nearest:
    """Ranks again what a session ranked by likeness."""

    def __init__(self, store: Store, trace: Trace, expected: Expected, likeness: Likeness) -> None:
        self._store = store
        self._trace = trace
        self._expected = expected
        self._likeness = likeness

    def find(self) -> Limit | None:
        """The limit in the mode of the session; None where it takes nothing by likeness, or where
        likeness was not in the way."""
        mode = self._trace.mode
        if mode == "raptor":
            return self._collapsed()
        if mode == "raptor-traversal":
            return self._traversed()
        if mode.startswith("lightrag-"):
            return self._by_keywords() or self._by_kind()
        return self._by_kind()

    # --- the nearest of a kind ---

    def _by_kind(self) -> Limit | None:
        for kind, name in _NEAREST.get(self._trace.mode, ()):
            expected = self._expected
            items = expected.chunks if kind == "chunk" else expected.entities
            matched = {match.entity for match in self._trace.matches}
            if items and (kind == "chunk" or not items & matched):
                return self._among(kind, name, items)
        return None

    def _among(self, kind: str, name: str, items: Collection[str]) -> Limit | None:
        cutoff = number(self._trace, name)
        hits = self._likeness.hits(self._trace.question, kind)
        many = _PLURALS.get(kind, f"{kind}s")
        if not hits:
            why = f"it is not among the {cutoff} {many} nearest to the question ({name})"
            return Limit(name, cutoff, None, why)
        return self._beyond(hits, items, name, many) or self._unlike(hits, items, "the question")

    def _beyond(self, hits: Hits, items: Collection[str], name: str, many: str) -> Limit | None:
        rank, cutoff = _rank(hits, items), number(self._trace, name)
        if not rank or rank <= cutoff:
            return None
        why = f"it is the {nth(rank)} of {len(hits)} {many} by likeness to the question"
        return Limit(name, cutoff, rank, f"{why}, of which the first {cutoff} were taken ({name})")

    def _unlike(self, hits: Hits, items: Collection[str], what: str) -> Limit | None:
        """It is less like the question, or a keyword, than anything must be."""
        least = float(self._trace.parameters.get("least-score", "") or -1)
        rank = _rank(hits, items)
        if not rank or hits[rank - 1][1] >= least:
            return None
        why = f"its likeness to {what} is {hits[rank - 1][1]:.2f}, below {least:g} (least-score)"
        return Limit("least-score", least, rank, why)

    # --- keywords ---

    def _by_keywords(self) -> Limit | None:
        """What the keywords lead to: entities by those of the low level, edges by the others."""
        ends = self._ends()
        levels = (("low", "entity", ends), ("high", "edge", self._expected.edges))
        found = [
            limit
            for level, kind, items in levels
            if (limit := self._of_level(self._trace.keywords.get(level, ()), kind, items))
        ]
        return min(found, key=lambda limit: limit.name != "top-k", default=None)

    def _of_level(self, keywords: Sequence[str], kind: str, items: Collection[str]) -> Limit | None:
        every = {word: self._likeness.hits(word, kind) for word in keywords}
        lists = [self._linked(word, kind, hits) for word, hits in every.items()]
        order = [(iri, 0.0) for iri in in_turn(lists, lambda iri: iri)]
        rank, cutoff = _rank(order, items), number(self._trace, "top-k")
        if rank > cutoff:
            many = _PLURALS.get(kind, f"{kind}s")
            why = f"it is the {nth(rank)} of {len(order)} {many} that the keywords lead to"
            return Limit("top-k", cutoff, rank, f"{why}, and {cutoff} were taken (top-k)")
        best = max(every, key=lambda word: _score(every[word], items), default="")
        return None if rank else self._unlike(every.get(best, ()), items, f"“{best}”")

    def _linked(self, keyword: str, kind: str, hits: Hits) -> list[str]:
        least = float(self._trace.parameters.get("least-score", "") or -1)
        named = match_names(keyword, self._store) if kind == "entity" else []
        return [*named, *(iri for iri, score in hits if score >= least)]

    def _ends(self) -> set[str]:
        """The entities that lead to it."""
        found = set(self._expected.entities)
        if not found:
            for edge in reified(self._store, self._expected.edges).values():
                found |= {edge.subject.value, getattr(edge.object, "value", "")}
        return found

    # --- the tree of summaries ---

    def _carriers(self, tree: Mapping[str, TreeNode]) -> set[str]:
        """The chunks that it stands in, and the summaries that speak of it."""
        search = Search(self._store, self._trace, self._expected)
        return {*self._expected.chunks, *(iri for iri in tree if search.told(iri))}

    def _collapsed(self) -> Limit | None:
        """The nodes of all levels were ranked together."""
        items = self._carriers(standing_tree(self._store))
        hits = self._of_nodes()
        if items and not hits:
            cutoff = number(self._trace, "k")
            why = f"it is not among the {cutoff} nodes of the tree nearest to the question (k)"
            return Limit("k", cutoff, None, why)
        return self._beyond(hits, items, "k", "nodes of the tree")

    def _traversed(self) -> Limit | None:
        """The layer of the tree at which the way down to it was cut."""
        tree = standing_tree(self._store)
        family = _family(tree, self._carriers(tree))
        scores, cutoff = dict(self._of_nodes()), number(self._trace, "top-k")
        if family and not scores:
            why = f"of each layer of the tree {cutoff} nodes were followed, others than lead to it"
            return Limit("top-k", cutoff, None, f"{why} (top-k)")
        found = None
        for depth, layer in enumerate(_layers(tree, scores, cutoff), 1):
            rank = _rank(layer, family)
            if rank > cutoff:
                node = layer[rank - 1][0]
                who = "it" if is_chunk(node) else f"the summary “{self._title(node)}” above it"
                why = f"in layer {depth} from the top of the tree {who} is the {nth(rank)} of"
                why += f" {len(layer)} by likeness to the question, and {cutoff} were followed"
                found = Limit("top-k", cutoff, rank, f"{why} (top-k)")
        return found

    def _of_nodes(self) -> Hits:
        """Chunks and summaries, nearest to the question first."""
        question = self._trace.question
        every = [h for kind in ("summary", "chunk") for h in self._likeness.hits(question, kind)]
        return sorted(every, key=lambda hit: (-hit[1], hit[0]))

    def _title(self, summary: str) -> str:
        return summary_title(self._store, summary)


def _layers(
    tree: Mapping[str, TreeNode], scores: Mapping[str, float], cutoff: int
) -> Iterator[Hits]:
    """The layers as a traversal comes to them, each nearest first."""
    below = {member for node in tree.values() for member in node.members}
    layer = [iri for iri in (*tree, *scores) if iri not in below]
    chosen: set[str] = set()
    while layer:
        fresh = {iri: scores[iri] for iri in layer if iri in scores and iri not in chosen}
        near = sorted(fresh.items(), key=lambda hit: (-hit[1], hit[0]))
        yield near
        followed = [iri for iri, _ in near[:cutoff]]
        chosen.update(followed)
        layer = [member for iri in followed if iri in tree for member in tree[iri].members]


def _family(tree: Mapping[str, TreeNode], items: set[str]) -> set[str]:
    """The items and all that is above them."""
    found = set(items)
    for node in tree.values():  # in the order of their levels
        if found.intersection(node.members):
            found.add(node.iri)
    return found


def first_of(order: Sequence[str], items: Collection[str]) -> int:
    """The place of the first of the items, from 1; 0 where there is none."""
    return next((n for n, iri in enumerate(order, 1) if iri in items), 0)


def least_value(lets_in: Callable[[int], bool], cutoff: int, most: int) -> int:
    """The least value of a limit above ``cutoff`` that lets something in; ``most`` does."""
    low, high = cutoff, most
    while high - low > 1:
        middle = min((low + high) // 2, 2 * low + 1)  # it is rarely far
        low, high = (low, middle) if lets_in(middle) else (middle, high)
    return high


def _rank(hits: Hits, items: Collection[str]) -> int:
    """The place of the first of the items, from 1; 0 where there is none."""
    return next((n for n, (iri, _) in enumerate(hits, 1) if iri in items), 0)


def _score(hits: Hits, items: Collection[str]) -> float:
    return next((score for iri, score in hits if iri in items), -1.0)


def number(trace: Trace, name: str) -> int:
    """A parameter of the session that is a number; 0 where there is none."""
    text = trace.parameters.get(name, "")
    return int(text) if text.isdigit() else 0


def nth(rank: int) -> str:
    """The rank in words."""
    ending = (
        "th" if rank % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    )
    return f"{rank}{ending}"
