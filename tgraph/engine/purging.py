"""Purging a document: once it is retracted, its text is erased from everything that is kept.

A new store and new texts are prepared beside the old ones, under the locks of index runs and
writers, and take their place at once; ``tgraph.record.erasing`` has what a crash leaves. Design,
section 3.7.
"""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tgraph import vocabulary as v
from tgraph.engine.curating import check_reason, impact_of, take_back
from tgraph.engine.indexing import BUSY, PATIENCE
from tgraph.engine.opened import OpenCollection
from tgraph.engine.progress import OnMessage, OnProgress, Progress, RunSetup
from tgraph.engine.rewriting import rewrite
from tgraph.errors import StoreError, UsageError
from tgraph.explain.documents import find_document, list_documents
from tgraph.explain.erased import erasure_of_document, last_erasure
from tgraph.explain.impact import Impact
from tgraph.librarian import Librarian
from tgraph.record.affected import find_affected
from tgraph.record.erasing import Erasing
from tgraph.record.traces import Collected
from tgraph.store.base import Store
from tgraph.store.files import exclusive
from tgraph.store.folder import CollectionFolder
from tgraph.store.journal import is_free
from tgraph.store.snapshot import pinned, read_pointer, remove_unpinned
from tgraph.store.writer import abandoned

_PAUSE = 0.05


def named(store: Store, name: str, *, unfinished: bool) -> str:
    """The document that a name means. Where an erasure was ``unfinished`` the name may be gone with
    the text: then it means what was erased last. ``UsageError`` for none."""
    try:
        return find_document(store, name).document
    except UsageError:
        last = last_erasure(store) if unfinished else None
        if last is None:
            raise
        return last.document


def say_what_stays(
    store: Store, folder: CollectionFolder, document: str, message: OnMessage
) -> None:
    """Tell of what may hold the same text and is not erased with the document."""
    known = list_documents(store)
    paths = {found.path for found in known if found.document == document}
    for other in {found.document for found in known if found.path in paths} - {document}:
        if erasure_of_document(store, other) is None:
            message(f"Another content of the same path stays until it is erased too: {other}")
    digest = document.removeprefix(v.document_iri(""))
    for place in sorted(folder.path.parent.iterdir()):
        if place != folder.path and Librarian(place / "librarian").has(digest):
            message(f"The collection {place.name} holds the same document; it stays there.")


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


def purge(
    opened: OpenCollection,
    document: str,
    reason: str,
    patience: float,
    progress: OnProgress,
    message: OnMessage | None,
) -> Purge:
    """As ``KnowledgeGraph.purge``."""
    check_reason(reason)
    if opened.asking:
        raise StoreError("A question is still being answered here.", "Let it end, or leave it.")
    setup = opened.setup(progress, message)
    purging = Purging(**vars(setup), key=secrets.token_bytes(32), patience=patience)
    unfinished = opened.ledger.is_erasing()
    before = impact_of(opened, named(opened.read(), document, unfinished=unfinished))
    done = erasure_of_document(opened.read(), before.document)
    questioned: tuple[str, ...] = ()
    if done is None:
        purging.check(opened.read(), before.document, reason)
        say_what_stays(opened.read(), opened.folder, before.document, purging.message)
        opened.release()
        purging.wait_for_readers()
        _, questioned = take_back(opened, before.document, reason, progress)
        opened.release()
        purging.erase(before.document, reason)
        done = erasure_of_document(opened.read(), before.document)
        assert done is not None
        unfinished = True
    opened.turns.clear()
    opened.release()
    purging.clear()
    counts = (done.bundles, done.batches, done.texts)
    return Purge(before, questioned, done.erasure, *counts, already=not unfinished)


@dataclass(frozen=True)
class Purging(RunSetup):
    """One purge. ``key`` is the secret that the marks are made with, ``patience`` how many seconds
    it waits for those who read what is to be erased."""

    key: bytes
    patience: float

    def check(self, store: Store, document: str, reason: str) -> None:
        """``UsageError`` where the reason repeats the document: it would stay on record."""
        found = Collected(store, self.ledger.librarian, find_affected(store, document))
        trace = found.traces.find(reason)
        if trace is not None:
            raise UsageError(
                f"The reason says {trace!r}, as only the document does, and reasons stay.",
                "Give it in other words.",
            )

    def wait_for_readers(self) -> None:
        """Wait until nobody reads the graph. ``StoreError`` where somebody still does then; nothing
        has been done."""
        self._wait(
            lambda: pinned(self.ledger.folder),
            "Somebody reads the graph; waiting until it is closed.",
            "Somebody still reads the graph, so that its text can't be erased.",
        )

    def erase(self, document: str, reason: str) -> None:
        """Erase a document that has been retracted. What a crash interrupts is finished by the next
        command, or had not begun."""
        folder = self.ledger.folder
        with exclusive(folder.index_lock, timeout=None, waiting=partial(self.message, BUSY)):
            for leftover in abandoned(folder):
                shutil.rmtree(leftover, ignore_errors=True)
            self._wait_for_sessions()
            with self.ledger.open(timeout=PATIENCE) as (store, _):
                rewrite(store, self.ledger.librarian, Erasing(folder), document, reason, self)
        self.ledger.fold(timeout=PATIENCE)

    def clear(self) -> None:
        """See that nobody keeps what was published before. ``StoreError`` where somebody does."""
        folder = self.ledger.folder

        def others() -> list[str]:
            remove_unpinned(folder)
            pointer = read_pointer(folder)
            return [n for n in pinned(folder) if pointer is None or n != str(pointer.snapshot)]

        self._wait(
            others,
            "Somebody reads what was published before; waiting until it is closed.",
            "The text is erased, but somebody still reads what was published before.",
        )

    def show(self, stage: str, done: int, total: int) -> None:
        self.progress(Progress(stage, done, total))

    def _wait_for_sessions(self) -> None:
        """Questions that began before the retraction may still write what they found."""
        journals = [path for path in self._journals() if not is_free(path)]
        self._wait(
            lambda: [path for path in journals if path.exists() and not is_free(path)],
            "A question is being answered; waiting for it to end.",
            "A question is still being answered; the document is retracted, and not erased.",
        )

    def _journals(self) -> Iterable[Path]:
        return self.ledger.folder.journals.glob("*.journal")

    def _wait(self, left: Callable[[], Iterable[object]], waiting: str, failed: str) -> None:
        deadline = time.monotonic() + self.patience
        if not left():
            return
        self.message(waiting)
        while left():
            if time.monotonic() > deadline:
                raise StoreError(failed, "Close it, and run the same command again.")
            time.sleep(_PAUSE)
