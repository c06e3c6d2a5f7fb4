"""What things are called, for people, and the way from a report down to the characters."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.errors import StoreError
from tgraph.explain.recalled import Recalled
from tgraph.explain.said import kind_of
from tgraph.index.sources import document_of_chunk, page_of_chunk, range_of_chunk, text_value
from tgraph.store.base import Store

_LABELS = (v.RDFS_LABEL, v.tg("description"), v.tg("summaryText"))
_STATEMENTS = (v.tg("edge"), v.tg("entity"), v.tg("claim"))


class Names:
    """Labels of what a record speaks of; those of superseded reports come from the librarian."""

    def __init__(self, store: Store, texts: Callable[[str], str]) -> None:
        self._store = store
        self._texts = texts
        self.recalled = Recalled(store)

    def of(self, iri: str) -> str:
        """The label or description, whatever graph has it; the IRI where none has."""
        kind = kind_of(iri)
        if kind == "chunk":
            return self._of_chunk(iri)
        if kind == "edge":
            edge = self.recalled.edges([iri]).get(iri)
            return " — ".join(edge.labels) if edge else iri
        for predicate in _LABELS:
            for quad in self._store.match(NamedNode(iri), predicate, None, None):
                if isinstance(quad.object, Literal):
                    return quad.object.value
        former = {"entity": self.of_entity, "claim": self.recalled.claim}
        return former.get(kind, self._of_former)(iri) or iri

    def known(self, iri: str) -> str:
        """The same, and empty where nothing has a name for it."""
        found = self.of(iri)
        return "" if found == iri else found

    def of_entity(self, entity: str) -> str:
        """The label that knowledge has, else the name that it had; empty where it has none."""
        return self.recalled.entity(entity)

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
        for quad in self._store.match(NamedNode(report), v.tg("level"), None, v.KNOWLEDGE_GRAPH):
            if isinstance(quad.object, Literal):
                level = int(quad.object.value)
                return -level if kind_of(iri) == "summary" else level, is_finding
        return int(self._former(report).get("level", 0)), is_finding

    def _of_chunk(self, chunk: str) -> str:
        title = text_value(self._store, document_of_chunk(chunk), v.dcterms("title"))
        page, (start, end) = page_of_chunk(chunk), range_of_chunk(chunk)
        where = f", page {page}" if page is not None else ""
        return f"{title}{where}, characters {start}–{end}"

    def _of_former(self, iri: str) -> str:
        """The title of a report, or the summary of a finding, that knowledge holds no more."""
        if kind_of(iri) == "report":
            return str(self._former(iri).get("title", ""))
        if kind_of(iri) != "finding":
            return ""
        report = self._former(text_value(self._store, iri, v.dcterms("isPartOf")))
        found = [f["summary"] for f in report.get("findings", ()) if f["iri"] == iri]
        return str(found[0]) if found else ""

    def _former(self, report: str) -> Mapping[str, Any]:
        """The report as the librarian keeps it; nothing where it can't be read."""
        key = text_value(self._store, report, v.tg("contentHash")) if report else ""
        with suppress(KeyError, StoreError, ValueError):
            found = json.loads(self._texts(key))["report"] if key else {}
            return found if isinstance(found, dict) else {}
        return {}
