"""Document traces in a collection: words exclusive to the document, found through text
comparison."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.errors import StoreError
from tgraph.index.sources import derived_items, is_mark, text_value
from tgraph.librarian import Librarian
from tgraph.record.erasure.rewriter import SAID, words_of
from tgraph.record.erasure.scope import ErasureScope, find_resources_of_class, value_of
from tgraph.record.erasure.traces import TraceCollector, Traces
from tgraph.store.base import Store, match_record

Show = Callable[[int, int], None]


class DocumentTexts:
    """Collected texts: the document's own texts, and texts of other documents.

    ``own`` contains hashes of librarian contents belonging only to the document, ``kept``
    hashes of contents of the other documents; ``said`` contains all statements extracted from
    the document."""

    def __init__(
        self,
        store: Store,
        librarian: Librarian,
        affected: ErasureScope,
        show: Show = lambda done, total: None,
    ) -> None:
        self.own: set[str] = set()
        self.kept: set[str] = set()
        self.said: set[str] = set()
        self._store = store
        self._librarian = librarian
        self._affected = affected
        self._wording = TraceCollector()
        names = self._read_own()
        self._read_others(show)
        self.own -= self.kept
        self.traces: Traces = self._wording.traces(names)

    def _read_own(self) -> list[str]:
        """Add all texts of the document and of derived resources; return the names introduced
        by the document."""
        store, affected = self._store, self._affected
        for document in sorted(affected.readings):
            self.own.add(text_value(store, document, v.tg("contentHash")))
            for text in self._read_pages(document, self.own):
                self._wording.add_text(text)
            self._wording.add_text(text_value(store, document, v.dcterms("title")))
        self.said.update(t for t in affected.literals(store, SAID) if not is_mark(t))
        for report in sorted(
            find_resources_of_class(self._store, "ReportRecord") & affected.resources
        ):
            self.said.update(extract_strings(self._read_report_content(report)))
        for text in (*self.said, *map(words_of, affected.names)):
            self._wording.add_said(text)
        names = [*map(words_of, affected.names)]
        for predicate in (v.tg("name"), v.tg("alias")):
            names += affected.literals(store, [predicate])
        return [name for name in names if not is_mark(name)]

    def _read_others(self, show: Show) -> None:
        """Remove all texts of other documents, including resources derived only from other
        documents."""
        store, affected = self._store, self._affected
        documents = find_resources_of_class(store, "Document") - affected.readings - affected.gone
        for index, document in enumerate(sorted(documents)):
            show(index, len(documents))
            self.kept.add(text_value(store, document, v.tg("contentHash")))
            for text in self._read_pages(document, self.kept):
                self._wording.keep_text(text)
            for quad in match_record(store, None, v.prov("specializationOf"), NamedNode(document)):
                if isinstance(quad.subject, NamedNode):
                    self._wording.keep_text(text_value(store, quad.subject.value, v.tg("path")))
        for predicate in SAID:
            for quad in match_record(store, None, predicate):
                if self._is_of_others(quad.subject, quad.object):
                    of_session = quad.graph_name != v.SOURCE_GRAPH
                    self._wording.keep_text(value_of(quad.object), words=not of_session)
        for report in sorted(
            find_resources_of_class(self._store, "ReportRecord") - affected.resources
        ):
            for text in extract_strings(self._read_report_content(report)):
                self._wording.keep_text(text)
        show(len(documents), len(documents))

    def _is_of_others(self, subject: object, term: object) -> bool:
        """Return whether other documents state the term; sources repeat everything held by
        knowledge."""
        if not isinstance(term, Literal) or is_mark(term.value):
            return False
        name = value_of(subject)
        if name in self._affected.resources:
            return False
        node = NamedNode(name)
        if next(match_record(self._store, node, v.prov("wasDerivedFrom")), None):
            return True
        return next(match_record(self._store, node, v.RDF_TYPE, v.tg("Document")), None) is not None

    def _read_pages(self, document: str, keys: set[str]) -> Iterator[str]:
        """Yield a document's page texts; add the hash of each text and layout to ``keys``."""
        for page in (document, *sorted(derived_items(self._store, document, "Page"))):
            if layout := text_value(self._store, page, v.tg("layoutHash")):
                keys.add(layout)
            if key := text_value(self._store, page, v.tg("textHash")):
                keys.add(key)
                with suppress(StoreError):  # erased before
                    yield self._librarian.get_text(key)

    def _read_report_content(self, report: str) -> object:
        with suppress(StoreError, ValueError):
            key = text_value(self._store, report, v.tg("contentHash"))
            return json.loads(self._librarian.get_text(key))
        return None


def extract_strings(value: object) -> Iterator[str]:
    """Yield texts from a JSON value, including texts containing JSON; skip tgraph IRIs."""
    if isinstance(value, str):
        if not value.startswith(v.URN):
            yield value
        if value[:1] in ("{", "["):
            with suppress(ValueError, RecursionError):
                yield from extract_strings(json.loads(value))
    elif isinstance(value, list):
        for item in value:
            yield from extract_strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from extract_strings(key)
            if key != "vectors":  # numbers, as letters
                yield from extract_strings(item)
