"""The history of knowledge in an open graph: ``KnowledgeGraph.history``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date, datetime

    from tgraph.engine.change.corrections import Correction
    from tgraph.engine.open_collection import OpenCollection
    from tgraph.explain.trace.curations import Curation
    from tgraph.explain.trace.generations import Generation
    from tgraph.explain.trace.knowledge_diff import KnowledgeDiff


class KnowledgeHistory:
    """Read generations of knowledge, changes between points in time, and decisions of people;
    undo decisions."""

    def __init__(self, opened: OpenCollection) -> None:
        self._opened = opened

    def read_generations(self) -> list[Generation]:
        """Return knowledge generations, newest first, with publication time and cause."""
        from tgraph.explain.trace.generations import list_generations

        return list_generations(self._opened.read())

    def compare(
        self, before: str | int | datetime | date, after: str | int | datetime | date = "now"
    ) -> KnowledgeDiff:
        """Compare entities, facts and claims between two points in time, and give causes of
        changes.

        Points are named as for ``KnowledgeGraph.ask``; 0 is before the first generation. Raises
        ``UsageError`` for an invalid point, ``StoreError`` if the record of a change can't be
        read."""
        from tgraph.engine.ask.conversation import point_in_time, write_point
        from tgraph.explain.trace.knowledge_diff import knowledge_diff

        opened = self._opened
        start, end = (point_in_time(opened, write_point(point)) for point in (before, after))
        return knowledge_diff(opened.read(), opened.librarian, start, end)

    def read_curations(self) -> list[Curation]:
        """Return decisions by people about the graph, newest first."""
        from tgraph.explain.trace.curations import read_curations

        return read_curations(self._opened.read())

    def find_curation(self, name: str) -> Curation:
        """Return a decision by IRI, UUID, the beginning of either, its result, or ``last``.

        Raises ``UsageError`` if no decision or several decisions match."""
        from tgraph.explain.trace.curations import find_curation

        return find_curation(self.read_curations(), name)

    def undo_curation(self, name: str, *, reason: str) -> Correction:
        """Undo a decision, named as for ``find_curation`` (``last`` is the last standing
        decision).

        Knowledge is then as if the decision had not been made, and answers resting on its
        statements are called into question. Raises ``UsageError`` if the decision is undone
        already, or is undone by another method (retractions, authority)."""
        from tgraph.engine.change.corrections import apply_correction

        return apply_correction(self._opened, reason, lambda run: run.undo(name, reason))
