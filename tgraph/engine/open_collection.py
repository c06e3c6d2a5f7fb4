"""An open collection: its newest published state and data read by retrievers."""

from __future__ import annotations

import copy
import uuid as uuids
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tgraph import vocabulary as v
from tgraph.engine.components import Components
from tgraph.engine.progress import OnMessage, OnProgress, RunSetup, Watching, ignore_progress
from tgraph.engine.published_states import OpenKnowledge, PastKnowledge, PublishedStates
from tgraph.errors import StoreError, UsageError
from tgraph.index.sources import Texts
from tgraph.librarian import Librarian
from tgraph.model import Turn
from tgraph.plugins import OBSERVERS
from tgraph.record.bundle import BundleRecord
from tgraph.record.ledger import Ledger
from tgraph.record.observer import Observer, ObserverGroup, RecordObservers
from tgraph.retrieve.base import Context
from tgraph.settings import Settings
from tgraph.store.base import select_rows, text_of
from tgraph.store.folder import CollectionFolder
from tgraph.store.snapshot import Snapshot

if TYPE_CHECKING:
    from tgraph.store.base import Store
    from tgraph.store.sparql_endpoint import SparqlStore

R = TypeVar("R", bound=BundleRecord)


def new_uuid() -> str:
    return str(uuids.uuid4())


