"""The recorded sessions: listing them, and finding one by what a person types."""

from __future__ import annotations

from dataclasses import dataclass

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.errors import UsageError
from tgraph.record.invalidation import questioned
from tgraph.store.base import Store, select

LAST = "last"


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """One recorded session. Times are xsd:dateTime texts; ``ended`` is empty while it is open, and
    ``questioned`` unless the answer was called into question later."""

    explain_id: str
    question: str
    mode: str
    started: str
    ended: str
    status: str
    bundle: str
    sequence: int
    questioned: str = ""


def list_sessions(store: Store, catalogue: str, limit: int | None = None) -> list[SessionSummary]:
    """The sessions of an explainability collection, newest first."""
    rows = select(store, "trace/sessions", {"catalogue": [NamedNode(catalogue)]})
    doubts = {session: doubt.time for session, doubt in questioned(store).items()}
    found = [
        SessionSummary(
            explain_id=_text(row["session"]),
            question=_text(row["question"]),
            mode=_text(row["mode"]),
            started=_text(row["started"]),
            ended=_text(row["ended"]),
            status=_text(row["status"]),
            bundle=_text(row["bundle"]),
            sequence=int(_text(row["sequence"])),
            questioned=doubts.get(_text(row["session"]), ""),
        )
        for row in rows
    ]
    return found[:limit]


def find_session(store: Store, catalogue: str, name: str) -> SessionSummary:
    """The session named by its IRI, its UUID, an unambiguous beginning of it, or ``last``.

    ``UsageError`` where there is none, or more than one.
    """
    sessions = list_sessions(store, catalogue)
    if name == LAST:
        if not sessions:
            raise UsageError("No session has been recorded yet.", "Ask something first.")
        return sessions[0]
    wanted = name.removeprefix(v.session_iri("")).strip().lower()
    if not wanted:
        raise UsageError("The id of the session is empty.", "`tgraph sessions` lists them.")
    matching = [s for s in sessions if _uuid(s).startswith(wanted)]
    exact = [s for s in matching if _uuid(s) == wanted]
    if len(exact or matching) == 1:
        return (exact or matching)[0]
    problem = "More than one session begins with" if matching else "There is no session"
    raise UsageError(f"{problem} {name!r}.", "`tgraph sessions` lists them.")


def _uuid(session: SessionSummary) -> str:
    return session.explain_id.removeprefix(v.session_iri(""))


def _text(term: object) -> str:
    return term.value if isinstance(term, Literal | NamedNode) else ""
