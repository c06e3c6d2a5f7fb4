"""Replay: a recorded session asked once more, with its recorded replies or with the model live."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Self

from tgraph.engine.asking import Asking
from tgraph.engine.methods import Chosen, Method, TwoStages, without_retrieval
from tgraph.engine.modes import method_of, suggesting
from tgraph.engine.parameters import COUNT, filters_of, history_of, recorded, restored, was_chosen
from tgraph.engine.parts import Parts
from tgraph.engine.standing_in import stand_in
from tgraph.errors import TgraphError
from tgraph.explain.past import as_of, erased_since
from tgraph.explain.past_vectors import LostVectorsError, PastVectors, VectorsOnRecord
from tgraph.explain.recorded import RecordedSession, read_recorded
from tgraph.explain.replay_form import Difference, differences, replay_form, replay_hash
from tgraph.explain.trace import read_so_far
from tgraph.librarian import Librarian
from tgraph.models.base import Embedder
from tgraph.models.exchange import Client
from tgraph.models.replay import ReplayedChat, ReplayedEmbedder, UnrecordedError
from tgraph.record.session import SessionRecord
from tgraph.resources import names
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.modes.suggest import SUGGEST
from tgraph.retrieve.narrowing import is_empty, narrowed
from tgraph.store.journal import read_journal
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.statements import read_trig

if TYPE_CHECKING:
    from pyoxigraph import Quad

    from tgraph.engine.opened import OpenCollection
    from tgraph.explain.sessions import SessionSummary
    from tgraph.explain.trace import Trace
    from tgraph.settings import Settings
    from tgraph.store.base import Store


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of a replay.

    ``same`` says whether the replay hashes are equal, ``differences`` where the records differ, in
    the order of a session's stages, and ``problem`` what the replay failed on. ``notes`` say what
    had to be done differently. ``trace`` is the new run, None where it did not get that far.
    """

    session: Annotated[str, "IRI of the session"]
    recorded_hash: Annotated[str, "replay hash of the record"]
    replayed_hash: Annotated[str, "replay hash of the replay"]
    differences: tuple[Difference, ...] = ()
    problem: Annotated[str, "why the replay ended early, or empty"] = ""
    notes: Annotated[tuple[str, ...], "what had to be done differently"] = ()
    trace: Trace | None = None

    @property
    def same(self) -> bool:
        return not self.problem and self.recorded_hash == self.replayed_hash


