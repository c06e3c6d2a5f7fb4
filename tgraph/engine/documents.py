"""Indexed documents of an open graph: ``KnowledgeGraph.documents``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tgraph.engine.open_collection import OpenCollection
    from tgraph.explain.trace.documents import DocumentSummary, SourceTree
    from tgraph.model import ReadingReport


class Documents:
    """List and read documents, and set document authority.

    A document is named by path, title, IRI or hash."""

    def __init__(self, opened: OpenCollection) -> None:
        self._opened = opened

    def summaries(self) -> list[DocumentSummary]:
        """Return documents under every indexed path, standing documents first."""
        from tgraph.explain.trace.documents import list_documents

        return list_documents(self._opened.read())

    def read_extractions(self, document: str) -> SourceTree:
        """Return extractions from a document, with places in the document's text."""
        from tgraph.explain.trace.documents import read_source

        return read_source(self._opened.read(), self._opened.librarian, document)

    def read_text(self, document: str, page: int | None = None) -> str:
        """Return the stored text of a page, or of the whole document; citation offsets refer to
        this text."""
        from tgraph.explain.trace.documents import source_text

        return source_text(self._opened.read(), self._opened.librarian, document, page)

    def read_report(self, document: str) -> ReadingReport | None:
        """Return what of a document's file isn't in the stored text, with the counts that show it;
        None if an earlier version of tgraph read the document."""
        from tgraph.explain.trace.documents import find_document, read_report

        store = self._opened.read()
        return read_report(store, find_document(store, document).document)

    def read_metadata(self, document: str) -> dict[str, str]:
        """Return what a document states of itself: title, author, date, language, description,
        tags; without those that the document lacks."""
        from tgraph.explain.trace.documents import find_document
        from tgraph.index.prepended_metadata import read_metadata

        store = self._opened.read()
        return read_metadata(store, find_document(store, document).document)

    def set_authority(self, target: str, authority: float | None, *, reason: str) -> str:
        """Set document authority, a factor from 0 to 1 on ranking scores (0: nothing is
        answered from the documents).

        Returns the path or pattern with the new authority. ``target`` is a document, or a
        pattern of paths (``minutes/*``; ``*`` for all): the path itself goes before patterns, a
        longer pattern before a shorter. Later versions under the path keep the authority. None
        removes the authority. The decision is recorded with the reason and, if ``person`` is
        set, with the deciding person. Raises ``UsageError`` if nothing would change, or if the
        value is no weight."""
        from tgraph.engine.change.entity_curation import CurationRun

        return CurationRun(self._opened.setup()).weigh(target, authority, reason)
