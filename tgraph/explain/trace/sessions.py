"""The recorded sessions: listing them, and finding one by what a person types."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import SupportsIndex, overload

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.errors import UnknownNameError, UsageError
from tgraph.record.assessments import questioned
from tgraph.rendering import render
from tgraph.store.base import Store, select, text_of

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
    """Sessions as a list that shows itself as a table in a notebook; so does a slice of it."""

    @overload
    def __getitem__(self, place: SupportsIndex) -> SessionSummary: ...
    @overload
    def __getitem__(self, place: slice) -> SessionList: ...
    def __getitem__(self, place: SupportsIndex | slice) -> SessionSummary | SessionList:
        found = super().__getitem__(place)
        return SessionList(found) if isinstance(found, list) else found

    def _repr_html_(self) -> str:
        return render(self, "notebook")


def list_sessions(store: Store, catalogue: str, limit: int | None = None) -> SessionList:
    """The sessions of an explainability collection, those sealed last first."""
    rows = select(store, "trace/sessions", {"catalogue": [NamedNode(catalogue)]})
    doubts = {session: doubt.time for session, doubt in questioned(store).items()}
    found = [
        SessionSummary(
            explain_id=text_of(row["session"]),
            **{name: text_of(row[name]) for name in _TOLD},
            bundle=text_of(row["bundle"]),
            sequence=int(text_of(row["sequence"])),
            questioned=doubts.get(text_of(row["session"]), ""),
        )
        for row in rows
    ]
    return SessionList(found[:limit])


def find_session(store: Store, catalogue: str, name: str) -> SessionSummary:
    """The session named by its IRI, its UUID, an unambiguous beginning of it, or ``last``.

    ``UsageError`` where there is none, or more than one.
    """
    graph = NamedNode(catalogue)
    if name == LAST:
        return _last(store, graph)
    wanted = name.removeprefix(v.session_iri("")).strip().lower()
    if not wanted:
        raise UsageError("The id of the session is empty.", "`tgraph sessions` lists them.")
    found = _bundles(store, graph, wanted)
    if len(found) == 1:
        return _summary(store, graph, found[0])
    problem = "More than one session begins with" if found else "There is no session"
    raise UnknownNameError(f"{problem} {name!r}.", "`tgraph sessions` lists them.")


def _bundles(store: Store, catalogue: NamedNode, uuid: str) -> list[str]:
    """The bundles of the session of the UUID or, if there is none, of those that begin with it."""
    start = v.session_iri(uuid)
    with suppress(ValueError):  # what a person types need not be an IRI
        if found := list(store.match(None, v.tg("session"), NamedNode(start), catalogue)):
            return [text_of(quad.subject) for quad in found]
    known = store.match(None, v.tg("session"), None, catalogue)
    return [text_of(quad.subject) for quad in known if text_of(quad.object).startswith(start)]


def _last(store: Store, catalogue: NamedNode) -> SessionSummary:
    """The session at the end of the chain: its order is no clock's."""
    sessions = {quad.subject for quad in store.match(None, v.tg("session"), None, catalogue)}
    entries = store.match(None, v.tg("sequence"), None, catalogue)
    numbered = [
        (int(text_of(e.object)), text_of(e.subject)) for e in entries if e.subject in sessions
    ]
    if not numbered:
        raise UnknownNameError("No session has been recorded yet.", "Ask something first.")
    return _summary(store, catalogue, max(numbered)[1])


def _summary(store: Store, catalogue: NamedNode, bundle: str) -> SessionSummary:
    """The session of a bundle, without reading what is said of any other."""

    def said(subject: str, predicate: NamedNode, graph: NamedNode) -> str:
        found = store.match(NamedNode(subject), predicate, None, graph)
        return next((text_of(quad.object) for quad in found), "")

    session = said(bundle, v.tg("session"), catalogue)
    own = NamedNode(bundle)
    doubt = questioned(store).get(session)
    return SessionSummary(
        explain_id=session,
        question=said(session, v.tg("query"), own),
        mode=said(session, v.tg("mode"), own),
        started=said(session, v.prov("startedAtTime"), own),
        ended=said(session, v.prov("endedAtTime"), own),
        status=said(session, v.tg("status"), own),
        bundle=bundle,
        sequence=int(said(bundle, v.tg("sequence"), catalogue)),
        questioned=doubt.time if doubt else "",
    )
