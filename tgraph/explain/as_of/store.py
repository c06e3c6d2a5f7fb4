"""Knowledge at a past generation, with session inputs read without model calls.

Each knowledge change is a chain batch, stored as added and removed lines; newer changes are
undone one by one on a private checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.errors import StoreError
from tgraph.explain.integrity.erasures import erasures_since
from tgraph.explain.integrity.sealed_entries import (
    ADDED,
    REMOVED,
    SealedEntries,
    batch_lines,
    quads_of_lines,
)
from tgraph.librarian import Librarian
from tgraph.retrieve.filters import NO_FILTERS, admitted_documents
from tgraph.retrieve.subset import Admitted
from tgraph.store.base import Store, match_record, text_of
from tgraph.store.oxigraph import BULK, OxigraphStore


@dataclass(frozen=True, slots=True, order=True)
class KnowledgeBatch:
    """A chain batch that changed knowledge: resulting generation, IRI, sealed hash, publication
    time (an xsd:dateTime), and creating run."""

    number: int
    iri: str
    key: str
    time: str
    run: str


def knowledge_batches(store: Store) -> list[KnowledgeBatch]:
    """Return knowledge changes, sorted by generation."""
    batches = []
    for batch in match_record(store, None, v.RDF_TYPE, v.tg("Batch")):
        assert isinstance(batch.subject, NamedNode)
        batch_quads = store.match(batch.subject, None, None, batch.graph_name)
        values = {quad.predicate: text_of(quad.object) for quad in batch_quads}
        if v.tg("generation") in values:
            number = int(values[v.tg("generation")])
            predicates = (v.tg("contentHash"), v.prov("generatedAtTime"), v.tg("run"))
            texts = (values.get(name, "") for name in predicates)
            batches.append(KnowledgeBatch(number, batch.subject.value, *texts))
    return sorted(batches)


@contextmanager
def as_of(store: OxigraphStore, librarian: Librarian, generation: int) -> Iterator[OxigraphStore]:
    """Provide the store with knowledge and sources of a generation; sessions and agents stay
    current.

    The cost depends on the amount of changes since. Raise ``StoreError`` if a change's text is
    unreadable."""
    changes = [batch for batch in reversed(knowledge_batches(store)) if batch.number > generation]
    sealed = SealedEntries(store, librarian)
    with TemporaryDirectory(prefix="tgraph-past-") as folder:
        store.backup(Path(folder) / "store")
        past = OxigraphStore.open(Path(folder) / "store")
        try:
            for change in changes:
                _undo_batch(past, librarian, sealed.content_hash(change.iri, change.key))
            yield past
        finally:
            past.close()


def without_erased(store: Store) -> tuple[Store, tuple[str, ...]]:
    """Return an earlier store minus documents erased since, with a note about removed
    documents."""
    erased = {document for erasure in erasures_since(store, "") for document in erasure.documents}
    stood = admitted_documents(NO_FILTERS, store)
    if not (gone := stood & erased):
        return store, ()
    remaining = OxigraphStore.memory(Admitted(store, stood - gone, None).quads())
    description = (
        "a document that stood then was" if len(gone) == 1 else f"{len(gone)} documents that"
    )
    many = "" if len(gone) == 1 else " stood then were"
    return remaining, (
        f"The text of {description}{many} erased since; answers do not use the text.",
    )


def erased_since(store: Store, time: str) -> bool:
    """Tell whether text was erased after a time (an xsd:dateTime), so that past knowledge can't
    be rebuilt."""
    return bool(erasures_since(store, time))


def publication_time(store: Store, generation: int) -> str:
    """Return the publication time of a generation (an xsd:dateTime); empty if unknown."""
    return next((b.time for b in knowledge_batches(store) if b.number == generation), "")


def changed_lines(
    store: Store, librarian: Librarian, first: int, last: int
) -> Iterator[tuple[KnowledgeBatch, set[bytes], set[bytes]]]:
    """Yield changes after generation ``first`` up to ``last``, sorted, each with added and
    removed N-Quads lines.

    Raise ``StoreError`` if a change is unreadable."""
    sealed = SealedEntries(store, librarian)
    for batch in knowledge_batches(store):
        if first < batch.number <= last:
            key = sealed.content_hash(batch.iri, batch.key)
            removed = set(batch_lines(librarian, key, REMOVED))
            added = set(batch_lines(librarian, key, ADDED))
            yield batch, added - removed, removed - added


def _undo_batch(store: OxigraphStore, librarian: Librarian, key: str) -> None:
    """Undo a batch. Lines both removed and added existed before the batch."""
    removed = set(batch_lines(librarian, key, REMOVED))
    added = (line for line in batch_lines(librarian, key, ADDED) if line not in removed)
    store.remove(quads_of_lines(added))
    quads = quads_of_lines(sorted(removed))
    while chunk := list(islice(quads, BULK)):
        store.fill(chunk)


@dataclass(frozen=True, slots=True)
class StoreAsOf:
    """A store with knowledge and sources read by a session.

    If knowledge has changed since, ``is_past`` tells whether the past state was restored, and
    ``note`` describes the content; ``note`` is empty if nothing changed."""

    store: Store
    is_past: bool = False
    note: str = ""

    @property
    def is_other(self) -> bool:
        """Whether the store holds current knowledge different from the session's."""
        return bool(self.note) and not self.is_past


@contextmanager
def read_then(
    store: Store, librarian: Librarian, generations: tuple[int, int], started: str
) -> Iterator[StoreAsOf]:
    """Provide the store read by a session ``started`` at a time (an xsd:dateTime);
    ``generations`` are session generation and newest generation.

    After an erasure, or if a change record is unreadable, current content is provided with an
    explanatory note."""
    session_generation, now = generations
    if session_generation >= now:
        yield StoreAsOf(store)
        return
    if erased_since(store, started):
        why = "Text was erased after the session: the earlier knowledge is not available"
        yield StoreAsOf(store, note=f"{why}; the current knowledge is read.")
        return
    assert isinstance(store, OxigraphStore)
    changed = (
        f"Knowledge has changed since the session (generation {session_generation}, now {now})"
    )
    with ExitStack() as opened:
        try:
            past: Store = opened.enter_context(as_of(store, librarian, session_generation))
        except StoreError as error:
            then = StoreAsOf(
                store, note=f"{changed}; the current knowledge is read: {error.message}"
            )
        else:
            then = StoreAsOf(
                past,
                is_past=True,
                note=f"{changed}: the earlier knowledge is rebuilt from the record.",
            )
        yield then
