"""A collection that is open: its newest published state, and what a retriever reads of it."""

from __future__ import annotations

import copy
import uuid as uuids
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tgraph import vocabulary as v
from tgraph.engine.components import Components
from tgraph.engine.progress import OnMessage, OnProgress, RunSetup, Watching, silent
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
from tgraph.store.base import select, text_of
from tgraph.store.folder import CollectionFolder
from tgraph.store.snapshot import Snapshot

if TYPE_CHECKING:
    from tgraph.store.base import Store
    from tgraph.store.sparql_endpoint import SparqlStore

R = TypeVar("R", bound=BundleRecord)


def now() -> datetime:
    return datetime.now(UTC)


def new_uuid() -> str:
    return str(uuids.uuid4())


class OpenCollection:
    """What all that a graph can do stands on: folder, ledger, published states, parts.

    Views of it (``view``) share what is open, and may be used at the same time, each in a thread of
    its own.
    """

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
        self.clock = clock
        self.uuid = uuid
        self.message = message
        self.watching = watching or (lambda: nullcontext((silent, self.message)))
        self.catalogue = v.collection_iri(settings.explain_collection)
        signing_key = settings.integrity.signing_key
        self.ledger = Ledger(self.folder, self.catalogue, clock, signing_key)
        self.parts = parts or Components(settings, self.folder.cache)
        self.turns: list[Turn] = []
        made: Iterable[RecordObservers | None] = OBSERVERS.call_all(settings).values()
        self._observers = [observers for observers in made if observers is not None]
        self._states = PublishedStates(
            folder, self.ledger, lambda: self.parts.embedder, message, self.watching
        )

    def view(
        self, settings: Settings, message: OnMessage, watching: Watching | None
    ) -> OpenCollection:
        """The same collection for somebody else, with other settings of questions and answers. Who
        uses it is ``reading`` meanwhile; only the first is closed."""
        made = copy.copy(self)
        made.__dict__.pop("_how", None)
        made.settings, made.message, made.turns = settings, message, []
        made.parts = self.parts.with_settings(settings)
        made.watching = watching or (lambda: nullcontext((silent, message)))
        return made

    def close(self) -> None:
        """Fold the sessions asked here into the store and let go of the folder."""
        self.release()
        self.parts.close()
        self.fold()
        for observers in self._observers:
            observers.end(self.message)

    def fold(self) -> None:
        """Bring the sessions that have ended into the store."""
        self._states.fold("Sessions stay in their journals for now")

    def release(self) -> None:
        """Let go of every snapshot."""
        self._states.release()

    def reading(self) -> AbstractContextManager[None]:
        """What is read meanwhile stays open, whatever is published and whoever else reads."""
        return self._states.leases.reading()

    @contextmanager
    def asking(self) -> Iterator[None]:
        """The same, while a question is answered. ``StoreError`` where ``store.url`` is to be read
        and has something else by now."""
        with self._states.asking():
            if there := self._endpoint:
                self._checked(there, self._states.knowledge())
            yield

    @property
    def is_asked(self) -> bool:
        """Whether a question is being answered."""
        return self._states.is_asked

    @property
    def librarian(self) -> Librarian:
        return self.ledger.librarian

    def read(self) -> Store:
        """The newest published state with every finished session in it, for reading.

        Where a writer keeps the lock for too long it is the state without the newest sessions, and
        ``message`` says so.
        """
        return self._states.record()

    def texts(self, store: Store) -> Texts:
        """The stored texts, with what lies ready of how they read."""
        return Texts(store, self.librarian, cache(self._states.kept_pages))

    def context(self) -> Context:
        """The newest published knowledge, kept open until something newer is published."""
        return self._states.context(self._how, lambda k: self._context(k, self._asked_store(k)))

    def own_context(self) -> Context:
        """The same as the folder has it, wherever questions read it."""
        if not self.settings.store.url:
            return self.context()
        how = f"{self._how} of the folder"
        return self._states.context(how, lambda k: self._context(k, k.snapshot.store))

    @cached_property
    def _how(self) -> str:
        """What tells one way of reading knowledge from another."""
        return self.settings.model_dump_json(exclude={"person"})

    def _context(self, knowledge: OpenKnowledge, store: Store) -> Context:
        return Context(
            store,
            knowledge.texts,
            knowledge.vectors,
            self.parts.embedder,
            self.settings,
            reader=self.parts.reader,
            reports=knowledge.reports,
            table=knowledge.table,
            generation=knowledge.generation,
        )

    def _asked_store(self, knowledge: OpenKnowledge) -> Store:
        """What questions read: the snapshot, or the endpoint that it was published to."""
        there = self._endpoint
        return self._checked(there, knowledge) if there else knowledge.snapshot.store

    @property
    def _endpoint(self) -> SparqlStore | None:
        """That of ``store.url``."""
        own = self.settings.store
        if not own.url:
            return None
        from tgraph.store.sparql_endpoint import SparqlEndpoint, SparqlStore

        password = own.password.get_secret_value() if own.password else ""
        at = SparqlEndpoint.at(own.url, user=own.user, password=password)
        return SparqlStore(replace(at, timeout=own.timeout))

    def _checked(self, there: SparqlStore, knowledge: OpenKnowledge) -> SparqlStore:
        """The endpoint. ``StoreError`` where it hasn't the knowledge of this folder, whole."""
        rows, own = (select(s, "trace/generation") for s in (there, knowledge.snapshot.store))
        found, known = (row[0] if row else {} for row in (rows, own))
        url, held = self.settings.store.url, text_of(found.get("generation")) or "no"
        if held == text_of(known.get("generation")) and found["head"] != known["head"]:
            raise StoreError(
                f"{url} holds another graph.", "Set store.url to where this one is published."
            )
        if held != str(knowledge.generation):
            problem = (
                f"{url} holds {'no generation' if held == 'no' else f'generation {held}'} of the"
                f" graph, which is at generation {knowledge.generation}."
            )
        elif text_of(found["status"]):
            problem = f"{url} is being published to, or that was cut off."
        elif text_of(found["view"]) == "classic":
            raise StoreError(f"{url} has no triple terms, by which questions read it.")
        else:
            return there
        raise StoreError(problem, "Run `tgraph publish`.")

    def context_as_of(self, generation: int) -> Context:
        """Knowledge as it was at a generation, with its vectors; that of the newest is what
        ``context`` gives. The last ones are kept open. ``StoreError`` where it can't be read."""
        context = self.own_context()
        if generation == context.generation:
            return self.context()
        return self._states.past(
            generation, self._how, partial(self._open_past, context, generation)
        )

    def _open_past(self, now: Context, generation: int) -> PastKnowledge:
        from tgraph.explain.as_of.store import as_of, without_erased
        from tgraph.explain.as_of.vectors import PastVectors, SavedVectors, VectorsOnRecord
        from tgraph.models.client import Client

        newest = self._states.knowledge()
        own, librarian = now.embedder, self.librarian
        saved = SavedVectors(newest.snapshot.vectors, newest.generation)
        with ExitStack() as opened:
            past = opened.enter_context(as_of(newest.snapshot.store, librarian, generation))
            store, notes = without_erased(past)
            near = None if isinstance(own, Client) else own  # a server's calls would go unrecorded
            embedder = VectorsOnRecord(own.agent, past, librarian, own, near)
            vectors = PastVectors(store, librarian, saved, embedder)
            texts = now.texts.over(store)
            context = Context(
                store,
                texts,
                vectors,
                own,
                self.settings,
                now.reader,
                notes=notes,
                generation=generation,
            )
            return PastKnowledge(context, opened.pop_all())

    @property
    def knowledge(self) -> Store | None:
        """The knowledge that questions read, where there has been one."""
        newest = self._states.newest
        return newest.snapshot.store if newest is not None else None

    def snapshot(self) -> Snapshot:
        """The newest published state, for whoever closes it."""
        snapshot = self._states.readable()
        if snapshot is None:
            raise UsageError("Nothing has been recorded yet.", "Run `tgraph index PATH...`.")
        return snapshot

    def record(self, kind: Callable[[Path, str, Callable[[], datetime]], R]) -> R:
        """A record of that kind, begun."""
        observer = self.observe()
        made = kind(self.folder.journals, self.uuid(), self.clock)
        made.observer = observer
        return made

    def observe(self) -> Observer:
        """Who observes a record; nobody unless an extension does."""
        members = [observers.observer() for observers in self._observers]
        return members[0] if len(members) == 1 else ObserverGroup(members)

    def setup(self, progress: OnProgress = silent, message: OnMessage | None = None) -> RunSetup:
        """What a change of the graph is made with. ``UsageError`` where it is a replica."""
        if self.folder.replica.exists():
            raise UsageError(
                "This is a replica, which only follows.", "Change the graph where it is written."
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
