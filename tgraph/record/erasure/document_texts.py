"""The traces of a document in a collection: what it says, against what all others say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.errors import StoreError
from tgraph.index.sources import derived, is_mark, text_value
from tgraph.librarian import Librarian
from tgraph.record.erasure.rewriter import SAID, words_of
from tgraph.record.erasure.scope import ErasureScope, typed, value_of
from tgraph.record.erasure.traces import TraceCollector, Traces
from tgraph.store.base import Store

Show = Callable[[int, int], None]


class DocumentTexts:
    """What was read of a document and of the others.

    ``own`` are the contents of the librarian that belong to the document alone, ``kept`` those of
    the other documents, by their hashes; ``said`` is all that was said from the document.
    """

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
        """Add all that the document and what derives from it say; the names it brought in."""
        store, affected = self._store, self._affected
        document = affected.document
        self.own.add(text_value(store, document, v.tg("contentHash")))
        for text in self._pages(document, self.own):
            self._wording.add_text(text)
        self._wording.add_text(text_value(store, document, v.dcterms("title")))
        self.said.update(t for t in affected.literals(store, SAID) if not is_mark(t))
        for report in sorted(typed(self._store, "ReportRecord") & affected.resources):
            self.said.update(strings(self._content(report)))
        for text in (*self.said, *map(words_of, affected.names)):
            self._wording.add_said(text)
        names = [*map(words_of, affected.names)]
        for predicate in (v.tg("name"), v.tg("alias")):
            names += affected.literals(store, [predicate])
        return [name for name in names if not is_mark(name)]

    def _read_others(self, show: Show) -> None:
        """Take away all that others say, and what derives from them alone."""
        store, affected = self._store, self._affected
        documents = typed(store, "Document") - {affected.document} - affected.gone
        for done, document in enumerate(sorted(documents)):
            show(done, len(documents))
            self.kept.add(text_value(store, document, v.tg("contentHash")))
            for text in self._pages(document, self.kept):
                self._wording.keep(text)
            for quad in store.match(None, v.prov("specializationOf"), NamedNode(document), None):
                if isinstance(quad.subject, NamedNode):
                    self._wording.keep(text_value(store, quad.subject.value, v.tg("path")))
        for predicate in SAID:
            for quad in store.match(None, predicate, None, None):
                if self._is_of_others(quad.subject, quad.object):
                    of_session = quad.graph_name != v.SOURCE_GRAPH
                    self._wording.keep(value_of(quad.object), words=not of_session)
        for report in sorted(typed(self._store, "ReportRecord") - affected.resources):
            for text in strings(self._content(report)):
                self._wording.keep(text)
        show(len(documents), len(documents))

    def _is_of_others(self, subject: object, term: object) -> bool:
        """Whether it was said from other documents; what knowledge holds the sources have too."""
        if not isinstance(term, Literal) or is_mark(term.value):
            return False
        name = value_of(subject)
        if name in self._affected.resources:
            return False
        node = NamedNode(name)
        if next(self._store.match(node, v.prov("wasDerivedFrom"), None, None), None):
            return True
        return next(self._store.match(node, v.RDF_TYPE, v.tg("Document"), None), None) is not None

    def _pages(self, document: str, keys: set[str]) -> Iterator[str]:
        """The texts of a document's pages; their hashes are added to ``keys``."""
        for page in (document, *sorted(derived(self._store, document, "Page"))):
            key = text_value(self._store, page, v.tg("textHash"))
            if key:
                keys.add(key)
                with suppress(StoreError):  # erased before
                    yield self._librarian.get_text(key)

    def _content(self, report: str) -> object:
        with suppress(StoreError, ValueError):
            key = text_value(self._store, report, v.tg("contentHash"))
            return json.loads(self._librarian.get_text(key))
        return None


def strings(value: object) -> Iterator[str]:
    """The texts in a JSON value, and in texts that are JSON themselves; no IRIs of tgraph's."""
    if isinstance(value, str):
        if not value.startswith(v.URN):
            yield value
        if value[:1] in ("{", "["):
            with suppress(ValueError, RecursionError):
                yield from strings(json.loads(value))
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from strings(key)
            if key != "vectors":  # numbers, as letters
                yield from strings(item)
