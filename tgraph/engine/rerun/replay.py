"""Replay: repeat a recorded session, with recorded replies or a live model."""

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

from tgraph.engine.ask.method_factory import (
    choose_method,
    in_steps,
    method_of,
    suggestion_method,
    written_method,
)
from tgraph.engine.ask.methods import (
    Chosen,
    Method,
    MethodAround,
    TwoStages,
    without_retrieval,
)
from tgraph.engine.ask.parameters import (
    COUNT,
    EDITED,
    HISTORY,
    ONLY,
    STANDS_ALONE,
    WRITER,
    WRITTEN,
    asked_of,
    filters_of,
    record_settings,
    restore_settings,
    was_chosen,
)
from tgraph.engine.ask.question_run import QuestionRun
from tgraph.engine.components import Components
from tgraph.engine.rerun.recorded_retrieval import with_recorded_retrieval
from tgraph.errors import TgraphError
from tgraph.explain.as_of.store import as_of, erased_since, without_erased
from tgraph.explain.as_of.vectors import LostVectorsError, PastVectors, VectorsOnRecord
from tgraph.explain.trace.comparison import (
    RecordDifference,
    find_differences,
    replay_form,
    replay_hash,
)
from tgraph.explain.trace.reader import read_so_far
from tgraph.explain.trace.recorded_session import RecordedSession, read_recorded
from tgraph.librarian import Librarian
from tgraph.model import Agent
from tgraph.models.client import Client
from tgraph.models.recorded_calls import ReplayedChat, ReplayedEmbedder, UnrecordedError
from tgraph.record.session import SessionDescription, SessionRecord
from tgraph.rendering import brief_repr
from tgraph.resources import list_names
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.filters import Filters
from tgraph.retrieve.modes.suggest import SUGGEST
from tgraph.retrieve.subset import is_empty, narrow_context
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
    """A replay result.

    ``same`` tells whether replay hashes are equal, ``differences`` lists record differences in
    the order of session stages, and ``problem`` explains a failed replay. ``notes`` describe
    deviations from the recorded run. ``trace`` is the new run, None if the run failed before."""

    session: str
    recorded_hash: str
    replayed_hash: str
    differences: tuple[RecordDifference, ...] = ()
    problem: str = ""
    notes: tuple[str, ...] = ()
    trace: Trace | None = None

    __repr__ = brief_repr

    @property
    def is_same(self) -> bool:
        return not self.problem and self.recorded_hash == self.replayed_hash


