"""Recorded sessions of an open graph: ``KnowledgeGraph.sessions``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tgraph.engine.session_reader import SessionReader

if TYPE_CHECKING:
    from tgraph.engine.open_collection import OpenCollection
    from tgraph.explain.trace.comparison import Comparison
    from tgraph.explain.trace.reader import Trace
    from tgraph.explain.trace.sessions import SessionList, SessionSummary


class Sessions:
    """Find, list and compare recorded sessions."""

    def __init__(self, opened: OpenCollection) -> None:
        self._opened = opened
        self._reader = SessionReader(opened)

    def summaries(self, limit: int | None = None) -> SessionList:
        """Return recorded sessions, newest first, at most ``limit``; a notebook shows a table."""
        from tgraph.explain.trace.sessions import list_sessions

        return list_sessions(self._opened.read(), self._opened.catalogue, limit)

    def find(self, name: str) -> SessionSummary:
        """Return a session by IRI, UUID, unambiguous beginning of either, or ``last``."""
        return self._reader.find(name)

    def trace_running(self, session: str) -> Trace:
        """Return the partial record of a session still running in this process."""
        return self._reader.trace_so_far(session)

    def compare(self, before: str, after: str = "last") -> Comparison:
        """Compare questions, retrieved candidates, selections, answers and citations of two
        sessions."""
        from tgraph.explain.trace.comparison import compare_sessions

        return compare_sessions(self._reader.trace(before), self._reader.trace(after))