class OpenCollection:
    """An open collection, the foundation of all graph operations: folder, ledger, published
    states, components.

    Views (``view``) share open resources, and may be used concurrently, each in its own thread."""

    def __init__(
        self,
        folder: CollectionFolder,
        settings: Settings,
        clock: Callable[[], datetime],
        uuid: Callable[[], str],
        parts: Components | None,
        message: OnMessage,
        watching: Watching | None = None,
    ) -> None:
        self.folder = folder
        self.settings = settings
        self.original = self
        self.clock = clock
        self.uuid = uuid
        self.message = message
        self.watching = watching or (lambda: nullcontext((ignore_progress, self.message)))
        self.catalogue = v.collection_iri(settings.explain_collection)
        signing_key = settings.integrity.signing_key
        self.ledger = Ledger(self.folder, self.catalogue, clock, signing_key)
        self.parts = parts or Components(settings, self.folder.cache)
        self.turns: list[Turn] = []
        new_observers: Iterable[RecordObservers | None] = OBSERVERS.call_all(settings).values()
        self._observers = [observers for observers in new_observers if observers is not None]
        self._states = PublishedStates(folder, self.ledger, self.parts, message, self.watching)

    def view(
        self, settings: Settings, message: OnMessage, watching: Watching | None
    ) -> OpenCollection:
        """Return a view of this collection with different question and answer settings; what is
        built for everybody is built by ``original``, with its own.

        A user of the view holds ``reading`` during use; only the original collection is closed."""
        clone = copy.copy(self)
        clone.__dict__.pop("_reading_key", None)
        clone.settings, clone.message, clone.turns = settings, message, []
        clone.parts = self.parts.with_settings(settings)
        clone.watching = watching or (lambda: nullcontext((ignore_progress, message)))
        return clone

    def close(self) -> None:
        """Fold sessions of this process into the store and release the folder."""
        self.release()
        self.parts.close()
        self.fold()
        for observers in self._observers:
            observers.end(self.message)

    def fold(self) -> None:
        """Fold ended sessions into the store."""
        self._states.fold("Sessions stay in their journals for now")

    def release(self) -> None:
        """Release every snapshot."""
        self._states.release()

    def reading(self) -> AbstractContextManager[None]:
        """Return a context manager: resources read inside stay open, regardless of publications
        and other readers."""
        return self._states.leases.reading()

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Keep resources open during a question.

        Raise ``StoreError`` if ``store.url`` is configured and holds different content by now."""
        with self._states.asking():
            if there := self._sparql_endpoint:
                self._verify_endpoint(there, self._states.knowledge())
            yield

    @property
    def is_asked(self) -> bool:
        """Tell whether a question is in progress."""
        return self._states.is_asked

    @property
    def librarian(self) -> Librarian:
        return self.ledger.librarian

    def read(self) -> Store:
        """Return the newest published state including every finished session, for reading.

        If a writer holds the lock too long, the newest sessions are missing, and ``message``
        reports this."""
        return self._states.record()

    def texts(self, store: Store) -> Texts:
        """Return stored texts, with cached page readings."""
        return Texts(store, self.librarian, cache(self._states.kept_pages))

    def context(self) -> Context:
        """The newest published knowledge, kept open until something newer is published."""
        return self._states.context(
            self._reading_key, lambda k: self._build_context(k, self._asked_store(k))
        )

    def own_context(self) -> Context:
        """Return the context of the folder's own store, even if questions read an endpoint."""
        if not self.settings.store.url:
            return self.context()
        how = f"{self._reading_key} of the folder"
        return self._states.context(how, lambda k: self._build_context(k, k.snapshot.store))

    @cached_property
    def _reading_key(self) -> str:
        """A key that identifies settings for reading knowledge."""
        return self.settings.model_dump_json(exclude={"person"})

    def _build_context(self, knowledge: OpenKnowledge, store: Store) -> Context:
        return Context(
            store,
            knowledge.texts,
            knowledge.vectors,
            self.parts.embedder,
            self.settings,
            reader=self.parts.passage_reader,
            reports=knowledge.reports,
            table=knowledge.table,
            catalogue=knowledge.catalogue,
            generation=knowledge.generation,
        )

    def _asked_store(self, knowledge: OpenKnowledge) -> Store:
        """Return the store read by questions: the snapshot, or the endpoint with published
        knowledge."""
        there = self._sparql_endpoint
        return self._verify_endpoint(there, knowledge) if there else knowledge.snapshot.store

    @property
    def _sparql_endpoint(self) -> SparqlStore | None:
        """The SPARQL store at ``store.url``, or None."""
        store_settings = self.settings.store
        if not store_settings.url:
            return None
        from tgraph.store.sparql_endpoint import SparqlEndpoint, SparqlStore

        password = store_settings.password.get_secret_value() if store_settings.password else ""
        at = SparqlEndpoint.from_url(
            store_settings.url, user=store_settings.user, password=password
        )
        return SparqlStore(replace(at, timeout=store_settings.timeout))

    def _verify_endpoint(self, there: SparqlStore, knowledge: OpenKnowledge) -> SparqlStore:
        """Return the endpoint after comparing it with folder knowledge.

        Raise ``StoreError`` if the endpoint lacks the complete knowledge of this folder."""
        rows, folder_rows = (
            select_rows(s, "trace/generation") for s in (there, knowledge.snapshot.store)
        )
        endpoint_row, folder_row = (row[0] if row else {} for row in (rows, folder_rows))
        url, endpoint_generation = (
            self.settings.store.url,
            text_of(endpoint_row.get("generation")) or "no",
        )
        if (
            endpoint_generation == text_of(folder_row.get("generation"))
            and endpoint_row["head"] != folder_row["head"]
        ):
            raise StoreError(
                f"{url} holds another graph.", "Set store.url to where this one is published."
            )
        if endpoint_generation != str(knowledge.generation):
            generation_text = (
                "no generation"
                if endpoint_generation == "no"
                else f"generation {endpoint_generation}"
            )
            problem = (
                f"{url} holds {generation_text} of the"
                f" graph, which is at generation {knowledge.generation}."
            )
        elif text_of(endpoint_row["status"]):
            problem = f"{url} is being published to, or that was cut off."
        elif text_of(endpoint_row["view"]) == "classic":
            raise StoreError(f"{url} has no triple terms, by which questions read it.")
        else:
            return there
        raise StoreError(problem, "Run `tgraph publish`.")

    def context_as_of(self, generation: int) -> Context:
        """Return knowledge with vectors at a past generation, or the current ``context`` for
        the newest generation.

        Recently used generations stay open. Raise ``StoreError`` if a generation is unreadable."""
        context = self.own_context()
        if generation == context.generation:
            return self.context()
        return self._states.past(
            generation, self._reading_key, partial(self._open_past, context, generation)
        )

    def _open_past(self, now: Context, generation: int) -> PastKnowledge:
        from tgraph.explain.as_of.store import as_of, without_erased
        from tgraph.explain.as_of.vectors import PastVectors, SavedVectors, VectorsOnRecord
        from tgraph.models.client import Client

        newest = self._states.knowledge()
        current_embedder, librarian = now.embedder, self.librarian
        vector_store = self.parts.vector_store
        saved = SavedVectors(newest.snapshot.vectors, newest.generation, vector_store)
        with ExitStack() as opened:
            past = opened.enter_context(as_of(newest.snapshot.store, librarian, generation))
            store, notes = without_erased(past)
            near = (
                None if isinstance(current_embedder, Client) else current_embedder
            )  # a server's calls would go unrecorded
            embedder = VectorsOnRecord(
                current_embedder.agent, past, librarian, current_embedder, near
            )
            vectors = PastVectors(store, librarian, saved, embedder, vector_store)
            texts = now.texts.with_store(store)
            context = Context(
                store,
                texts,
                vectors,
                current_embedder,
                self.settings,
                now.reader,
                notes=notes,
                generation=generation,
            )
            return PastKnowledge(context, opened.pop_all())

    @property
    def knowledge(self) -> Store | None:
        """Return the newest open knowledge store for questions, or None without knowledge."""
        newest = self._states.newest
        return newest.snapshot.store if newest is not None else None

    def snapshot(self) -> Snapshot:
        """Return a snapshot of the newest published state; the caller closes it.

        Raise ``UsageError`` if nothing is recorded."""
        snapshot = self._states.readable()
        if snapshot is None:
            raise UsageError("Nothing has been recorded yet.", "Run `tgraph index PATH...`.")
        return snapshot

    def record(self, kind: Callable[[Path, str, Callable[[], datetime]], R]) -> R:
        """Return a new record of the given kind, with its observer."""
        observer = self.observe()
        new_record = kind(self.folder.journals, self.uuid(), self.clock)
        new_record.observer = observer
        return new_record

    def observe(self) -> Observer:
        """The record observer; a silent observer unless an extension supplies another."""
        members = [observers.observer() for observers in self._observers]
        return members[0] if len(members) == 1 else ObserverGroup(members)

    def setup(
        self, progress: OnProgress = ignore_progress, message: OnMessage | None = None
    ) -> RunSetup:
        """Return the setup for a graph change.

        Raise ``UsageError`` if the collection is a replica."""
        if self.folder.replica.exists():
            raise UsageError(
                "The graph is a replica and can't be changed.", "Change the original graph."
            )
        self.ledger.check_key()
        return RunSetup(
            ledger=self.ledger,
            parts=self.parts,
            settings=self.settings,
            uuid=self.uuid(),
            clock=self.clock,
            observe=self.observe,
            catalogue=self.catalogue,
            progress=progress,
            message=message or self.message,
        )