@dataclass(slots=True)
class SessionReplay:
    """A session replay that writes to a temporary folder, deleted afterwards.

    ``context`` is published knowledge, ``parts`` are the graph's components, called only by a
    live run."""

    session: RecordedSession
    context: Context
    generation: int
    parts: Components
    settings: Settings
    librarian: Librarian
    notes: list[str] = field(default_factory=list)

    @classmethod
    def from_summary(cls, opened: OpenCollection, session: SessionSummary) -> Self:
        """Return a replay for a recorded session. Raise ``UsageError`` if the session record is
        unreadable."""
        context = opened.own_context()
        recorded_session = read_recorded(
            opened.read(), opened.librarian, session.bundle, session.explain_id
        )
        replay_arguments = context.generation, opened.parts, opened.settings, opened.librarian
        return cls(recorded_session, context, *replay_arguments)

    def run(self, *, live: bool = False) -> Replay:
        """Ask the question again and compare records.

        The graph's record stays unchanged."""
        with TemporaryDirectory(prefix="tgraph-replay-") as folder:
            place = Path(folder)
            problem = self._ask(place, live=live)
            journal = place / f"{self.session.uuid}.journal"
            return self._compare_records(journal, problem)

    def _ask(self, place: Path, *, live: bool) -> str:
        """Return a reason for incomplete replay, or an empty string."""
        if live:
            return self._run_question(place, self.context, live=True)
        with self._knowledge() as context:
            try:
                return self._run_question(place, context)
            except LostVectorsError as error:
                (place / f"{self.session.uuid}.journal").unlink(missing_ok=True)
                self.session.calls.start_again()
                return self._run_question(place, context, lost=error.message)

    @contextmanager
    def _knowledge(self) -> Iterator[Context]:
        """Provide knowledge as read by the session, rebuilt from the record if knowledge has
        changed."""
        session, context = self.session, self.context
        if session.generation == self.generation:
            yield self._build_context(context.store)
            return
        if erased_since(
            context.store, session.bundle_reader.read_text(session.iri, "startedAtTime")
        ):
            self.notes.append(
                "Text was erased after the session: the earlier knowledge is not available, and "
                "the current knowledge is read."
            )
            yield self._build_context(context.store)
            return
        assert isinstance(context.store, OxigraphStore)
        self.notes.append(
            f"The knowledge has changed since (generation {session.generation}, now"
            f" {self.generation}): the earlier knowledge is rebuilt from the record."
        )
        with as_of(context.store, self.librarian, session.generation) as store:
            yield self._build_context(store)

    def _build_context(self, store: Store) -> Context:
        """Return a context over the store with its past vectors, without calls to remote
        embedders."""
        context, embedder_now = self.context, self.parts.embedder
        agent = self.session.embedder or embedder_now.agent
        local = None if isinstance(embedder_now, Client) else embedder_now
        embedder = VectorsOnRecord(agent, store, self.librarian, embedder_now, local)
        past, vectors = store, context.vectors
        store, notes = without_erased(past) if past is not context.store else (past, ())
        if store is not context.store or agent.iri != embedder_now.agent.iri:
            vector_store = self.parts.vector_store
            vectors = PastVectors(store, self.librarian, vectors, embedder, vector_store)
        texts = context.texts.with_store(store)
        return Context(
            store,
            texts,
            vectors,
            embedder,
            self.settings,
            notes=notes,
            wording=self.session.wording,
        )

    def _run_question(
        self, place: Path, known: Context, *, live: bool = False, lost: str = ""
    ) -> str:
        """As ``_ask``; with vectors ``lost`` the recorded candidates stand in for retrieval."""
        session = self.session
        settings = restore_settings(self.settings, session.mode, session.parameters)
        strict = settings.integrity.model_copy(update={"strict": True})
        changed = {"prompts": self._prompts(place), "integrity": strict}
        settings = settings.model_copy(update=changed)
        parts = (
            self._live_components(settings, place)
            if live
            else self._replay_components(settings, place)
        )
        filters = filters_of(session.parameters)
        filtered_context = self._narrow_context(replace(known, settings=settings), filters)
        context = Context(
            filtered_context.store,
            filtered_context.texts,
            filtered_context.vectors,
            parts.embedder,
            settings,
            parts.passage_reader,
            wording=session.wording,
        )
        context = self._reading(
            replace(context, filters=filtered_context.filters, notes=filtered_context.notes)
        )
        question = asked_of(session.question, session.parameters)
        method = self._method(parts, question, context)
        if filters and is_empty(context):
            method = without_retrieval(method)
        elif not live:
            replay_method = self._retrieving(method, settings, context, lost)
            if replay_method is None:
                return f"{lost} The mode {method.mode} can't retrieve without them."
            method = replay_method
        if not lost:
            context = by_words_if_foreign(question.text, context)
        count = session.parameters.get(COUNT)
        values = {
            **record_settings(
                settings,
                method.mode,
                question.history,
                int(count) if count else None,
                chosen=was_chosen(session.parameters),
            ),
            **filters.parameters,
            **({STANDS_ALONE: True} if question.stands_alone else {}),
        }
        values |= {
            name: text for name in (WRITTEN, EDITED) if (text := session.parameters.get(name))
        }
        recorded_names = {HISTORY, COUNT, *session.parameters}  # the others were not settings then
        values = {name: value for name, value in values.items() if name in recorded_names}
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
            session.bundle_reader.read_text(session.iri, "asOf"),
        )
        record = SessionRecord(place, session.uuid, lambda: datetime.now(UTC), session.wording)
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

    def _narrow_context(self, known: Context, filters: Filters) -> Context:
        return narrow_context(known, filters)

    def _reading(self, context: Context) -> Context:
        """Return the context read during the question."""
        return context

    def _method(self, parts: Components, question: Question, context: Context) -> Method:
        if was_chosen(self.session.parameters):
            return choose_method(question, parts, context)
        return self._method_by_name(parts, question)

    def _method_by_name(self, parts: Components, question: Question) -> Method:
        count = self.session.parameters.get(COUNT)
        if text := self.session.parameters.get(WRITTEN):
            return written_method(parts, text, self.session.parameters.get(EDITED, ""))
        if self.session.mode == SUGGEST.name and count:
            return suggestion_method(parts, int(count))
        return in_steps(method_of(self.session.mode, parts), question.text, parts)

    def _retrieving(
        self, method: Method, settings: Settings, context: Context, lost: str
    ) -> Method | None:
        """Return the retrieval method as recorded. If vectors are lost, use recorded
        candidates, or return None if the method can't use them."""
        if isinstance(method, Chosen):
            inner = self._retrieving(method.inner, settings, context, lost)
            return None if inner is None else replace(method, inner=inner)
        method = self._restore_ranking(method, settings)
        if not lost:
            return method
        stood_in = with_recorded_retrieval(method, self.session, context, self.librarian)
        if stood_in is None:
            return None
        self.notes.append(f"{lost} The recorded candidates replace the retrieval.")
        self.notes += stood_in.notes
        return stood_in.method

    def _restore_ranking(self, method: Method, settings: Settings) -> Method:
        """Return the method with recorded ranking, if a server reranked the texts."""
        recorded_calls = self.session.calls
        ranked = any(call.kind == "rerank" for call in recorded_calls.calls)
        if ranked and isinstance(method, MethodAround):
            return replace(method, inner=self._restore_ranking(method.inner, settings))
        if not ranked or not isinstance(method, TwoStages):
            return method
        from tgraph.retrieve.search.contextual import ContextualRetriever

        search_settings, rerank = settings.contextual_search, settings.rerank
        retriever = ContextualRetriever(
            search_settings, recorded_calls.rank, rerank.pool, rerank.min_score
        )
        return replace(method, retriever=retriever)

    def _prompts(self, place: Path) -> Path:
        """The recorded prompts, as a folder that replaces today's."""
        folder = place / "prompts"
        folder.mkdir(exist_ok=True)
        prompt_names = set(list_names("prompts"))
        for name, text in self.session.prompts.items():
            if f"{name}.md" in prompt_names:
                (folder / f"{name}.md").write_bytes(text.encode("utf-8", "surrogatepass"))
            else:
                self.notes.append(f"The prompt {name} is no longer used.")
        prompt_folder = self.settings.prompts
        for path in sorted(prompt_folder.glob("*.md")) if prompt_folder else ():
            if path.name in prompt_names and not (folder / path.name).exists():
                (folder / path.name).write_bytes(path.read_bytes())
        return folder

    def _live_components(self, settings: Settings, place: Path) -> Components:
        components = self.parts
        return Components(
            settings,
            place,
            chat=components.chat,
            embedder=components.embedder,
            reader=components.passage_reader,
        )

    def _replay_components(self, settings: Settings, place: Path) -> Components:
        session = self.session
        writer = session.parameters.get(WRITER)  # who was called for nothing yet
        model = session.chat or (Agent("model", writer) if writer else None)
        chat = ReplayedChat(model, session.calls) if model else None
        settings = settings if chat else without_model(settings)
        settings = settings if session.reader else _without_reader(settings)
        unranked = settings.rerank.model_copy(update={"base_url": None})
        settings = settings.model_copy(update={"rerank": unranked})
        embedder_now = self.parts.embedder
        embedder = ReplayedEmbedder(
            session.embedder or embedder_now.agent,
            session.calls,
            lexical=embedder_now.lexical,
            max_tokens=embedder_now.max_tokens,
        )
        return Components(
            settings, place, chat=chat, embedder=embedder, reader=session.replayed_reader
        )

    def _compare_records(self, journal: Path, problem: str) -> Replay:
        session = self.session
        frames = read_journal(journal).frames if journal.exists() else ()
        quads = [quad for frame in frames for quad in read_trig(frame.get("quads", ""))]
        old = replay_form(session.quads, session.uuid)
        new = replay_form(quads, session.uuid)
        return Replay(
            session.iri,
            replay_hash(old),
            replay_hash(new),
            tuple(find_differences(old, new)),
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
    chat = settings.chat.model_copy(update={"provider": "embedded"})
    return settings.model_copy(update={"chat": chat})


def _without_reader(settings: Settings) -> Settings:
    reader_settings = settings.reader.model_copy(update={"model": NO_READER})
    return settings.model_copy(update={"reader": reader_settings})
