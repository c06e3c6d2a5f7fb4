"""Replay of a session from its package alone.

What was retrieved is taken from the package; everything else is done again: the choice among what
was found, the sentences, the citations, the notes. ``NotedReplay`` runs beside the graph and notes
what that takes, ``ReplayFromCrate`` runs without one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyoxigraph import Quad

from tgraph import vocabulary as v
from tgraph.engine.ask.method_factory import in_steps, method_of
from tgraph.engine.ask.methods import Chosen, Method
from tgraph.engine.ask.parameters import ONLY, was_chosen
from tgraph.engine.components import Components
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
    noting,
    vectors_from,
    with_words,
)
from tgraph.index.sources import Texts
from tgraph.librarian import Librarian
from tgraph.models.base import Call, CallSink, no_sink
from tgraph.retrieve.base import Context, Question, Retriever
from tgraph.retrieve.filters import Filters
from tgraph.settings import Settings

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from tgraph.explain.trace.values import Trace
    from tgraph.model import Agent
    from tgraph.store.base import Store

Wrap = Callable[[Retriever], Retriever]


def _retrieving_by(method: Method, wrap: Wrap) -> Method:
    """The method with what ``wrap`` makes of its retriever, where it has one."""
    if (inner := getattr(method, "inner", None)) is not None:
        return replace(method, inner=_retrieving_by(inner, wrap))  # type: ignore[type-var]
    if (retriever := getattr(method, "retriever", None)) is not None:
        return replace(method, retriever=wrap(retriever))  # type: ignore[type-var]
    return method


class _AsChosen(SessionReplay):
    """A replay in which the mode that was chosen is the one on record: what there was to choose
    from is not read again, only what the question is about."""

    def _method(self, parts: Components, question: Question, context: Context) -> Method:
        session = self.session
        if not was_chosen(session.parameters):
            return self._method_by_name(parts, question)
        chooser, calls = parts.chooser, list[Call]()
        about = chooser.choose(question, context, calls.append)
        choice = v.session_part_iri("mode-choice", session.uuid)
        about = replace(about, reason=session.said.one(choice, "reasoning"))
        method = in_steps(method_of(session.mode, parts), question.text, parts, about.form)
        return Chosen(method, about, chooser.agent, tuple(calls))

    def _trace(self, journal: Path) -> Trace | None:
        return None


@dataclass(frozen=True, slots=True)
class WhatWasRead:
    """What a noted replay read: the quads, the texts of the librarian, and the rest."""

    replay: Replay
    quads: frozenset[Quad]
    texts: Mapping[str, bytes]
    reads: Reads


@dataclass
class NotedReplay(_AsChosen):
    """A replay over the graph that notes what it reads beside its retrieval."""

    _plain: Context | None = None
    _noted: Context | None = None
    _found: list[RetrievalRead] = field(default_factory=list)
    _texts: NotingLibrarian = field(init=False)

    def read(self) -> WhatWasRead:
        """Replay, and what that read."""
        texts = self._texts = NotingLibrarian(self.librarian)
        replay = self.run()
        own, embedder = self._noted, self.parts.embedder
        reads = Reads(EmbedderRead(embedder.agent, embedder.lexical, embedder.max_tokens))
        if own is None:
            return WhatWasRead(replay, frozenset(), {}, reads)
        store, vectors = own.store, own.vectors
        assert isinstance(store, NotingStore)
        assert isinstance(vectors, NotingVectors)
        words = own.once("frequencies", lambda: None)
        assert isinstance(words, WordsRead)
        reads.retrievals, reads.rows, reads.notes = self._found, store.rows, own.notes
        reads.words, reads.vectors = words.noted(), vectors.noted()
        return WhatWasRead(replay, frozenset(store.quads), dict(texts.given), reads)

    def _reading(self, context: Context) -> Context:
        self._found.clear()  # of a run that began anew
        self._texts.given.clear()
        self._plain = context
        self._noted = noting(context, self._texts)
        return self._noted

    def _retrieving(
        self, method: Method, settings: Settings, context: Context, lost: str
    ) -> Method | None:
        assert self._plain is not None
        plain = self._plain
        found = super()._retrieving(method, settings, plain, lost)
        uuid = self.session.uuid

        def noted(retriever: Retriever) -> Retriever:
            return NotingRetriever(retriever, plain, uuid, self._found)

        return None if found is None else _retrieving_by(found, noted)


@dataclass(frozen=True)
class _NoEmbedder:
    """Who embedded, where nobody does any more: every vector is on record."""

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
    """A replay that reads what was noted, and nothing else."""

    _reads: Reads | None = None

    @classmethod
    def over(
        cls, session: RecordedSession, store: Store, librarian: Librarian, reads: Reads, own: str
    ) -> ReplayFromCrate:
        """That of the session over the package's store and texts; ``own`` is the name of its
        explainability collection. No setting of this machine has a say in it."""
        settings = Settings.model_construct().model_copy(update={"explain_collection": own})
        embedder = _NoEmbedder(reads.embedder)
        parts = Components(settings, Path(), embedder=embedder)
        over = StoreFromReads(store, reads.rows)
        vectors = vectors_from(reads.vectors)
        texts = Texts(over, librarian)
        context = Context(over, texts, vectors, embedder, settings, notes=reads.notes)
        return cls(session, context, session.generation, parts, settings, librarian, _reads=reads)

    @contextmanager
    def _knowledge(self) -> Iterator[Context]:
        yield self.context

    def _narrowed(self, known: Context, filters: Filters) -> Context:
        return replace(known, filters=filters)

    def _reading(self, context: Context) -> Context:
        assert self._reads is not None
        said = self._reads.words
        counts = {str(term): int(count) for term, count in said["counts"].items()}
        codes = [str(code) for code in said["languages"]]
        words = WordsRead(counts, int(said["size"]), codes, bool(said["embeds_english"]))
        return with_words(context, words)

    def _retrieving(
        self, method: Method, settings: Settings, context: Context, lost: str
    ) -> Method | None:
        assert self._reads is not None
        found, calls, uuid = self._reads.retrievals, self.session.calls, self.session.uuid
        return _retrieving_by(method, lambda each: RetrieverFromReads(each, found, calls, uuid))


def what_is_replayed(session: RecordedSession, reads: Reads) -> str:
    """What of the session was taken from the record, and what was done again."""
    taken = "Retrieval is taken from the record" if reads.retrievals else _NOTHING_RETRIEVED
    only = session.parameters.get(ONLY)
    again = "selection was done again" if only else "selection and writing were done again"
    replies = ", with the model's recorded replies" if session.chat is not None and not only else ""
    return f"{taken}; {again}{replies}."


_NOTHING_RETRIEVED = "No retrieval is taken from the record: what was read is in the package"
