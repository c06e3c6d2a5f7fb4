"""Replay: a recorded session asked once more, with its recorded replies or with the model live."""

from __future__ import annotations

from collections.abc import (
    Iterator,
)
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Self

from tgraph.engine.ask.method_factory import chosen, in_steps, method_of, suggesting
from tgraph.engine.ask.methods import (
    Chosen,
    Method,
    MethodAround,
    TwoStages,
    without_retrieval,
)
from tgraph.engine.ask.parameters import (
    COUNT,
    HISTORY,
    ONLY,
    STANDS_ALONE,
    WRITER,
    asked_of,
    filters_of,
    recorded,
    restored,
    was_chosen,
)
from tgraph.engine.ask.question_run import QuestionRun
from tgraph.engine.components import Components
from tgraph.engine.rerun.recorded_retrieval import with_recorded_retrieval
from tgraph.errors import TgraphError
from tgraph.explain.as_of.store import as_of, erased_since, without_erased
from tgraph.explain.as_of.vectors import LostVectorsError, PastVectors, VectorsOnRecord
from tgraph.explain.trace.comparison import RecordDifference, differences, replay_form, replay_hash
from tgraph.explain.trace.reader import read_so_far
from tgraph.explain.trace.recorded_session import RecordedSession, read_recorded
from tgraph.librarian import Librarian
from tgraph.model import Agent
from tgraph.models.client import Client
from tgraph.models.recorded_calls import ReplayedChat, ReplayedEmbedder, UnrecordedError
from tgraph.record.session import SessionDescription, SessionRecord
from tgraph.rendering import brief
from tgraph.resources import names
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.filters import Filters
from tgraph.retrieve.modes.suggest import SUGGEST
from tgraph.retrieve.subset import is_empty, narrowed
from tgraph.retrieve.text.word_vectors import by_words_if_foreign
from tgraph.settings import NO_READER, Settings
from tgraph.store.journal import read_journal
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.statements import read_trig

