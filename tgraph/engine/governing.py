"""What a graph's keepers need: proof that the record is intact, and taking documents back."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tgraph import vocabulary as v
from tgraph.engine.explaining import Explaining
from tgraph.errors import StoreError, UsageError
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.snapshot import Snapshot

if TYPE_CHECKING:
    from tgraph.engine.progress import OnMessage, OnProgress
    from tgraph.engine.purging import Purging
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


@dataclass(frozen=True, slots=True)
class Purge:
    """What a purge came to. ``impact`` is what rested on the document before, ``questioned`` the
    sessions whose answers were called into question now. ``bundles`` and ``batches`` were rewritten
    and ``texts`` of the librarian removed. ``already`` is whether that had been done before."""

    impact: Impact
    questioned: tuple[str, ...]
    erasure: str
    bundles: int
    batches: int
    texts: int
    already: bool = False


class Governing(Explaining):
    """The half of ``KnowledgeGraph`` that answers for it."""

    def integrity(
        self, head: str | None = None, *, public_key: str | Path | None = None
    ) -> Integrity:
        """Whether everything is as it was sealed, and the chain contains the ``head`` that was
        saved earlier; with the file of a ``public_key``, what its owner has signed of it. Writers
        wait meanwhile; in a folder that can't be written there are none."""
        from tgraph.engine.checking import check
        from tgraph.record.signing import load_public_key

        key = load_public_key(Path(public_key)) if public_key is not None else None
        with self._held() as store:
            snapshot = Snapshot.open(self._folder)
            if snapshot is None:
                raise UsageError("Nothing has been recorded yet.", "Run `tgraph index PATH...`.")
            try:
                return check(store, snapshot, self.librarian, self._catalogue, head, key)
            finally:
                snapshot.close()

    @contextmanager
    def _held(self) -> Iterator[OxigraphStore]:
        """The store, while nobody writes to it."""
        if os.access(self._folder.path, os.W_OK):
            with self._ledger.open(timeout=PATIENCE) as (store, _):
                yield store
            return
        if self._ledger.waiting():
            self._message("The folder can't be written: sessions in journals are not checked.")
        yield OxigraphStore.snapshot(self._folder.store)

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
        _check_reason(reason)
        before = self.impact(document)
        changed, sessions = self._retract(before.document, reason)
        if not changed and not sessions:
            raise UsageError(
                f"{before.path} was retracted already.", "`tgraph index --reinstate` takes it back."
            )
        return Retraction(before, sessions)

    def purge(
        self,
        document: str,
        *,
        reason: str,
        patience: float = 30.0,
        progress: OnProgress | None = None,
        message: OnMessage | None = None,
    ) -> Purge:
        """Erase a document (named as for ``retract``) for good: it is retracted, and its text goes
        from all that is kept. Each bundle that held some of it is sealed again, and the chain
        says so; what other documents say too stays.

        Nobody else may have the graph open: who does is waited for, ``patience`` seconds, then it
        is a ``StoreError``. Called again after it was interrupted, it does what is left.
        ``UsageError`` for a reason that repeats the text, since reasons stay on record.
        """
        from tgraph.engine.purging import named, say_what_stays
        from tgraph.explain.erased import erasure_of_document

        _check_reason(reason)
        if self._asking:
            raise StoreError("A question is still being answered here.", "Let it end, or leave it.")
        purging = self._purging(patience, progress, message)
        unfinished = self._ledger.is_erasing()
        before = self.impact(named(self.read(), document, unfinished=unfinished))
        done = erasure_of_document(self.read(), before.document)
        questioned: tuple[str, ...] = ()
        if done is None:
            purging.check(self.read(), before.document, reason)
            say_what_stays(self.read(), self._folder, before.document, purging.message)
            self._release()
            purging.wait_for_readers()
            _, questioned = self._retract(before.document, reason, purging.progress)
            self._release()
            purging.erase(before.document, reason)
            done = erasure_of_document(self.read(), before.document)
            assert done is not None
            unfinished = True
        self._turns.clear()
        self._release()
        purging.clear()
        counts = (done.bundles, done.batches, done.texts)
        return Purge(before, questioned, done.erasure, *counts, already=not unfinished)

    async def apurge(self, document: str, **options: Any) -> Purge:
        """``purge`` without blocking the event loop."""
        import asyncio

        return await asyncio.to_thread(self.purge, document, **options)

    def _purging(
        self, patience: float, progress: OnProgress | None, message: OnMessage | None
    ) -> Purging:
        from tgraph.engine.progress import silent
        from tgraph.engine.purging import Purging

        options = self._run_options(progress or silent, message)
        return Purging(
            ledger=self._ledger,
            settings=self.settings,
            uuid=options["uuid"],
            clock=self._clock,
            catalogue=self._catalogue,
            key=secrets.token_bytes(32),
            patience=patience,
            progress=options["progress"],
            message=options["message"],
        )

    def _retract(
        self, document: str, reason: str, progress: OnProgress | None = None
    ) -> tuple[bool, tuple[str, ...]]:
        """Whether the document still stood, and whose answers are called into question now."""
        from tgraph.engine.progress import silent
        from tgraph.engine.retracting import RetractionRun

        run = RetractionRun(**self._run_options(progress or silent, None))
        changed = run.retract(document, reason, self.settings.person)
        answers = [a for a in self.impact(document).answers if not a.questioned]
        sessions = tuple(answer.session for answer in answers)
        if sessions:
            self._question(document, reason, sessions)
        return changed, sessions

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


def _check_reason(reason: str) -> None:
    if not reason.strip():
        raise UsageError("A decision needs a reason.", "Give it with --reason.")
