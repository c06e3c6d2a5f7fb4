"""What a record rests on, step by step back to the documents, and what each step says in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.errors import ErasedTextError, StoreError
from tgraph.explain.as_of.names import NamesAsOf, values_of
from tgraph.explain.trace.bundle_reader import kind_of
from tgraph.explain.trace.values import Trace, TraceAction, TraceBatch, TraceItem, TracePoint
from tgraph.index.evidence import recorded_place
from tgraph.index.sources import Texts, document_of_chunk, page_of_chunk, range_of_chunk, text_value
from tgraph.index.standing_knowledge import StandingEvidence
from tgraph.librarian import Librarian
from tgraph.store.base import Store

_LABELS = (v.RDFS_LABEL, v.tg("description"), v.tg("summaryText"))
_STATEMENTS = (v.tg("edge"), v.tg("entity"), v.tg("claim"))


class DisplayNames:
    """Labels of what a record speaks of; those of superseded reports come from the librarian."""

    def __init__(self, store: Store, texts: Callable[[str], str]) -> None:
        self._store = store
        self._texts = texts
        self.recalled = NamesAsOf(store)

    def of(self, iri: str) -> str:
        """The label or description, whatever graph has it; the IRI where none has."""
        kind = kind_of(iri)
        if kind == "chunk":
            return self._of_chunk(iri)
        if kind == "edge":
            edge = self.recalled.edges([iri]).get(iri)
            return " — ".join(edge.labels) if edge else iri
        for predicate in _LABELS:
            for graph in (v.KNOWLEDGE_GRAPH, v.SOURCE_GRAPH, None):
                if found := values_of(self._store, iri, predicate, graph):
                    return found[0]
        former = {"entity": self.recalled.entity, "claim": self.recalled.claim}
        return former.get(kind, self._of_former)(iri) or iri

    def known(self, iri: str) -> str:
        """The same, and empty where nothing has a name for it."""
        found = self.of(iri)
        return "" if found == iri else found

    def way(self, via: Iterable[str], evidence: str) -> tuple[str, ...]:
        """What leads down to the evidence, in order: reports or summaries, the most general first,
        each report with its finding, and at last what the evidence is for."""
        known = [iri for iri in via if kind_of(iri) not in ("edge", "entity", "claim")]
        if not known:
            return tuple(via)
        known.sort(key=lambda iri: (*self._height(iri), iri))
        stated = [text_value(self._store, evidence, predicate) for predicate in _STATEMENTS]
        return (*known, *filter(None, stated))

    def _height(self, iri: str) -> tuple[int, int]:
        is_finding = kind_of(iri) == "finding"
        report = text_value(self._store, iri, v.dcterms("isPartOf")) if is_finding else iri
        for level in map(int, values_of(self._store, report, v.tg("level"), v.KNOWLEDGE_GRAPH)):
            return -level if kind_of(iri) == "summary" else level, is_finding
        return int(self.former(report).get("level", 0)), is_finding

    def _of_chunk(self, chunk: str) -> str:
        title = text_value(self._store, document_of_chunk(chunk), v.dcterms("title"))
        page, (start, end) = page_of_chunk(chunk), range_of_chunk(chunk)
        where = f", page {page}" if page is not None else ""
        return f"{title}{where}, characters {start}–{end}"

    def _of_former(self, iri: str) -> str:
        """The title of a report, or the summary of a finding, that knowledge holds no more."""
        if kind_of(iri) == "report":
            return str(self.former(iri).get("title", ""))
        if kind_of(iri) != "finding":
            return ""
        report = self.former(text_value(self._store, iri, v.dcterms("isPartOf")))
        found = [f["summary"] for f in report.get("findings", ()) if f["iri"] == iri]
        return str(found[0]) if found else ""

    def former(self, report: str) -> Mapping[str, Any]:
        """The report as the librarian keeps it; nothing where it can't be read."""
        key = text_value(self._store, report, v.tg("contentHash")) if report else ""
        with suppress(KeyError, StoreError, ValueError):
            found = json.loads(self._texts(key))["report"] if key else {}
            return found if isinstance(found, dict) else {}
        return {}


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
class DerivationNode:
    """A thing on the way from a document to an answer: the step that made it and what it says.

    ``below`` is how many reports stand above it.
    """

    iri: str
    step: str
    text: str
    below: int = 0


