"""Vectors of past knowledge: from still existing texts, and from recorded calls.

Every embedding call is recorded completely, index runs included, so that no new call is needed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.errors import StoreError, TgraphError
from tgraph.explain.as_of.names import values_of
from tgraph.index.vectors.items import KINDS, items_of
from tgraph.librarian import Librarian
from tgraph.model import Agent
from tgraph.models.base import CallSink, Embedder, decode_vectors, no_sink
from tgraph.models.embedding import token_starts
from tgraph.models.recorded_calls import UnrecordedError
from tgraph.store.base import Store

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from tgraph.index.vectors.base import VectorIndex, VectorStore

_READ = 16
"""Calls that are kept in memory with their vectors."""


class LostVectorsError(UnrecordedError):
    """A lost vector error: a text's vector is missing from all records."""


class VectorsOnRecord:
    """An ``Embedder`` with vectors recorded by index runs.

    Unrecorded text is embedded by ``own`` if that is the same embedder; otherwise raise
    ``LostVectorsError``."""

    def __init__(
        self,
        agent: Agent,
        store: Store,
        librarian: Librarian,
        like: Embedder,
        own: Embedder | None,
    ) -> None:
        self.agent = agent
        self.lexical = like.lexical
        self.max_tokens = like.max_tokens
        self._like = like
        self._own = own if own is not None and own.agent.iri == agent.iri else None
        self._store = store
        self._librarian = librarian
        self._reply = lru_cache(_READ)(self._decode_reply)

    @property
    def dimension(self) -> int:
        """Vector dimension. Raise ``LostVectorsError`` without recorded vectors."""
        if self._own is not None:
            return self._own.dimension
        for key, _ in self._recorded_places.values():
            return int(self._reply(key).shape[1])
        raise LostVectorsError(f"No vectors of {self.agent.name} are on record.")

    def token_starts(self, text: str) -> Sequence[int]:
        return token_starts(self._like, text)

    def embed(self, texts: Sequence[str], sink: CallSink = no_sink) -> NDArray[float32]:
        import numpy as np

        vector_places = [self._recorded_places.get(text) for text in texts]
        missing = [text for text, place in zip(texts, vector_places, strict=True) if place is None]
        if missing and self._own is None:
            raise LostVectorsError(
                f"The vectors of {len(missing)} texts are on no record: {missing[0][:80]!r}."
            )
        fresh = iter(self._own.embed(missing, sink) if missing and self._own else ())
        rows = [
            next(fresh) if place is None else self._reply(place[0])[place[1]]
            for place in vector_places
        ]
        if not rows:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return np.stack(rows).astype(np.float32)

    @cached_property
    def _recorded_places(self) -> dict[str, tuple[str, int]]:
        """Places of recorded text vectors: hash of the call text, and row.

        If several calls embed one text, the last call counts."""
        places: dict[str, tuple[str, int]] = {}
        for key in self._embedding_call_keys():
            with suppress(StoreError, KeyError, ValueError):
                call = json.loads(self._librarian.get_text(key))
                if call["agent"] == self.agent.iri and "vectors" in call["reply"]:
                    places.update((t, (key, row)) for row, t in enumerate(call["request"]["input"]))
        return places

    def _embedding_call_keys(self) -> list[str]:
        """The texts of the embedding calls of index runs, the latest call's last."""
        kind = Literal("embedding")
        calls = self._store.match(None, v.tg("callKind"), kind, v.SOURCE_GRAPH)
        call_iris = {quad.subject.value for quad in calls if isinstance(quad.subject, NamedNode)}
        read_values = partial(values_of, self._store, graph=v.SOURCE_GRAPH)
        started = v.prov("startedAtTime")
        begun = sorted(
            (sorted(map(v.in_time, read_values(iri, started))), iri) for iri in call_iris
        )
        return [key for _, iri in begun for key in sorted(read_values(iri, v.tg("contentHash")))]

    def _decode_reply(self, key: str) -> NDArray[float32]:
        reply: Mapping[str, Any] = json.loads(self._librarian.get_text(key))["reply"]
        return decode_vectors(reply["vectors"], int(reply["dimension"]))


class _VectorSets(Mapping[str, "VectorIndex"]):
    """Vector sets by kind, loaded at first search."""

    def __init__(self) -> None:
        self._sets: dict[str, VectorIndex] = {}

    def __getitem__(self, kind: str) -> VectorIndex:
        if kind not in self._sets:
            self._sets[kind] = self._load_index(kind)
        return self._sets[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(KINDS)

    def __len__(self) -> int:
        return len(KINDS)

    def _load_index(self, kind: str) -> VectorIndex:
        raise NotImplementedError


class PastVectors(_VectorSets):
    """The vector sets of a store as it was.

    ``now`` are those of another state; what they have is not embedded again. The sets are what
    ``build_vectors`` made of the same items at the time.
    """

    def __init__(
        self,
        store: Store,
        librarian: Librarian,
        now: Mapping[str, VectorIndex],
        embedder: Embedder,
        vector_store: VectorStore,
    ) -> None:
        super().__init__()
        self._store = store
        self._librarian = librarian
        self._now = now
        self._embedder = embedder
        self._vector_store = vector_store

    def _load_index(self, kind: str) -> VectorIndex:
        items, previous = items_of(kind, self._store, self._librarian), None
        with suppress(TgraphError):
            previous = self._now[kind]
        return self._vector_store.build_vectors(kind, items, self._embedder, previous)


class SavedVectors(_VectorSets):
    """Saved vector sets in a folder.

    Raise ``StoreError`` for an incomplete set, or a set of a different ``generation``."""

    def __init__(self, folder: Path, generation: int, vector_store: VectorStore) -> None:
        super().__init__()
        self._vector_store = vector_store
        self._folder = folder
        self._generation = generation

    def _load_index(self, kind: str) -> VectorIndex:
        return self._vector_store.open_vectors(self._folder, kind, generation=self._generation)
