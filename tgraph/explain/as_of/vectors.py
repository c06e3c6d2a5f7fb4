"""Vectors of knowledge as it was: those of texts that are still there, and those on record.

Every call of an embedder is kept whole, those of index runs included; so nobody is asked again.
"""

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
from tgraph.index.vectors.stores import vector_store
from tgraph.librarian import Librarian
from tgraph.model import Agent
from tgraph.models.base import CallSink, Embedder, decode_vectors, no_sink
from tgraph.models.embedding import token_starts
from tgraph.models.recorded_calls import UnrecordedError
from tgraph.store.base import Store

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from tgraph.index.vectors.base import VectorIndex

_READ = 16
"""Calls that are kept in memory with their vectors."""


class LostVectorsError(UnrecordedError):
    """A text has to be embedded whose vector is on no record."""


class VectorsOnRecord:
    """An ``Embedder`` whose vectors are those that index runs had from it.

    A text that is on no record is embedded by ``own`` where that is the same embedder; else it is a
    ``LostVectorsError``.
    """

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
        self._reply = lru_cache(_READ)(self._read)

    @property
    def dimension(self) -> int:
        """``LostVectorsError`` where no vector is on record."""
        if self._own is not None:
            return self._own.dimension
        for key, _ in self._places.values():
            return int(self._reply(key).shape[1])
        raise LostVectorsError(f"No vectors of {self.agent.name} are on record.")

    def token_starts(self, text: str) -> Sequence[int]:
        return token_starts(self._like, text)

    def embed(self, texts: Sequence[str], sink: CallSink = no_sink) -> NDArray[float32]:
        import numpy as np

        found = [self._places.get(text) for text in texts]
        missing = [text for text, place in zip(texts, found, strict=True) if place is None]
        if missing and self._own is None:
            raise LostVectorsError(
                f"The vectors of {len(missing)} texts are on no record: {missing[0][:80]!r}."
            )
        fresh = iter(self._own.embed(missing, sink) if missing and self._own else ())
        rows = [
            next(fresh) if place is None else self._reply(place[0])[place[1]] for place in found
        ]
        if not rows:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return np.stack(rows).astype(np.float32)

    @cached_property
    def _places(self) -> dict[str, tuple[str, int]]:
        """Where the vector of each text is: the hash of a call's text, and the row.

        Of a text that several calls have, the last call counts.
        """
        found: dict[str, tuple[str, int]] = {}
        for key in self._keys():
            with suppress(StoreError, KeyError, ValueError):
                call = json.loads(self._librarian.get_text(key))
                if call["agent"] == self.agent.iri and "vectors" in call["reply"]:
                    found.update((t, (key, row)) for row, t in enumerate(call["request"]["input"]))
        return found

    def _keys(self) -> list[str]:
        """The texts of the embedding calls of index runs, the latest call's last."""
        kind = Literal("embedding")
        calls = self._store.match(None, v.tg("callKind"), kind, v.SOURCE_GRAPH)
        named = {quad.subject.value for quad in calls if isinstance(quad.subject, NamedNode)}
        told = partial(values_of, self._store, graph=v.SOURCE_GRAPH)
        started = v.prov("startedAtTime")
        begun = sorted((sorted(map(v.in_time, told(iri, started))), iri) for iri in named)
        return [key for _, iri in begun for key in sorted(told(iri, v.tg("contentHash")))]

    def _read(self, key: str) -> NDArray[float32]:
        reply: Mapping[str, Any] = json.loads(self._librarian.get_text(key))["reply"]
        return decode_vectors(reply["vectors"], int(reply["dimension"]))


class _VectorSets(Mapping[str, "VectorIndex"]):
    """Vector sets by their kind, each had when it is first searched."""

    def __init__(self) -> None:
        self._sets: dict[str, VectorIndex] = {}

    def __getitem__(self, kind: str) -> VectorIndex:
        if kind not in self._sets:
            self._sets[kind] = self._of(kind)
        return self._sets[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(KINDS)

    def __len__(self) -> int:
        return len(KINDS)

    def _of(self, kind: str) -> VectorIndex:
        raise NotImplementedError


class PastVectors(_VectorSets):
    """The vector sets of a store as it was.

    ``now`` are those of another state; what they have is not embedded again. The sets are what
    ``build_vectors`` made of the same items at the time.
    """

    def __init__(
        self, store: Store, librarian: Librarian, now: Mapping[str, VectorIndex], embedder: Embedder
    ) -> None:
        super().__init__()
        self._store = store
        self._librarian = librarian
        self._now = now
        self._embedder = embedder

    def _of(self, kind: str) -> VectorIndex:
        items, previous = items_of(kind, self._store, self._librarian), None
        with suppress(TgraphError):
            previous = self._now[kind]
        return vector_store().build_vectors(kind, items, self._embedder, previous)


class SavedVectors(_VectorSets):
    """The vector sets of a folder as they were written; ``StoreError`` for one that is not whole,
    or not of the ``generation``."""

    def __init__(self, folder: Path, generation: int) -> None:
        super().__init__()
        self._folder = folder
        self._generation = generation

    def _of(self, kind: str) -> VectorIndex:
        return vector_store().open_vectors(self._folder, kind, generation=self._generation)