class Derivations:
    """Reads what the things of one trace were made from; ``changed`` is whether knowledge is not
    what it was then, so that what it said must be looked for in the evidence."""

    def __init__(
        self, store: Store, librarian: Librarian, trace: Trace, *, changed: bool = False
    ) -> None:
        self._changed = changed
        self._store = store
        self._names = DisplayNames(store, librarian.get_text)
        self._texts = Texts(store, librarian)
        self._stated = stated = StandingEvidence(store, lambda _: True)
        self._roles = {"edge": stated.of_edge, "entity": stated.of_entity, "claim": stated.of_claim}
        self._points = {point.iri: point for point in points_of(trace)}

    def of_item(self, item: TraceItem) -> DerivationNode:
        """A selected edge or item with what knowledge says of it, an edge with the quotes that the
        writer of the answer was shown."""
        node = self._node(item.item, label=item.label)
        quotes = [place.quote for place in item.evidence] if item.kind == "edge" else []
        return replace(node, text="\n".join(filter(None, (node.text, *quotes))))

    def before(self, node: DerivationNode) -> list[DerivationNode]:
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
        found = [values_of(self._store, iri, v.tg(n), None, NamedNode) for n in ("item", "edge")]
        return next(chain.from_iterable(found), iri)

    def _of_description(self, node: DerivationNode) -> list[DerivationNode]:
        """The summary that its description is, else what the texts say of it."""
        for iri in values_of(self._store, node.iri, v.tg("summary"), v.KNOWLEDGE_GRAPH, NamedNode):
            return [self._node(iri)]
        find = self._roles[kind_of(node.iri)]
        subjects = [node.iri, *self._stated.merged_into(node.iri)]
        found = [item["evidence"][0].value for subject in subjects for item in find(subject)]
        return self._nodes(found, node)

    def _derived(self, iri: str) -> list[str]:
        """By ``prov:wasDerivedFrom``; of what is made of sentences, from those."""
        sources = partial(values_of, self._store, graph=v.SOURCE_GRAPH, kind=NamedNode)
        parts = {iri, *sources(iri, v.tg("sentence"))}
        return sorted(
            {o for part in parts for o in sources(part, v.prov("wasDerivedFrom"))} - parts
        )

    def _nodes(self, iris: Iterable[str], above: DerivationNode) -> list[DerivationNode]:
        below = above.below + (kind_of(above.iri) in ("report", "finding"))
        made = (self._node(iri, below=below) for iri in dict.fromkeys(iris))
        return [node for node in made if node.text]

    def _node(self, iri: str, *, label: str = "", below: int = 0) -> DerivationNode:
        kind = kind_of(iri)
        made_by = _STEPS.get(kind, kind)
        if made_by == "report" and below:
            made_by = "sub-report"
        return DerivationNode(iri, made_by, self._text(iri, label), below)

    # --- words ---

    def _text(self, iri: str, label: str) -> str:
        kind = kind_of(iri)
        try:
            if kind == "chunk":
                return self._texts.of_chunk(iri)
            if kind == "evidence":
                return self._of_evidence(iri)
        except ErasedTextError:
            return ""
        if iri in self._points:
            return self._points[iri].text
        said = self._said(iri)
        if self._changed or not said:
            said += self._once_said(iri)
        return "\n".join(dict.fromkeys(filter(None, (label or self._names.of(iri), *said))))

    def _of_evidence(self, iri: str) -> str:
        """What an extraction says: the bare statement, the description that it wrote, its quote."""
        stated = text_value(self._store, iri, v.tg("edge"))
        described = text_value(self._store, iri, v.tg("description"))
        place = recorded_place(self._store, iri)
        with suppress(ErasedTextError):
            self._texts.quote(*place)
        said = (self._names.of(stated) if stated else "", described, place.quote)
        return "\n".join(filter(None, said))

    def _once_said(self, iri: str) -> list[str]:
        """What it said that is no part of knowledge any more."""
        if kind_of(iri) == "report":
            found = self._names.former(iri)
            with suppress(KeyError):
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


def points_of(trace: Trace) -> list[TracePoint]:
    """The points of every batch of reports, or of every answer of the tree."""
    told: list[TraceBatch | TraceAction] = [*trace.batches, *actions_of(trace)]
    return [point for one in told for point in one.points]


def actions_of(trace: Trace) -> Iterator[TraceAction]:
    """The questions of DRIFT's tree, from the top."""
    actions = [trace.actions] if trace.actions else []
    for action in actions:
        yield action
        actions += action.children
