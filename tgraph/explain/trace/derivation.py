"""Record derivations, traced step by step back to source documents, with step texts."""

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
from tgraph.store.base import Store, match_record, read_literal, text_of

_LABELS = (v.RDFS_LABEL, v.tg("description"), v.tg("summaryText"))
_STATEMENTS = (v.tg("edge"), v.tg("entity"), v.tg("claim"))


class DisplayNames:
    """Labels for everything mentioned in a record; labels of superseded reports come from the
    librarian."""

    def __init__(self, store: Store, texts: Callable[[str], str]) -> None:
        self._store = store
        self._texts = texts
        self.recalled = NamesAsOf(store)

    def display_name(self, iri: str) -> str:
        """Return a label or description from the record or knowledge, otherwise the IRI."""
        kind = kind_of(iri)
        if kind == "chunk":
            return self._of_chunk(iri)
        if kind == "edge":
            edge = self.recalled.edges([iri]).get(iri)
            return " — ".join(edge.labels) if edge else iri
        for predicate in _LABELS:
            if label := read_literal(self._store, NamedNode(iri), predicate):
                return label
        former = {"entity": self.recalled.entity, "claim": self.recalled.claim}
        return former.get(kind, self._of_former)(iri) or iri

    def find_label(self, iri: str) -> str:
        """Return the label or description, or blank text without either."""
        label = self.display_name(iri)
        return "" if label == iri else label

    def way(self, via: Iterable[str], evidence: str) -> tuple[str, ...]:
        """Return subjects leading down to evidence: reports or summaries, most general first,
        reports with findings, finally the evidence's subject."""
        path = [iri for iri in via if kind_of(iri) not in ("edge", "entity", "claim")]
        if not path:
            return tuple(via)
        path.sort(key=lambda iri: (*self._height_key(iri), iri))
        subjects = [text_value(self._store, evidence, predicate) for predicate in _STATEMENTS]
        return (*path, *filter(None, subjects))

    def _height_key(self, iri: str) -> tuple[int, int]:
        is_finding = kind_of(iri) == "finding"
        report = text_value(self._store, iri, v.dcterms("isPartOf")) if is_finding else iri
        for level in map(int, values_of(self._store, report, v.tg("level"), v.KNOWLEDGE_GRAPH)):
            return -level if kind_of(iri) == "summary" else level, is_finding
        return int(self.read_kept_report(report).get("level", 0)), is_finding

    def _of_chunk(self, chunk: str) -> str:
        title = text_value(self._store, document_of_chunk(chunk), v.dcterms("title"))
        page, (start, end) = page_of_chunk(chunk), range_of_chunk(chunk)
        where = f", page {page}" if page is not None else ""
        return f"{title}{where}, characters {start}–{end}"

    def _of_former(self, iri: str) -> str:
        """Return the title of a report or the summary of a finding absent from current
        knowledge."""
        if kind_of(iri) == "report":
            return str(self.read_kept_report(iri).get("title", ""))
        if kind_of(iri) != "finding":
            return ""
        report = self.read_kept_report(text_value(self._store, iri, v.dcterms("isPartOf")))
        summaries = [f["summary"] for f in report.get("findings", ()) if f["iri"] == iri]
        return str(summaries[0]) if summaries else ""

    def read_kept_report(self, report: str) -> Mapping[str, Any]:
        """Return a report kept by the librarian; if unreadable, return an empty mapping."""
        key = text_value(self._store, report, v.tg("contentHash")) if report else ""
        with suppress(KeyError, StoreError, ValueError):
            content = json.loads(self._texts(key))["report"] if key else {}
            return content if isinstance(content, dict) else {}
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
    """A derivation step between document and answer: production method and text.

    ``below`` counts reports above the node."""

    iri: str
    step: str
    text: str
    below: int = 0