if TYPE_CHECKING:
    from tgraph.engine.open_collection import OpenCollection
    from tgraph.explain.trace.reader import Trace
    from tgraph.explain.trace.sessions import SessionSummary
    from tgraph.store.base import Store


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of a replay.

    ``same`` says whether the replay hashes are equal, ``differences`` where the records differ, in
    the order of a session's stages, and ``problem`` what the replay failed on. ``notes`` say what
    had to be done differently. ``trace`` is the new run, None where it did not get that far.
    """

    session: str
    recorded_hash: str
    replayed_hash: str
    differences: tuple[RecordDifference, ...] = ()
    problem: str = ""
    notes: tuple[str, ...] = ()
    trace: Trace | None = None

    __repr__ = brief

    @property
    def same(self) -> bool:
        return not self.problem and self.recorded_hash == self.replayed_hash


@dataclass(slots=True)
class SessionReplay:
    """One replay. It writes to a folder of its own, which is deleted afterwards.

    ``context`` is the published knowledge, ``parts`` the graph's own, which only a live run calls.
    """

    session: RecordedSession
    context: Context
    generation: int
    parts: Components
    settings: Settings
    librarian: Librarian
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, opened: OpenCollection, session: SessionSummary) -> Self:
        """That of a session on record. ``UsageError`` where it can't be read as it was."""
        context = opened.own_context()
        found = read_recorded(opened.read(), opened.librarian, session.bundle, session.explain_id)
        kept = context.generation, opened.parts, opened.settings, opened.librarian
        return cls(found, context, *kept)

    def run(self, *, live: bool = False) -> Replay:
        """Ask again and compare. Nothing of it enters the graph's record."""
        with TemporaryDirectory(prefix="tgraph-replay-") as folder:
            place = Path(folder)
            problem = self._ask(place, live=live)
            journal = place / f"{self.session.uuid}.journal"
            return self._compare(journal, problem)

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
        past, vectors = store, context.vectors
        store, notes = without_erased(past) if past is not context.store else (past, ())
        if store is not context.store or agent.iri != own.agent.iri:
            vectors = PastVectors(store, self.librarian, vectors, embedder)
        texts = context.texts.over(store)
        return Context(store, texts, vectors, embedder, self.settings, notes=notes)

    def _asked(self, place: Path, known: Context, *, live: bool = False, lost: str = "") -> str:
        """As ``_ask``; with vectors ``lost`` the recorded candidates stand in for retrieval."""
        session = self.session
        settings = restored(self.settings, session.mode, session.parameters)
        strict = settings.integrity.model_copy(update={"strict": True})
        changed = {"prompts": self._prompts(place), "integrity": strict}
        settings = settings.model_copy(update=changed)
        parts = self._live(settings, place) if live else self._replayed(settings, place)
        filters = filters_of(session.parameters)
        left = self._narrowed(replace(known, settings=settings), filters)
        context = Context(
            left.store, left.texts, left.vectors, parts.embedder, settings, parts.reader
        )
        context = self._reading(replace(context, filters=left.filters, notes=left.notes))
        question = asked_of(session.question, session.parameters)
        method = self._method(parts, question, context)
        if filters and is_empty(context):
            method = without_retrieval(method)
        elif not live:
            found = self._retrieving(method, settings, context, lost)
            if found is None:
                return f"{lost} The mode {method.mode} can't retrieve without them."
            method = found
        if not lost:
            context = by_words_if_foreign(question.text, context)
        count = session.parameters.get(COUNT)
        values = {
            **recorded(
                settings,
                method.mode,
                question.history,
                int(count) if count else None,
                chosen=was_chosen(session.parameters),
            ),
            **filters.parameters,
            **({STANDS_ALONE: True} if question.stands_alone else {}),
        }
        named = {HISTORY, COUNT, *session.parameters}  # the others were not settings then
        values = {name: value for name, value in values.items() if name in named}
        only = session.parameters.get(ONLY)
        if only:
            values[ONLY] = only
            values |= {WRITER: writer} if (writer := session.parameters.get(WRITER)) else {}
        description = SessionDescription(
            question.text,
            method.mode,
            values,
            session.generation,
            session.collection,
            self.settings.explain_collection,
            session.person,
            session.said.one(session.iri, "asOf"),
        )
        record = SessionRecord(place, session.uuid, lambda: datetime.now(UTC))
        run = QuestionRun(method, question, context, record, description)
        try:
            for _ in run.context() if only else run.stream():
                pass
        except TgraphError as error:
            if isinstance(error, LostVectorsError) and not lost:
                raise
            if live or isinstance(error, UnrecordedError):
                return str(error)
            return "" if str(error) == session.calls.fatal else str(error)
        return ""

    def _narrowed(self, known: Context, filters: Filters) -> Context:
        return narrowed(known, filters)

    def _reading(self, context: Context) -> Context:
        """The context that all of the question reads."""
        return context

    def _method(self, parts: Components, question: Question, context: Context) -> Method:
        if was_chosen(self.session.parameters):
            return chosen(question, parts, context)
        return self._method_by_name(parts, question)

    def _method_by_name(self, parts: Components, question: Question) -> Method:
        count = self.session.parameters.get(COUNT)
        if self.session.mode == SUGGEST.name and count:
            return suggesting(parts, int(count))
        return in_steps(method_of(self.session.mode, parts), question.text, parts)

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
        stood_in = with_recorded_retrieval(method, self.session, context, self.librarian)
        if stood_in is None:
            return None
        self.notes.append(f"{lost} The recorded candidates stand in for retrieval.")
        self.notes += stood_in.notes
        return stood_in.method

    def _reranking(self, method: Method, settings: Settings) -> Method:
        """The method with the recorded ranking, where a server had ranked the texts anew."""
        recorded_calls = self.session.calls
        ranked = any(call.kind == "rerank" for call in recorded_calls.calls)
        if ranked and isinstance(method, MethodAround):
            return replace(method, inner=self._reranking(method.inner, settings))
        if not ranked or not isinstance(method, TwoStages):
            return method
        from tgraph.retrieve.search.contextual import ContextualRetriever

        own, rerank = settings.contextual_search, settings.rerank
        retriever = ContextualRetriever(own, recorded_calls.rank, rerank.pool, rerank.min_score)
        return replace(method, retriever=retriever)

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

    def _live(self, settings: Settings, place: Path) -> Components:
        own = self.parts
        return Components(settings, place, chat=own.chat, embedder=own.embedder, reader=own.reader)

    def _replayed(self, settings: Settings, place: Path) -> Components:
        session = self.session
        writer = session.parameters.get(WRITER)  # who was called for nothing yet
        model = session.chat or (Agent("model", writer) if writer else None)
        chat = ReplayedChat(model, session.calls) if model else None
        settings = settings if chat else without_model(settings)
        settings = settings if session.reader else _without_reader(settings)
        unranked = settings.rerank.model_copy(update={"base_url": None})
        settings = settings.model_copy(update={"rerank": unranked})
        own = self.parts.embedder
        embedder = ReplayedEmbedder(
            session.embedder or own.agent,
            session.calls,
            lexical=own.lexical,
            max_tokens=own.max_tokens,
        )
        return Components(
            settings, place, chat=chat, embedder=embedder, reader=session.replayed_reader
        )

    def _compare(self, journal: Path, problem: str) -> Replay:
        session = self.session
        frames = read_journal(journal).frames if journal.exists() else ()
        quads = [quad for frame in frames for quad in read_trig(frame.get("quads", ""))]
        old = replay_form(session.quads, session.uuid)
        new = replay_form(quads, session.uuid)
        return Replay(
            session.iri,
            replay_hash(old),
            replay_hash(new),
            tuple(differences(old, new)),
            problem,
            tuple(dict.fromkeys(self.notes)),
            self._trace(journal),
        )

    def _trace(self, journal: Path) -> Trace | None:
        with suppress(KeyError, ValueError, StopIteration):
            return read_so_far(
                self.context.store,
                self.context.texts,
                journal,
                self.session.iri,
                self.settings.explain_collection,
            )
        return None


def without_model(settings: Settings) -> Settings:
    own = settings.chat.model_copy(update={"provider": "embedded"})
    return settings.model_copy(update={"chat": own})


def _without_reader(settings: Settings) -> Settings:
    own = settings.reader.model_copy(update={"model": NO_READER})
    return settings.model_copy(update={"reader": own})
