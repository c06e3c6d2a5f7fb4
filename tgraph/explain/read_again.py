"""What a session read, so that it can be looked at once more, without any call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tgraph.errors import StoreError
from tgraph.explain.past import as_of, erased_since
from tgraph.explain.past_vectors import PastVectors, SavedVectors, VectorsOnRecord
from tgraph.index.sources import Texts
from tgraph.librarian import Librarian
from tgraph.model import Agent
from tgraph.models.base import Embedder
from tgraph.retrieve.base import Context, Question, Rank
from tgraph.retrieve.filters import Filters
from tgraph.settings import Settings
from tgraph.store.base import Store
from tgraph.store.oxigraph import OxigraphStore


@dataclass(frozen=True, slots=True)
class Asked:
    """How a session was asked: with the settings, filters and turns that it has on record.

    ``like`` tells how long a text its embedder reads, ``rank`` gives the recorded ranking, where a
    server made one.
    """

    question: Question
    settings: Settings
    filters: Filters
    like: Embedder
    embedder: Agent | None = None
    rank: Rank | None = None


@dataclass(frozen=True, slots=True)
class Then:
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
) -> Iterator[Then]:
    """What a session read that ``started`` then (an xsd:dateTime); ``generations`` are its own and
    the newest. After an erasure, or where the record of a change can't be read, it is what is there
    now, which the note says."""
    asked, now = generations
    if asked >= now:
        yield Then(store)
        return
    if erased_since(store, started):
        why = "Text was erased since the session"
        yield Then(store, note=f"{why}: knowledge can't be had as it was, and is read as it is.")
        return
    assert isinstance(store, OxigraphStore)
    changed = f"Knowledge has changed since the session (generation {asked}, now {now})"
    with ExitStack() as opened:
        try:
            past: Store = opened.enter_context(as_of(store, librarian, asked))
        except StoreError as error:
            then = Then(store, note=f"{changed}, and is read as it is: {error.message}")
        else:
            then = Then(past, is_past=True, note=f"{changed}: it is read as it was.")
        yield then


def context_of(
    then: Then, librarian: Librarian, vectors: Path, generation: int, asked: Asked, calls: list[str]
) -> Context:
    """What the session of that ``generation`` retrieved from, filters aside; ``calls`` are the
    content hashes of its embedding calls. A vector on no record is a ``LostVectorsError`` where it
    is needed."""
    saved = SavedVectors(vectors) if then.note else SavedVectors(vectors, generation)
    found = _context(then.store, saved, librarian, asked, calls)
    if then.is_past:
        found.vectors = PastVectors(then.store, librarian, saved, found.embedder)
    return found


def _context(
    store: Store,
    vectors: Mapping[str, object],
    librarian: Librarian,
    asked: Asked,
    calls: Sequence[str],
) -> Context:
    agent = asked.embedder or asked.like.agent
    embedder = VectorsOnRecord(agent, store, librarian, asked.like, None, calls)
    return Context(store, Texts(store, librarian), vectors, embedder, asked.settings)  # type: ignore[arg-type]
