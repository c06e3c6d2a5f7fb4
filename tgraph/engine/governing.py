"""What a graph's keepers need: proof that the record is intact."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tgraph.engine.explaining import Explaining
from tgraph.errors import UsageError
from tgraph.record.ledger import Ledger
from tgraph.store.snapshot import Snapshot

if TYPE_CHECKING:
    from tgraph.explain.audit import AuditResult
    from tgraph.explain.integrity import Integrity

PATIENCE = 300.0
"""Seconds to wait for a writer, who should be done in one."""


class Governing(Explaining):
    """The half of ``KnowledgeGraph`` that answers for it."""

    _ledger: Ledger

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
