"""Session replay from a package alone.

Retrievals come from the package; selection, sentences, citations and notes are done again.
``NotedReplay`` runs beside the graph and notes needed inputs, ``ReplayFromCrate`` runs without
a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyoxigraph import Quad

from tgraph import vocabulary as v
from tgraph.engine.ask.method_factory import choose_computed, in_steps, method_of
from tgraph.engine.ask.methods import Chosen, Method
from tgraph.engine.ask.parameters import ONLY, was_chosen
from tgraph.engine.components import Components
from tgraph.engine.rerun.recomputation import is_computed
from tgraph.engine.rerun.replay import Replay, SessionReplay
from tgraph.explain.trace.recorded_session import RecordedSession
from tgraph.extensions.evidence.crates.reads import (
    EmbedderRead,
    NotingLibrarian,
    NotingRetriever,
    NotingStore,
    NotingVectors,
    Reads,
    RetrievalRead,
    RetrieverFromReads,
    StoreFromReads,
    WordsRead,
    vectors_from,
    with_words,
    wrap_noting_context,
)
from tgraph.index.sources import Texts
from tgraph.librarian import Librarian
from tgraph.models.base import Call, CallSink, no_sink
from tgraph.retrieve.base import Context, Question, Retriever
from tgraph.retrieve.filters import Filters
from tgraph.retrieve.text.lexicon import count_frequencies
from tgraph.settings import Settings

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from tgraph.explain.trace.values import Trace
    from tgraph.model import Agent
    from tgraph.store.base import Store

Wrap = Callable[[Retriever], Retriever]


def _retrieving_by(method: Method, wrap: Wrap) -> Method:
    """Return the method with its retriever, if present, replaced by ``wrap``."""
    if (inner := getattr(method, "inner", None)) is not None:
        return replace(method, inner=_retrieving_by(inner, wrap))  # type: ignore[type-var]
    if (retriever := getattr(method, "retriever", None)) is not None:
        return replace(method, retriever=wrap(retriever))  # type: ignore[type-var]
    return method


class _AsChosen(SessionReplay):
    """A replay that keeps the recorded mode choice: the available modes are not read again,
    only the question analysis."""

    def _method(self, parts: Components, question: Question, context: Context) -> Method:
        session = self.session
        if not was_chosen(session.parameters):
            return self._method_by_name(parts, question)
        if is_computed(session.mode) and (computed := choose_computed(question, parts, context)):
            return computed
        chooser, calls = parts.chooser, list[Call]()
        choice_result = chooser.choose(question, context, calls.append)
        choice = v.session_part_iri("mode-choice", session.uuid)
        choice_result = replace(
            choice_result, reason=session.bundle_reader.read_text(choice, "reasoning")
        )
        method = in_steps(method_of(session.mode, parts), question.text, parts, choice_result.form)
        return Chosen(method, choice_result, chooser.agent, tuple(calls))

    def _trace(self, journal: Path) -> Trace | None:
        return None


@dataclass(frozen=True, slots=True)
class WhatWasRead:
    """Inputs of a noted replay: quads, librarian texts, and other reads."""

    replay: Replay
    quads: frozenset[Quad]
    texts: Mapping[str, bytes]
    reads: Reads


@dataclass
class NotedReplay(_AsChosen):
    """A replay beside the graph that notes inputs besides retrieval."""

    _plain: Context | None = None
    _noted: Context | None = None
    _found: list[RetrievalRead] = field(default_factory=list)
    _texts: NotingLibrarian = field(init=False)

    def read(self) -> WhatWasRead:
        """Replay the session and return noted inputs."""
        texts = self._texts = NotingLibrarian(self.librarian)
        replay = self.run()
        noted_context, embedder = self._noted, self.parts.embedder
        reads = Reads(EmbedderRead(embedder.agent, embedder.lexical, embedder.max_tokens))
        if noted_context is None:
            return WhatWasRead(replay, frozenset(), {}, reads)
        store, vectors = noted_context.store, noted_context.vectors
        assert isinstance(store, NotingStore)
        assert isinstance(vectors, NotingVectors)
        words = count_frequencies(noted_context)
        assert isinstance(words, WordsRead)
        reads.retrievals, reads.rows, reads.notes = self._found, store.rows, noted_context.notes
        reads.words, reads.vectors = words.list_reads(), vectors.list_reads()
        return WhatWasRead(replay, frozenset(store.quads), dict(texts.given), reads)

    def _reading(self, context: Context) -> Context:
        self._found.clear()  # of a run that began anew
        self._texts.given.clear()
        self._plain = context
        self._noted = wrap_noting_context(context, self._texts)
        return self._noted

    def _retrieving(
        self, method: Method, settings: Settings, context: Context, lost: str
    ) -> Method | None:
        assert self._plain is not None
        plain = self._plain
        method_copy = super()._retrieving(method, settings, plain, lost)
        uuid, wording = self.session.uuid, self.session.wording

        def note_retrievals(retriever: Retriever) -> Retriever:
            return NotingRetriever(retriever, plain, uuid, wording, self._found)

        return None if method_copy is None else _retrieving_by(method_copy, note_retrievals)


@dataclass(frozen=True)
class _NoEmbedder:
    """A substitute embedder without embedding: all vectors are on record."""

    read: EmbedderRead

    @property
    def agent(self) -> Agent:
        return self.read.agent

    @property
    def lexical(self) -> bool:
        return self.read.lexical

    @property
    def max_tokens(self) -> int | None:
        return self.read.max_tokens

    @property
    def dimension(self) -> int:
        return 0

    def embed(self, texts: object, sink: CallSink = no_sink) -> NDArray[float32]:
        raise AssertionError("a replay calls nobody")


@dataclass
class ReplayFromCrate(_AsChosen):
    """A replay that reads only noted inputs."""

    _reads: Reads | None = None

    @classmethod
    def from_package(
        cls, session: RecordedSession, store: Store, librarian: Librarian, reads: Reads, own: str
    ) -> ReplayFromCrate:
        """Return a session replay over package store and texts; ``own`` names its
        explainability collection.

        Local settings have no influence."""
        settings = Settings.model_construct().model_copy(update={"explain_collection": own})
        embedder = _NoEmbedder(reads.embedder)
        parts = Components(settings, Path(), embedder=embedder)
        over = StoreFromReads(store, reads.rows)
        vectors = vectors_from(reads.vectors)
        texts = Texts(over, librarian)
        context = Context(
            over, texts, vectors, embedder, settings, notes=reads.notes, wording=session.wording
        )
        return cls(session, context, session.generation, parts, settings, librarian, _reads=reads)

    @contextmanager
    def _knowledge(self) -> Iterator[Context]:
        yield self.context

    def _narrow_context(self, known: Context, filters: Filters) -> Context:
        return replace(known, filters=filters)

    def _reading(self, context: Context) -> Context:
        assert self._reads is not None
        word_counts = self._reads.words
        counts = {str(term): int(count) for term, count in word_counts["counts"].items()}
        codes = [str(code) for code in word_counts["languages"]]
        words = WordsRead(
            counts, int(word_counts["size"]), codes, bool(word_counts["embeds_english"])
        )
        return with_words(context, words)

    def _retrieving(
        self, method: Method, settings: Settings, context: Context, lost: str
    ) -> Method | None:
        assert self._reads is not None
        retrievals, calls, uuid = self._reads.retrievals, self.session.calls, self.session.uuid
        return _retrieving_by(
            method, lambda each: RetrieverFromReads(each, retrievals, calls, uuid)
        )


def what_is_replayed(session: RecordedSession, reads: Reads) -> str:
    """Describe which session steps came from the record and which were repeated."""
    retrieval_text = (
        "Retrieval is taken from the record" if reads.retrievals else _NOTHING_RETRIEVED
    )
    only = session.parameters.get(ONLY)
    again = "selection was done again" if only else "selection and writing were done again"
    replies = ", with the model's recorded replies" if session.chat is not None and not only else ""
    return f"{retrieval_text}; {again}{replies}."


_NOTHING_RETRIEVED = "No retrieval is taken from the record: what was read is in the package"
