"""Purging a document: once it is retracted, its text is erased from everything that is kept.

A new store and new texts are prepared beside the old ones, under the locks of index runs and
writers, and take their place at once; ``tgraph.record.erasing`` has what a crash leaves. Design,
section 3.7.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tgraph import vocabulary as v
from tgraph.engine.progress import OnMessage, OnProgress, Progress
from tgraph.engine.rewriting import rewrite
from tgraph.errors import StoreError, UsageError
from tgraph.explain.documents import find_document, list_documents
from tgraph.explain.erased import erasure_of_document, last_erasure
from tgraph.librarian import Librarian
from tgraph.record.affected import find_affected
from tgraph.record.erasing import Erasing
from tgraph.record.ledger import Ledger
from tgraph.record.traces import Collected
from tgraph.settings import Settings
from tgraph.store.base import Store
from tgraph.store.files import exclusive
from tgraph.store.folder import CollectionFolder
from tgraph.store.journal import is_free
from tgraph.store.snapshot import pinned, read_pointer, remove_unpinned
from tgraph.store.writer import abandoned

PATIENCE = 300.0
"""Seconds to wait for a writer."""

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
class Purging:
    """One purge. ``key`` is the secret that the marks are made with, ``patience`` how many seconds
    it waits for those who read what is to be erased."""

    ledger: Ledger
    settings: Settings
    uuid: str
    clock: Callable[[], datetime]
    catalogue: str
    key: bytes
    patience: float
    progress: OnProgress
    message: OnMessage

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
        with exclusive(folder.index_lock, timeout=None, waiting=self._say_busy):
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

    def _say_busy(self) -> None:
        self.message("An index run is at work on this collection; waiting for it to finish.")
