"""Session reading for an open collection: traces, reports, exports, and explanations of missing
answer content, for ``KnowledgeGraph`` and ``KnowledgeGraph.sessions``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from tgraph import vocabulary as v
from tgraph.errors import UnknownNameError, UsageError
from tgraph.plugins import SESSION_FORMATS, VOCABULARIES

if TYPE_CHECKING:
    from pyoxigraph import Quad

    from tgraph.engine.open_collection import OpenCollection
    from tgraph.explain.trace.reader import Trace
    from tgraph.explain.trace.sessions import SessionSummary
    from tgraph.explain.whynot.causes import WhyNot
    from tgraph.explain.whynot.cut_offs import SessionParameters
    from tgraph.store.base import Store
    from tgraph.store.folder import CollectionFolder


_WAITING = (
    "Sessions of this replica are listed after the original graph has added the sessions to the "
    "chain: run `tgraph follow` here, `tgraph ship` at the original graph, and `tgraph follow` "
    "again."
)


def _has_unchained(folder: CollectionFolder) -> bool:
    """Tell whether a replica holds sessions unchained by its writer."""
    return folder.replica.exists() and any(folder.journals.glob("*.journal"))


REPORT = "html"
"""The format of a report, which the extension evidence writes."""
TRUSTGRAPH = "trustgraph"
"""The vocabulary that the extension interchange writes."""


@dataclass(frozen=True, slots=True)
class WrittenSession:
    """A session in an extension's format: ``data`` holds bytes, ``summary`` describes
    multi-file content, ``notes`` inform readers."""

    data: bytes
    summary: str = ""
    notes: tuple[str, ...] = ()


class SessionReader:
    """A reader for recorded sessions of a collection."""

    def __init__(self, opened: OpenCollection) -> None:
        self.opened = opened

    def find(self, name: str) -> SessionSummary:
        """Return the named session. Raise ``UnknownNameError`` for unknown names.

        On a replica, the error explains how local sessions enter the record."""
        from tgraph.explain.trace.sessions import find_session

        try:
            return find_session(self.opened.read(), self.opened.catalogue, name)
        except UnknownNameError as error:
            if not _has_unchained(self.opened.folder):
                raise
            raise UnknownNameError(error.message, f"{error.remedy} {_WAITING}") from error

    def trace(self, session: str) -> Trace:
        from tgraph.explain.trace.reader import read_trace
        from tgraph.record.assessments import find_questioned_sessions

        summary = self.find(session)
        store = self.opened.read()
        collection = self.opened.settings.explain_collection
        trace = read_trace(store, self.opened.texts(store), summary, collection)
        doubt = find_questioned_sessions(self.opened.read()).get(summary.explain_id)
        return replace(
            trace,
            report=partial(self.report, summary.explain_id),
            questioned=f"{doubt.time}: {doubt.reason}" if doubt else "",
        )

    def report(self, session: str) -> str:
        return self.write(session, REPORT).data.decode()

    def write(self, session: str, format: str, *, texts: bool = True) -> WrittenSession:
        """Return the session in a format that an extension writes, without the texts of pages and
        calls where ``texts`` is false. ``UsageError`` where no extension writes it."""
        writer: SessionWriter = SESSION_FORMATS.require(format, "evidence")
        return writer(self, session, texts)

    def trace_so_far(self, session: str) -> Trace:
        from tgraph.explain.trace.reader import read_so_far

        uuid = session.removeprefix(v.session_iri(""))
        knowledge = self.opened.knowledge
        if knowledge is not None:
            journal = self.opened.folder.journals / f"{uuid}.journal"
            collection = self.opened.settings.explain_collection
            texts = self.opened.texts(knowledge)
            trace = read_so_far(knowledge, texts, journal, session, collection)
            if trace is not None:
                return trace
        return self.trace(session)

    def export(
        self, session: str, format: str, vocabulary: str, *, classic: bool, core: bool
    ) -> bytes:
        from tgraph.explain.export.formats import serialise_quads

        if vocabulary == "tgraph":
            if format in (REPORT, *SESSION_FORMATS.names()):
                return self.write(session, format).data
            return self._export_session(session, format, classic=classic, core=core)
        if vocabulary not in (TRUSTGRAPH, *VOCABULARIES.names()):
            raise UsageError(
                f"There is no vocabulary {vocabulary!r}.", "There are: tgraph, trustgraph."
            )
        if core:
            raise UsageError("In TrustGraph's vocabulary there is no core form.", "Leave one out.")
        state: VocabularyWriter = VOCABULARIES.require(vocabulary, "interchange")
        quads = state(self.trace(session), self.opened.read())
        return serialise_quads(quads, format, without_terms=classic)

    def _export_session(self, session: str, format: str, *, classic: bool, core: bool) -> bytes:
        from tgraph.explain.export.formats import draw_picture, serialise_quads
        from tgraph.explain.integrity.texts import check_quotes
        from tgraph.explain.trace.derivation import DisplayNames
        from tgraph.explain.trace.record_quads import (
            bundle_of,
            catalogue_quads,
            core_quads,
            report_quads,
            session_quads,
        )

        store = self.opened.read()
        texts = self.opened.texts(store)
        bundle_name = bundle_of(store, self.opened.catalogue, session)
        if bundle_name is not None:
            if core:
                raise UsageError("Only the record of a session has a core form.", "Leave out core.")
            bundle, quads = bundle_name, session_quads(store, bundle_name)
        else:
            summary = self.find(session)
            bundle = summary.bundle
            if draw := draw_picture(format):
                drawn = report_quads(store, bundle, summary.explain_id)
                check_quotes(store, drawn, texts)
                names = DisplayNames(store, self.opened.librarian.get_text).find_label
                return draw(drawn, names)
            quads = (
                core_quads(store, bundle, summary.explain_id)
                if core
                else session_quads(store, bundle)
            )
        check_quotes(store, quads, texts)
        quads = quads + catalogue_quads(store, bundle, self.opened.catalogue)
        return serialise_quads(quads, format, without_terms=classic)

    def why_not(self, session: str, expected: str) -> WhyNot:
        from tgraph.explain.whynot.causes import why_not

        store, summary = self.opened.read(), self.find(session)
        return why_not(store, self.opened.texts(store), summary, expected, self._parameters)

    def _parameters(self, trace: Trace) -> SessionParameters:
        """Return recorded session parameters, as far as the record is readable."""
        from tgraph.engine.ask.parameters import filters_of, restore_settings
        from tgraph.explain.whynot.cut_offs import SessionParameters

        settings = self.opened.settings
        with suppress(UsageError):
            settings = restore_settings(settings, trace.mode, trace.parameters)
        filters = filters_of(trace.parameters)
        return SessionParameters(settings, filters, self.opened.parts.embedder)


SessionWriter = Callable[[SessionReader, str, bool], WrittenSession]
"""Writes a session, named as for ``SessionReader.find``; False leaves texts of pages and calls
out, where the format has them."""
VocabularyWriter = Callable[["Trace", "Store"], list["Quad"]]
"""States a session in a vocabulary."""