@dataclass(slots=True)
class Replaying:
    """One replay. It writes to a folder of its own, which is deleted afterwards.

    ``context`` is the published knowledge, ``parts`` the graph's own, which only a live run calls.
    """

    session: RecordedSession
    context: Context
    generation: int
    parts: Parts
    settings: Settings
    librarian: Librarian
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, opened: OpenCollection, session: SessionSummary) -> Self:
        """That of a session on record. ``UsageError`` where it can't be read as it was."""
        context = opened.context()
        found = read_recorded(opened.read(), opened.librarian, session.bundle, session.explain_id)
        kept = opened.generation, opened.parts, opened.settings, opened.librarian
        return cls(found, context, *kept)

    def run(self, *, live: bool = False) -> Replay:
        """Ask again and compare. Nothing of it enters the graph's record."""
        with TemporaryDirectory(prefix="tgraph-replay-") as folder:
            place = Path(folder)
            problem = self._ask(place, live=live)
            journal = place / f"{self.session.uuid}.journal"
            return self._compare(journal, problem)

    # --- asking ---

    def _ask(self, place: Path, *, live: bool) -> str:
        """Why the run did not come as far as the recorded one; "" where it did."""
        if live:
            return self._asked(place, self.context, live=True)
        with self._knowledge() as context:
            try:
                return self._asked(place, context)
            except LostVectorsError as error:
                (place / f"{self.session.uuid}.journal").unlink(missing_ok=True)
                self.session.calls.start_again()
                return self._asked(place, context, lost=error.message)

    @contextmanager
    def _knowledge(self) -> Iterator[Context]:
        """What the session read; it is put together from the record where it is not there now."""
        session, context = self.session, self.context
        if session.generation == self.generation:
            yield self._over(context.store)
            return
        if erased_since(context.store, session.said.one(session.iri, "startedAtTime")):
            self.notes.append(
                "Text was erased since: the knowledge can't be had as it was, and is read as it is."
            )
            yield self._over(context.store)
            return
        assert isinstance(context.store, OxigraphStore)
        self.notes.append(
            f"The knowledge has changed since (generation {session.generation}, now"
            f" {self.generation}): it is read as it was, put together from the record."
        )
        with as_of(context.store, self.librarian, session.generation) as store:
            yield self._over(store)

    def _over(self, store: Store) -> Context:
        """The store with the vectors that it had; nobody far away is asked for any."""
        context, own = self.context, self.parts.embedder
        agent = self.session.embedder or own.agent
        local = None if isinstance(own, Client) else own
        embedder = VectorsOnRecord(agent, store, self.librarian, own, local)
        vectors = context.vectors
        if store is not context.store or agent.iri != own.agent.iri:
            vectors = PastVectors(store, self.librarian, vectors, embedder)
        return Context(store, context.texts.over(store), vectors, embedder, self.settings)

    def _asked(self, place: Path, known: Context, *, live: bool = False, lost: str = "") -> str:
        """As ``_ask``; with vectors ``lost`` the recorded candidates stand in for retrieval."""
        session = self.session
        settings = restored(self.settings, session.mode, session.parameters)
        settings = settings.model_copy(update={"prompts": self._prompts(place)})
        parts = self._live(settings, place) if live else self._replayed(settings, place)
        filters = filters_of(session.parameters)
        left = narrowed(replace(known, settings=settings, embedder=known.embedder), filters)
        context = Context(left.store, left.texts, left.vectors, parts.embedder, settings)
        context = replace(context, filters=left.filters)
        history = history_of(session.parameters)
        question = Question(session.question, history)
        method = self._method(parts, question, context)
        if filters and is_empty(context):
            method = without_retrieval(method)
        elif not live:
            found = self._retrieving(method, settings, context, lost)
            if found is None:
                return f"{lost} The mode {method.mode} can't retrieve without them."
            method = found
        record = SessionRecord(place, session.uuid, lambda: datetime.now(UTC))
        asking = Asking(method, context, record, self.settings.explain_collection)
        count = session.parameters.get(COUNT)
        values = {
            **recorded(
                settings,
                method.mode,
                history,
                int(count) if count else None,
                chosen=was_chosen(session.parameters),
            ),
            **filters.parameters,
        }
        try:
            for _ in asking.stream(question, values, session.generation, session.collection):
                pass
        except TgraphError as error:
            if isinstance(error, LostVectorsError) and not lost:
                raise
            if live or isinstance(error, UnrecordedError):
                return str(error)
            return "" if str(error) == session.calls.fatal else str(error)
        return ""

    def _method(self, parts: Parts, question: Question, context: Context) -> Method:
        if was_chosen(self.session.parameters):
            from tgraph.engine.auto import chosen

            return chosen(question, parts, context)
        count = self.session.parameters.get(COUNT)
        if self.session.mode == SUGGEST.name and count:
            return suggesting(parts, int(count))
        return method_of(self.session.mode, parts)

    def _retrieving(
        self, method: Method, settings: Settings, context: Context, lost: str
    ) -> Method | None:
        """The method as it retrieved; where vectors are lost, with the recorded candidates, or None
        if it can't do with these."""
        if isinstance(method, Chosen):
            inner = self._retrieving(method.inner, settings, context, lost)
            return None if inner is None else replace(method, inner=inner)
        method = self._reranking(method, settings)
        if not lost:
            return method
        stood_in = stand_in(method, self.session, context, self.librarian)
        if stood_in is None:
            return None
        self.notes.append(f"{lost} The recorded candidates stand in for retrieval.")
        self.notes += stood_in.notes
        return stood_in.method

    def _reranking(self, method: Method, settings: Settings) -> Method:
        """The method with the recorded ranking, where a server had ranked the texts anew."""
        recorded_calls = self.session.calls
        ranked = any(call.kind == "rerank" for call in recorded_calls.calls)
        if not ranked or not isinstance(method, TwoStages):
            return method
        from tgraph.retrieve.contextual import ContextualRetriever

        own, pool = settings.contextual_search, settings.rerank.pool
        return replace(method, retriever=ContextualRetriever(own, recorded_calls.rank, pool))

    def _prompts(self, place: Path) -> Path:
        """The recorded prompts, as a folder that replaces today's."""
        folder = place / "prompts"
        folder.mkdir(exist_ok=True)
        known = set(names("prompts"))
        for name, text in self.session.prompts.items():
            if f"{name}.md" in known:
                (folder / f"{name}.md").write_bytes(text.encode("utf-8", "surrogatepass"))
            else:
                self.notes.append(f"The prompt {name} is no longer used.")
        own = self.settings.prompts
        for path in sorted(own.glob("*.md")) if own else ():
            if path.name in known and not (folder / path.name).exists():
                (folder / path.name).write_bytes(path.read_bytes())
        return folder

    def _live(self, settings: Settings, place: Path) -> Parts:
        return Parts(settings, place, chat=self.parts.chat, embedder=self.parts.embedder)

    def _replayed(self, settings: Settings, place: Path) -> Parts:
        session = self.session
        chat = ReplayedChat(session.chat, session.calls) if session.chat else None
        if chat is None:
            own = settings.chat.model_copy(update={"provider": "embedded"})
            settings = settings.model_copy(update={"chat": own})
        unranked = settings.rerank.model_copy(update={"base_url": None})
        settings = settings.model_copy(update={"rerank": unranked})
        return Parts(settings, place, chat=chat, embedder=self._embedder())

    def _embedder(self) -> Embedder:
        own, agent = self.parts.embedder, self.session.embedder
        return ReplayedEmbedder(
            agent or own.agent,
            self.session.calls,
            lexical=own.lexical,
            max_tokens=own.max_tokens,
        )

    # --- comparing ---

    def _compare(self, journal: Path, problem: str) -> Replay:
        session = self.session
        old = replay_form(session.quads, session.uuid)
        new = replay_form(_quads(journal), session.uuid)
        trace = None
        with suppress(KeyError, ValueError, StopIteration):
            trace = read_so_far(
                self.context.store, journal, session.iri, self.settings.explain_collection
            )
        return Replay(
            session.iri,
            replay_hash(old),
            replay_hash(new),
            tuple(differences(old, new)),
            problem,
            tuple(dict.fromkeys(self.notes)),
            trace,
        )


def _quads(journal: Path) -> list[Quad]:
    frames = read_journal(journal).frames if journal.exists() else ()
    return [quad for frame in frames for quad in read_trig(frame.get("quads", ""))]
