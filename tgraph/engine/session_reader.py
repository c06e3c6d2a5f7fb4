"""The sessions of an open collection, read: traces, reports, exports, and why something is not in
an answer. The methods are those of ``KnowledgeGraph``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tgraph import vocabulary as v
from tgraph.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from tgraph.engine.open_collection import OpenCollection
    from tgraph.explain.export.knowledge import KnowledgeSource
    from tgraph.explain.render.report import PageText, Request
    from tgraph.explain.trace.reader import Trace
    from tgraph.explain.trace.sessions import SessionSummary
    from tgraph.explain.whynot.causes import WhyNot
    from tgraph.explain.whynot.cut_offs import SessionParameters
    from tgraph.store.base import Store
    from tgraph.store.folder import CollectionFolder


_WAITING = (
    "What was asked at this replica is seen once the writer has chained it: run `tgraph follow`"
    " here, `tgraph ship` there, and `tgraph follow` again."
)


def _has_unchained(folder: CollectionFolder) -> bool:
    """Whether it is a replica with sessions that its writer has not chained yet."""
    return folder.replica.exists() and any(folder.journals.glob("*.journal"))


class SessionReader:
    """What a collection can tell of its sessions."""

    def __init__(self, opened: OpenCollection) -> None:
        self._opened = opened

    def find(self, name: str) -> SessionSummary:
        """The session of a name. ``UnknownNameError`` for any other; of a replica it says of
        sessions that only this machine knows how they get on record."""
        from tgraph.explain.trace.sessions import find_session

        try:
            return find_session(self._opened.read(), self._opened.catalogue, name)
        except UnknownNameError as error:
            if not _has_unchained(self._opened.folder):
                raise
            raise UnknownNameError(error.message, f"{error.remedy} {_WAITING}") from error

    def trace(self, session: str) -> Trace:
        from tgraph.explain.trace.reader import read_trace
        from tgraph.record.assessments import questioned

        summary = self.find(session)
        store = self._opened.read()
        collection = self._opened.settings.explain_collection
        trace = read_trace(store, self._opened.texts(store), summary, collection)
        doubt = questioned(self._opened.read()).get(summary.explain_id)
        return replace(
            trace,
            report=partial(self.report, summary.explain_id),
            questioned=f"{doubt.time}: {doubt.reason}" if doubt else "",
        )

    def report(self, session: str) -> str:
        from tgraph.explain.integrity.erasures import page_text
        from tgraph.explain.integrity.texts import check_quotes
        from tgraph.explain.trace.record_quads import report_quads
        from tgraph.explain.trace.recorded_session import read_request

        store, summary = self._opened.read(), self.find(session)
        read = self._opened.librarian.get_text
        texts = self._opened.texts(store)
        check_quotes(store, report_quads(store, summary.bundle, summary.explain_id), texts)
        pages, request = page_text(texts), partial(read_request, store, read)
        trace, catalogue = self.trace(session), self._opened.catalogue
        return report_of(store, trace, summary.bundle, catalogue, read, pages, request)

    def trace_so_far(self, session: str) -> Trace:
        from tgraph.explain.trace.reader import read_so_far

        uuid = session.removeprefix(v.session_iri(""))
        knowledge = self._opened.knowledge
        if knowledge is not None:
            journal = self._opened.folder.journals / f"{uuid}.journal"
            collection = self._opened.settings.explain_collection
            texts = self._opened.texts(knowledge)
            trace = read_so_far(knowledge, texts, journal, session, collection)
            if trace is not None:
                return trace
        return self.trace(session)

    def export(
        self, session: str, format: str, vocabulary: str, *, classic: bool, core: bool
    ) -> bytes:
        from tgraph.explain.export.formats import serialise
        from tgraph.explain.export.trustgraph import trustgraph_quads

        if vocabulary not in ("tgraph", "trustgraph"):
            raise UsageError(
                f"There is no vocabulary {vocabulary!r}.", "There are: tgraph, trustgraph."
            )
        if vocabulary == "tgraph":
            return self._export(session, format, classic=classic, core=core)
        if core:
            raise UsageError("In TrustGraph's vocabulary there is no core form.", "Leave one out.")
        quads = trustgraph_quads(self.trace(session), self._opened.read())
        return serialise(quads, format, without_terms=classic)

    def _export(self, session: str, format: str, *, classic: bool, core: bool) -> bytes:
        from tgraph.explain.export.formats import PICTURES, serialise
        from tgraph.explain.integrity.texts import check_quotes
        from tgraph.explain.render.picture import picture
        from tgraph.explain.trace.derivation import DisplayNames
        from tgraph.explain.trace.record_quads import (
            bundle_of,
            catalogue_quads,
            core_quads,
            report_quads,
            session_quads,
        )

        store = self._opened.read()
        texts = self._opened.texts(store)
        other = bundle_of(store, self._opened.catalogue, session)
        if other is not None:
            if core:
                raise UsageError("Only the record of a session has a core form.", "Leave out core.")
            bundle, quads = other, session_quads(store, other)
        else:
            summary = self.find(session)
            bundle = summary.bundle
            if format in PICTURES:
                drawn = report_quads(store, bundle, summary.explain_id)
                check_quotes(store, drawn, texts)
                names = DisplayNames(store, self._opened.librarian.get_text).known
                return PICTURES[format](picture(drawn, names))
            quads = (
                core_quads(store, bundle, summary.explain_id)
                if core
                else session_quads(store, bundle)
            )
        check_quotes(store, quads, texts)
        quads = quads + catalogue_quads(store, bundle, self._opened.catalogue)
        return serialise(quads, format, without_terms=classic)

    def why_not(self, session: str, expected: str) -> WhyNot:
        from tgraph.explain.whynot.causes import why_not

        store, summary = self._opened.read(), self.find(session)
        return why_not(store, self._opened.texts(store), summary, expected, self._parameters)

    def _parameters(self, trace: Trace) -> SessionParameters:
        """How a session was asked, as far as its record can be read."""
        from tgraph.engine.ask.parameters import filters_of, restored
        from tgraph.explain.whynot.cut_offs import SessionParameters

        settings = self._opened.settings
        with suppress(UsageError):
            settings = restored(settings, trace.mode, trace.parameters)
        filters = filters_of(trace.parameters)
        return SessionParameters(settings, filters, self._opened.parts.embedder)


def report_of(
    store: Store,
    trace: Trace,
    bundle: str,
    catalogue: str,
    read: Callable[[str], str],
    page: PageText,
    request: Request,
) -> str:
    """The report of a trace, which carries its record; ``read`` gives the librarian's texts."""
    from tgraph.explain.render.picture import picture
    from tgraph.explain.render.report import to_html
    from tgraph.explain.trace.derivation import DisplayNames
    from tgraph.explain.trace.record_quads import catalogue_quads, report_quads, report_trig

    quads = report_quads(store, bundle, trace.explain_id)
    drawn = picture(quads, DisplayNames(store, read).known)
    quads += catalogue_quads(store, bundle, catalogue)
    return to_html(trace, report_trig(quads, trace.explain_id), drawn, page, request)


def knowledge_source(opened: OpenCollection) -> KnowledgeSource:
    """What the collection knows, for an export; evidence that can't be quoted is told of."""
    from tgraph.explain.export.knowledge import KnowledgeSource
    from tgraph.index.evidence import left_out, stored_evidence
    from tgraph.index.sources import Texts

    store = opened.read()
    texts = Texts(store, opened.librarian)
    told = stored_evidence(store, texts, lambda error: opened.message(left_out(error)))
    return KnowledgeSource(store, texts, told)
