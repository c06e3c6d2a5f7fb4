"""What a graph's keepers need: proof that the record is intact, and taking documents back."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tgraph import vocabulary as v
from tgraph.engine.explaining import Explaining
from tgraph.errors import UsageError
from tgraph.record.ledger import Ledger
from tgraph.store.snapshot import Snapshot

if TYPE_CHECKING:
    from tgraph.engine.progress import OnMessage, OnProgress
    from tgraph.explain.audit import AuditResult
    from tgraph.explain.impact import Impact
    from tgraph.explain.integrity import Integrity

PATIENCE = 300.0
"""Seconds to wait for a writer, who should be done in one."""


@dataclass(frozen=True, slots=True)
class Retraction:
    """What a retraction came to. ``impact`` is what rested on the document before; ``questioned``
    are the sessions whose answers were called into question now."""

    impact: Impact
    questioned: tuple[str, ...]


class Governing(Explaining):
    """The half of ``KnowledgeGraph`` that answers for it."""

    _ledger: Ledger
    _clock: Callable[[], datetime]
    _uuid: Callable[[], str]

    @abstractmethod
    def _run_options(self, progress: OnProgress, message: OnMessage | None) -> dict[str, Any]: ...

    def integrity(self, head: str | None = None) -> Integrity:
        """Whether everything is as it was sealed, and the chain contains the ``head`` that was
        saved earlier. Writers wait meanwhile."""
        from tgraph.engine.checking import check

        with self._ledger.open(timeout=PATIENCE) as (store, _):
            snapshot = Snapshot.open(self._folder)
            if snapshot is None:
                raise UsageError("Nothing has been recorded yet.", "Run `tgraph index PATH...`.")
            try:
                return check(store, snapshot, self.librarian, self._catalogue, head)
            finally:
                snapshot.close()

    def audit(self, name: str, *arguments: str) -> AuditResult:
        from tgraph.explain.audit import INTEGRITY, AuditResult

        if name != INTEGRITY.name:
            return super().audit(name, *arguments)
        if len(arguments) > 1:
            raise UsageError(f"The audit {name} takes 1 argument, not {len(arguments)}.")
        found = self.integrity(*filter(None, arguments))
        rows = tuple((p.kind, p.what, p.subject, p.detail) for p in found.problems)
        return AuditResult(INTEGRITY, rows, found.ok)

    def impact(self, document: str) -> Impact:
        """The facts that rest on a document alone, and the answers that rest on it."""
        from tgraph.explain.impact import read_impact

        return read_impact(self.read(), self._catalogue, document)

    def retract(self, document: str, *, reason: str) -> Retraction:
        """Take a document (named by path, title, IRI or hash) back: knowledge is derived without
        it, and the answers that rest on it lose their standing. The record stays.

        Recorded with the reason and, if ``person`` is set, with who decided. Called again after it
        was interrupted, it does what is left. ``UsageError`` where nothing is left to do.
        """
        from tgraph.engine.progress import silent
        from tgraph.engine.retracting import RetractionRun

        if not reason.strip():
            raise UsageError("A decision needs a reason.", "Give it with --reason.")
        before = self.impact(document)
        run = RetractionRun(**self._run_options(silent, None))
        changed = run.retract(before.document, reason, self.settings.person)
        answers = [a for a in self.impact(before.document).answers if not a.questioned]
        if not changed and not answers:
            raise UsageError(
                f"{before.path} was retracted already.", "`tgraph index --reinstate` takes it back."
            )
        sessions = tuple(answer.session for answer in answers)
        if sessions:
            self._question(before.document, reason, sessions)
        return Retraction(before, sessions)

    def _question(self, document: str, reason: str, sessions: tuple[str, ...]) -> None:
        from tgraph.record.invalidation import InvalidationRecord

        record = InvalidationRecord(self._folder.journals, self._uuid(), self._clock)
        try:
            record.write(
                document,
                reason,
                [session.removeprefix(v.session_iri("")) for session in sessions],
                self.settings.person,
                self._folder.name,
                self.settings.explain_collection,
            )
        finally:
            record.close()
        self.read()