class Derivations:
    """Derivation source reader for items of one trace.

    ``changed`` tells whether knowledge has changed since the session, so that earlier text must
    be looked up in the evidence."""

    def __init__(
        self, store: Store, librarian: Librarian, trace: Trace, *, changed: bool = False
    ) -> None:
        self._changed = changed
        self._store = store
        self._names = DisplayNames(store, librarian.get_text)
        self._texts = Texts(store, librarian)
        self._stated = evidence = StandingEvidence(store, lambda _: True)
        self._roles = {
            "edge": evidence.of_edge,
            "entity": evidence.of_entity,
            "claim": evidence.of_claim,
        }
        self._points = {point.iri: point for point in points_of(trace)}

    def of_item(self, item: TraceItem) -> DerivationNode:
        """Return the node of a selected edge or item with its text in knowledge; an edge
        includes the quotes shown to the answer writer."""
        node = self._create_node(item.item, label=item.label)
        quotes = [place.quote for place in item.evidence] if item.kind == "edge" else []
        return replace(node, text="\n".join(filter(None, (node.text, *quotes))))

    def list_sources(self, node: DerivationNode) -> list[DerivationNode]:
        """Return source nodes of a derivation node; chunks, being document text, have none."""
        kind = kind_of(node.iri)
        if kind == "point" and node.iri in self._points:
            return self._create_nodes(
                map(self._resolve_candidate, self._points[node.iri].cites), node
            )
        if kind in ("edge", "entity", "claim"):
            return self._of_description(node)
        if kind == "chunk":
            return []
        return self._create_nodes(self._derivation_sources(node.iri), node)

    def _resolve_candidate(self, iri: str) -> str:
        """Return the item of a session candidate; return any other IRI unchanged."""
        if kind_of(iri) != "candidate":
            return iri
        node = NamedNode(iri)
        items = (match_record(self._store, node, v.tg(name)) for name in ("item", "edge"))
        return next((text_of(quad.object) for quad in chain.from_iterable(items)), iri)

    def _of_description(self, node: DerivationNode) -> list[DerivationNode]:
        """Return the summary serving as description, otherwise evidence found in texts."""
        for iri in values_of(self._store, node.iri, v.tg("summary"), v.KNOWLEDGE_GRAPH, NamedNode):
            return [self._create_node(iri)]
        find = self._roles[kind_of(node.iri)]
        subjects = [node.iri, *self._stated.merged_into(node.iri)]
        evidence_iris = [
            item["evidence"][0].value for subject in subjects for item in find(subject)
        ]
        return self._create_nodes(evidence_iris, node)

    def _derivation_sources(self, iri: str) -> list[str]:
        """Return ``prov:wasDerivedFrom`` sources; for a resource made of sentences, include the
        sentences' sources."""
        sources = partial(values_of, self._store, graph=v.SOURCE_GRAPH, kind=NamedNode)
        parts = {iri, *sources(iri, v.tg("sentence"))}
        return sorted(
            {o for part in parts for o in sources(part, v.prov("wasDerivedFrom"))} - parts
        )

    def _create_nodes(self, iris: Iterable[str], above: DerivationNode) -> list[DerivationNode]:
        below = above.below + (kind_of(above.iri) in ("report", "finding"))
        nodes = (self._create_node(iri, below=below) for iri in dict.fromkeys(iris))
        return [node for node in nodes if node.text]

    def _create_node(self, iri: str, *, label: str = "", below: int = 0) -> DerivationNode:
        kind = kind_of(iri)
        made_by = _STEPS.get(kind, kind)
        if made_by == "report" and below:
            made_by = "sub-report"
        return DerivationNode(iri, made_by, self._read_node_text(iri, label), below)

    # --- words ---

    def _read_node_text(self, iri: str, label: str) -> str:
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
        statements = self._read_statements(iri)
        if self._changed or not statements:
            statements += self._once_said(iri)
        return "\n".join(
            dict.fromkeys(filter(None, (label or self._names.display_name(iri), *statements)))
        )

    def _of_evidence(self, iri: str) -> str:
        """Return the text of an extraction: bare statement, written description and quote."""
        edge = text_value(self._store, iri, v.tg("edge"))
        described = text_value(self._store, iri, v.tg("description"))
        place = recorded_place(self._store, iri)
        with suppress(ErasedTextError):
            self._texts.quote(*place)
        parts = (self._names.display_name(edge) if edge else "", described, place.quote)
        return "\n".join(filter(None, parts))

    def _once_said(self, iri: str) -> list[str]:
        """Return an item's earlier text, no longer part of knowledge."""
        if kind_of(iri) == "report":
            report = self._names.read_kept_report(iri)
            with suppress(KeyError):
                finding_texts = [
                    f[part] for f in report["findings"] for part in ("summary", "explanation")
                ]
                return [report["summary"], *finding_texts]
        find = self._roles.get(kind_of(iri))
        items = find(iri) if find else ()
        return [term.value for item in items for term in item.get("description", ())]

    def _read_statements(self, iri: str) -> list[str]:
        """Return descriptions, summaries and findings from knowledge or from sources."""
        statements: list[str] = []
        for graph in (v.KNOWLEDGE_GRAPH, v.SOURCE_GRAPH):
            for name in (*_SAYS, "finding"):
                for quad in self._store.match(NamedNode(iri), v.tg(name), None, graph):
                    if isinstance(quad.object, Literal):
                        statements.append(quad.object.value)
                    elif isinstance(quad.object, NamedNode):
                        statements += [
                            self._names.display_name(quad.object.value),
                            *self._read_statements(quad.object.value),
                        ]
        return statements


def points_of(trace: Trace) -> list[TracePoint]:
    """Return points from report batches and action tree answers."""
    sources: list[TraceBatch | TraceAction] = [*trace.batches, *actions_of(trace)]
    return [point for source in sources for point in source.points]


def actions_of(trace: Trace) -> Iterator[TraceAction]:
    """Yield the questions of DRIFT's action tree, top down."""
    actions = [trace.actions] if trace.actions else []
    for action in actions:
        yield action
        actions += action.children
