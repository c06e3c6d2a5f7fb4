"""Ranks by likeness of meaning, from the vectors that a session's calls are on record with.

No embedder is asked: the question's vector is in the librarian's record of the call, the others are
those of the knowledge as the session read it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tgraph.errors import TgraphError
from tgraph.librarian import Librarian
from tgraph.models.base import decode_vectors

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from tgraph.index.vectors import VectorSet


class Likeness:
    """``vectors`` are those that the session searched, ``calls`` the content hashes of its
    embedding calls, in their order."""

    def __init__(
        self, vectors: Mapping[str, VectorSet], librarian: Librarian, calls: Collection[str]
    ) -> None:
        self._vectors = vectors
        self._librarian = librarian
        self._calls = calls

    def rank(
        self, question: str, kind: str, items: Collection[str], among: Collection[str] | None = None
    ) -> tuple[int, str, int] | None:
        """The best rank (from 1) of the items, which of them it is, and among how many; None where
        the vectors are of other knowledge or the question's is not on record."""
        hits = self.hits(question, kind, among)
        ranks = (n for n, (iri, _) in enumerate(hits, 1) if iri in items)
        rank = next(ranks, None)
        return (rank, hits[rank - 1][0], len(hits)) if rank else None

    def hits(
        self, question: str, kind: str, among: Collection[str] | None = None
    ) -> list[tuple[str, float]]:
        """All of a kind, nearest to the question first, with their likeness; nothing where that
        can't be known any more."""
        with suppress(TgraphError, KeyError, ValueError, OSError):
            vector = self._vector(question)
            if vector is not None:
                found = self._vectors[kind]
                return list(found.search(vector, max(1, len(found)), among)[0])
        return []

    def _vector(self, question: str) -> NDArray[float32] | None:
        """The vector of the text that begins with the question (earlier questions may follow)."""
        for key in self._calls:
            call: dict[str, Any] = json.loads(self._librarian.get_text(key))
            texts = call["request"].get("input", ())
            for place, text in enumerate([texts] if isinstance(texts, str) else texts):
                if text == question or text.startswith(f"{question}\n"):
                    reply = call["reply"]
                    return decode_vectors(reply["vectors"], reply["dimension"])[place : place + 1]
        return None
