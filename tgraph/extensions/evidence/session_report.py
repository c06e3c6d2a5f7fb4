"""The report of a session on record, drawn from the store."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tgraph.engine.session_reader import SessionReader
from tgraph.explain.integrity.erasures import page_text
from tgraph.explain.integrity.texts import check_quotes
from tgraph.explain.render.shown_session import PageText, Request
from tgraph.explain.trace.derivation import DisplayNames
from tgraph.explain.trace.reader import Trace
from tgraph.explain.trace.record_quads import catalogue_quads, report_quads, report_trig
from tgraph.explain.trace.recorded_session import read_request
from tgraph.extensions.evidence.picture import build_picture
from tgraph.extensions.evidence.report import to_html
from tgraph.store.base import Store


def draw_report(sessions: SessionReader, session: str) -> str:
    """Return the report of a session. ``EvidenceError`` where a quote in the record is not what the
    stored text says."""
    opened = sessions.opened
    store, summary = opened.read(), sessions.find(session)
    read = opened.librarian.get_text
    texts = opened.texts(store)
    check_quotes(store, report_quads(store, summary.bundle, summary.explain_id), texts)
    pages, request = page_text(texts), partial(read_request, store, read)
    trace = sessions.trace(session)
    return report_of(store, trace, summary.bundle, opened.catalogue, read, pages, request)


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
    quads = report_quads(store, bundle, trace.explain_id)
    drawn = build_picture(quads, DisplayNames(store, read).find_label)
    quads += catalogue_quads(store, bundle, catalogue)
    return to_html(trace, report_trig(quads, trace.explain_id), drawn, page, request)
