"""What a session read, so that its retrieval can be looked at once more, without any call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tgraph.explain.past import as_of
from tgraph.explain.past_vectors import PastVectors, SavedVectors, VectorsOnRecord
from tgraph.index.sources import Texts
from tgraph.librarian import Librarian
from tgraph.model import Agent
from tgraph.models.base import Embedder
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.contextual import Rank
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


@contextmanager
def known_to(
    store: Store,
    librarian: Librarian,
    vectors: Path,
    generations: tuple[int, int],
    asked: Asked,
    calls: Sequence[str],
) -> Iterator[Context]:
    """What the session read, filters aside. ``generations`` are the session's and the newest,
    ``calls`` the content hashes of its embedding calls. A vector on no record is a
    ``LostVectorsError`` where it is needed."""
    then, now = generations
    if then >= now:
        yield _context(store, SavedVectors(vectors, then), librarian, asked, calls)
        return
    assert isinstance(store, OxigraphStore)
    with as_of(store, librarian, then) as past:
        found = _context(past, SavedVectors(vectors), librarian, asked, calls)
        found.vectors = PastVectors(past, librarian, SavedVectors(vectors), found.embedder)
        yield found


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
