"""What a record rests on, step by step back to the documents, and what each step says in words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.errors import StoreError
from tgraph.explain.names import Names
from tgraph.explain.said import kind_of
from tgraph.explain.traced import Trace, TracedAction, TracedItem, TracedPoint
from tgraph.index.sources import Texts, text_value
from tgraph.index.standing import StandingEvidence
from tgraph.librarian import Librarian
from tgraph.store.base import Store

_SAYS = ("summaryText", "text", "description")
_STEPS = {
    "point": "point",
    "report": "report",
    "finding": "report",
    "summary": "summary",
    "edge": "description",
    "entity": "description",
    "claim": "description",
    "evidence": "extraction",
    "chunk": "chunk",
}


@dataclass(frozen=True, slots=True)
class Node:
    """A thing on the way from a document to an answer: the step that made it and what it says.

    ``below`` is how many reports stand above it.
    """

    iri: str
    step: str
    text: str
    below: int = 0


class Origins:
    """Reads what the things of one trace were made from; ``changed`` is whether knowledge is not
    what it was then, so that what it said must be looked for in the evidence."""

    def __init__(
        self, store: Store, librarian: Librarian, trace: Trace, *, changed: bool = False
    ) -> None:
        self._changed = changed
        self._store = store
        self._names = Names(store, librarian.get_text)
        self._texts = Texts(store, librarian)
        self._librarian = librarian
        self._stated = stated = StandingEvidence(store, lambda _: True)
        self._roles = {"edge": stated.of_edge, "entity": stated.of_entity, "claim": stated.of_claim}
        self._points = {point.iri: point for point in points_of(trace)}

    def of_item(self, item: TracedItem) -> Node:
        """A selected edge or item with what knowledge says of it, an edge with the quotes that the
        writer of the answer was shown."""
        node = self._node(item.item, label=item.label)
        quotes = [place.quote for place in item.evidence] if item.kind == "edge" else []
        return replace(node, text="\n".join(filter(None, (node.text, *quotes))))

    def before(self, node: Node) -> list[Node]:
        """What it was made from; nothing for a chunk, which is the document's own text."""
        kind = kind_of(node.iri)
        if kind == "point" and node.iri in self._points:
            return self._nodes(map(self._candidate, self._points[node.iri].cites), node)
        if kind in ("edge", "entity", "claim"):
            return self._of_description(node)
        if kind == "chunk":
            return []
        return self._nodes(self._derived(node.iri), node)

    def _candidate(self, iri: str) -> str:
        """What a candidate of the session is; anything else as it is."""
        if kind_of(iri) != "candidate":
            return iri
        for name in ("item", "edge"):
            for quad in self._store.match(NamedNode(iri), v.tg(name), None, None):
                if isinstance(quad.object, NamedNode):
                    return quad.object.value
        return iri

    def _of_description(self, node: Node) -> list[Node]:
        """The summary that its description is, else what the texts say of it."""
        for quad in self._store.match(
            NamedNode(node.iri), v.tg("summary"), None, v.KNOWLEDGE_GRAPH
        ):
            if isinstance(quad.object, NamedNode):
                return [self._node(quad.object.value)]
        find = self._roles[kind_of(node.iri)]
        subjects = [node.iri, *self._stated.merged_into(node.iri)]
        found = [item["evidence"][0].value for subject in subjects for item in find(subject)]
        return self._nodes(found, node)

    def _derived(self, iri: str) -> list[str]:
        """By ``prov:wasDerivedFrom``; of what is made of sentences, from those."""
        found: dict[str, None] = {}
        parts = [iri]
        for part in self._store.match(NamedNode(iri), v.tg("sentence"), None, v.SOURCE_GRAPH):
            if isinstance(part.object, NamedNode):
                parts.append(part.object.value)
        for part_iri in parts:
            quads = self._store.match(
                NamedNode(part_iri), v.prov("wasDerivedFrom"), None, v.SOURCE_GRAPH
            )
            found.update(
                (quad.object.value, None) for quad in quads if isinstance(quad.object, NamedNode)
            )
        return sorted(set(found) - set(parts))

    def _nodes(self, iris: Iterable[str], above: Node) -> list[Node]:
        below = above.below + (kind_of(above.iri) in ("report", "finding"))
        made = (self._node(iri, below=below) for iri in dict.fromkeys(iris))
        return [node for node in made if node.text]

    def _node(self, iri: str, *, label: str = "", below: int = 0) -> Node:
        kind = kind_of(iri)
        made_by = _STEPS.get(kind, kind)
        if made_by == "report" and below:
            made_by = "sub-report"
        return Node(iri, made_by, self._text(iri, label), below)

    # --- words ---

    def _text(self, iri: str, label: str) -> str:
        kind = kind_of(iri)
        try:
            if kind == "chunk":
                return self._texts.of_chunk(iri)
            if kind == "evidence":
                return self._of_evidence(iri)
        except StoreError:
            return ""  # erased
        if iri in self._points:
            return self._points[iri].text
        said = self._said(iri)
        if self._changed or not said:
            said += self._once_said(iri)
        return "\n".join(dict.fromkeys(filter(None, (label or self._names.of(iri), *said))))

    def _of_evidence(self, iri: str) -> str:
        """What an extraction says: the bare statement, the description that it wrote, its quote."""
        stated = text_value(self._store, iri, v.tg("edge"))
        said = [text_value(self._store, iri, v.tg(name)) for name in ("description", "quote")]
        return "\n".join(filter(None, (self._names.of(stated) if stated else "", *said)))

    def _once_said(self, iri: str) -> list[str]:
        """What it said that is no part of knowledge any more."""
        if kind_of(iri) == "report":
            key = text_value(self._store, iri, v.tg("contentHash"))
            with suppress(StoreError, ValueError, KeyError):
                found = json.loads(self._librarian.get_text(key))["report"]
                told = [f[part] for f in found["findings"] for part in ("summary", "explanation")]
                return [found["summary"], *told]
        find = self._roles.get(kind_of(iri))
        items = find(iri) if find else ()
        return [term.value for item in items for term in item.get("description", ())]

    def _said(self, iri: str) -> list[str]:
        """Descriptions, summaries and findings, of knowledge or of the sources."""
        found: list[str] = []
        for graph in (v.KNOWLEDGE_GRAPH, v.SOURCE_GRAPH):
            for name in (*_SAYS, "finding"):
                for quad in self._store.match(NamedNode(iri), v.tg(name), None, graph):
                    if isinstance(quad.object, Literal):
                        found.append(quad.object.value)
                    elif isinstance(quad.object, NamedNode):
                        found += [self._names.of(quad.object.value), *self._said(quad.object.value)]
        return found


def points_of(trace: Trace) -> Iterator[TracedPoint]:
    """The points of every batch of reports, or of every answer of the tree."""
    for batch in trace.batches:
        yield from batch.points
    actions: list[TracedAction] = [trace.actions] if trace.actions else []
    while actions:
        action = actions.pop()
        yield from action.points
        actions += action.children
