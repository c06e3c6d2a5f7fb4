"""Knowledge as it was at a generation, and all that a session read of it, without any call.

Each change of knowledge is a batch of the chain, kept as the lines it added and removed; the
newest changes are undone, one after the other, on a checkpoint that nobody else sees.
"""

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
from tgraph.store.base import Store, text_of
from tgraph.store.oxigraph import BULK, OxigraphStore


@dataclass(frozen=True, slots=True, order=True)
class KnowledgeBatch:
    """A batch of the chain that changed knowledge: the generation that it made, its IRI, the hash
    that it was sealed with, when it was published (an xsd:dateTime), and what it was made by."""

    number: int
    iri: str
    key: str
    time: str
    run: str


def knowledge_batches(store: Store) -> list[KnowledgeBatch]:
    """The changes of knowledge, the first generation's first."""
    found = []
    for batch in store.match(None, v.RDF_TYPE, v.tg("Batch"), None):
        assert isinstance(batch.subject, NamedNode)
        about = store.match(batch.subject, None, None, batch.graph_name)
        said = {quad.predicate: text_of(quad.object) for quad in about}
        if v.tg("generation") in said:
            number = int(said[v.tg("generation")])
            told = (v.tg("contentHash"), v.prov("generatedAtTime"), v.tg("run"))
            texts = (said.get(name, "") for name in told)
            found.append(KnowledgeBatch(number, batch.subject.value, *texts))
    return sorted(found)


@contextmanager
def as_of(store: OxigraphStore, librarian: Librarian, generation: int) -> Iterator[OxigraphStore]:
    """The store with the knowledge and sources of a generation; sessions and agents stay as now.

    It costs what has changed since. ``StoreError`` where the text of a change can't be read.
    """
    changes = [each for each in reversed(knowledge_batches(store)) if each.number > generation]
    sealed = SealedEntries(store, librarian)
    with TemporaryDirectory(prefix="tgraph-past-") as folder:
        store.backup(Path(folder) / "store")
        past = OxigraphStore.open(Path(folder) / "store")
        try:
            for change in changes:
                _undo(past, librarian, sealed.content_hash(change.iri, change.key))
            yield past
        finally:
            past.close()


def without_erased(store: Store) -> tuple[Store, tuple[str, ...]]:
    """A store of earlier knowledge without the documents that stood then and whose text was erased
    since; and a note on them, where there are any."""
    erased = {erasure.document for erasure in erasures_since(store, "")}
    stood = admitted_documents(NO_FILTERS, store)
    if not (gone := stood & erased):
        return store, ()
    left = OxigraphStore.memory(Admitted(store, stood - gone, None).quads())
    what = "a document that stood then was" if len(gone) == 1 else f"{len(gone)} documents that"
    many = "" if len(gone) == 1 else " stood then were"
    return left, (f"The text of {what}{many} erased since; nothing of it is answered from.",)


def erased_since(store: Store, time: str) -> bool:
    """Whether text was erased after the time (an xsd:dateTime): what was known then can't be put
    together again."""
    return bool(erasures_since(store, time))


def published(store: Store, generation: int) -> str:
    """Since when there was knowledge of the generation (an xsd:dateTime); empty for none."""
    return next((b.time for b in knowledge_batches(store) if b.number == generation), "")


def changed_lines(
    store: Store, librarian: Librarian, first: int, last: int
) -> Iterator[tuple[KnowledgeBatch, set[bytes], set[bytes]]]:
    """The changes after the generation ``first`` up to ``last``, in their order: each with the
    N-Quads lines that it added and removed. ``StoreError`` where one can't be read."""
    sealed = SealedEntries(store, librarian)
    for batch in knowledge_batches(store):
        if first < batch.number <= last:
            key = sealed.content_hash(batch.iri, batch.key)
            removed = set(batch_lines(librarian, key, REMOVED))
            added = set(batch_lines(librarian, key, ADDED))
            yield batch, added - removed, removed - added


def _undo(store: OxigraphStore, librarian: Librarian, key: str) -> None:
    """Take back a batch. What it removed and added again was there before it."""
    removed = set(batch_lines(librarian, key, REMOVED))
    added = (line for line in batch_lines(librarian, key, ADDED) if line not in removed)
    store.remove(quads_of_lines(added))
    quads = quads_of_lines(sorted(removed))
    while some := list(islice(quads, BULK)):
        store.fill(some)


@dataclass(frozen=True, slots=True)
class StoreAsOf:
    """A store with the knowledge and sources that a session read.

    Where these have changed since, ``is_past`` is whether it has them as they were; ``note`` then
    says what it has, and is empty where nothing has changed.
    """

    store: Store
    is_past: bool = False
    note: str = ""

    @property
    def is_other(self) -> bool:
        """Whether it has the knowledge of now, which is not that of the session."""
        return bool(self.note) and not self.is_past


@contextmanager
def read_then(
    store: Store, librarian: Librarian, generations: tuple[int, int], started: str
) -> Iterator[StoreAsOf]:
    """What a session read that ``started`` then (an xsd:dateTime); ``generations`` are its own and
    the newest. After an erasure, or where the record of a change can't be read, it is what is there
    now, which the note says."""
    asked, now = generations
    if asked >= now:
        yield StoreAsOf(store)
        return
    if erased_since(store, started):
        why = "Text was erased since the session: knowledge can't be had as it was"
        yield StoreAsOf(store, note=f"{why}, and is read as it is.")
        return
    assert isinstance(store, OxigraphStore)
    changed = f"Knowledge has changed since the session (generation {asked}, now {now})"
    with ExitStack() as opened:
        try:
            past: Store = opened.enter_context(as_of(store, librarian, asked))
        except StoreError as error:
            then = StoreAsOf(store, note=f"{changed}, and is read as it is: {error.message}")
        else:
            then = StoreAsOf(past, is_past=True, note=f"{changed}: it is read as it was.")
        yield then
