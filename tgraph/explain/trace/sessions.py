"""Recorded sessions: listing sessions, and finding sessions by typed names."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import SupportsIndex, overload

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.errors import UnknownNameError, UsageError
from tgraph.record.assessments import find_questioned_sessions
from tgraph.rendering import render_value
from tgraph.store.base import Store, select_rows, text_of

LAST = "last"
_TOLD = ("question", "mode", "started", "ended", "status")


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """One recorded session. Times are xsd:dateTime texts; ``ended`` is empty while it is open, and
    ``questioned`` unless the answer was called into question later. ``status`` is completed,
    no-evidence, context-only, failed, interrupted, aborted, or empty."""

    explain_id: str
    question: str
    mode: str
    started: str
    ended: str
    status: str
    bundle: str
    sequence: int
    questioned: str = ""


class SessionList(list[SessionSummary]):
    """A session list displayed as a table in notebooks, slices included."""

    @overload
    def __getitem__(self, place: SupportsIndex) -> SessionSummary: ...
    @overload
    def __getitem__(self, place: slice) -> SessionList: ...
    def __getitem__(self, place: SupportsIndex | slice) -> SessionSummary | SessionList:
        selected = super().__getitem__(place)
        return SessionList(selected) if isinstance(selected, list) else selected

    def _repr_html_(self) -> str:
        return render_value(self, "notebook")


def list_sessions(store: Store, catalogue: str, limit: int | None = None) -> SessionList:
    """Return sessions of an explainability collection, most recently sealed sessions before
    older sessions."""
    rows = select_rows(store, "trace/sessions", {"catalogue": [NamedNode(catalogue)]})
    doubts = {session: doubt.time for session, doubt in find_questioned_sessions(store).items()}
    summaries = [
        SessionSummary(
            explain_id=text_of(row["session"]),
            **{name: text_of(row[name]) for name in _TOLD},
            bundle=text_of(row["bundle"]),
            sequence=int(text_of(row["sequence"])),
            questioned=doubts.get(text_of(row["session"]), ""),
        )
        for row in rows
    ]
    return SessionList(summaries[:limit])


def find_session(store: Store, catalogue: str, name: str) -> SessionSummary:
    """Return a session by IRI, UUID, unambiguous UUID prefix, or ``last``.

    Raise ``UsageError`` if none or several match."""
    graph = NamedNode(catalogue)
    if name == LAST:
        return _newest_session(store, graph)
    uuid_prefix = name.removeprefix(v.session_iri("")).strip().lower()
    if not uuid_prefix:
        raise UsageError("The id of the session is empty.", "`tgraph sessions` lists all sessions.")
    bundles = _find_bundles(store, graph, uuid_prefix)
    if len(bundles) == 1:
        return _read_summary(store, graph, bundles[0])
    problem = "More than one session begins with" if bundles else "There is no session"
    raise UnknownNameError(f"{problem} {name!r}.", "`tgraph sessions` lists all sessions.")


def _find_bundles(store: Store, catalogue: NamedNode, uuid: str) -> list[str]:
    """Return bundles of the session with the exact UUID, otherwise bundles of sessions with the
    UUID prefix."""
    start = v.session_iri(uuid)
    with suppress(ValueError):  # what a person types need not be an IRI
        if exact_quads := list(store.match(None, v.tg("session"), NamedNode(start), catalogue)):
            return [text_of(quad.subject) for quad in exact_quads]
    session_quads = store.match(None, v.tg("session"), None, catalogue)
    return [
        text_of(quad.subject) for quad in session_quads if text_of(quad.object).startswith(start)
    ]


def _newest_session(store: Store, catalogue: NamedNode) -> SessionSummary:
    """Return the session at the chain's end; chain order is independent of clocks."""
    sessions = {quad.subject for quad in store.match(None, v.tg("session"), None, catalogue)}
    entries = store.match(None, v.tg("sequence"), None, catalogue)
    numbered = [
        (int(text_of(e.object)), text_of(e.subject)) for e in entries if e.subject in sessions
    ]
    if not numbered:
        raise UnknownNameError("No session has been recorded yet.", "Ask something first.")
    return _read_summary(store, catalogue, max(numbered)[1])


def _read_summary(store: Store, catalogue: NamedNode, bundle: str) -> SessionSummary:
    """Return a bundle's session summary without reading other sessions' statements."""

    def read_text(subject: str, predicate: NamedNode, graph: NamedNode) -> str:
        quads = store.match(NamedNode(subject), predicate, None, graph)
        return next((text_of(quad.object) for quad in quads), "")

    session = read_text(bundle, v.tg("session"), catalogue)
    bundle_node = NamedNode(bundle)
    doubt = find_questioned_sessions(store).get(session)
    return SessionSummary(
        explain_id=session,
        question=read_text(session, v.tg("query"), bundle_node),
        mode=read_text(session, v.tg("mode"), bundle_node),
        started=read_text(session, v.prov("startedAtTime"), bundle_node),
        ended=read_text(session, v.prov("endedAtTime"), bundle_node),
        status=read_text(session, v.tg("status"), bundle_node),
        bundle=bundle,
        sequence=int(read_text(bundle, v.tg("sequence"), catalogue)),
        questioned=doubt.time if doubt else "",
    )
