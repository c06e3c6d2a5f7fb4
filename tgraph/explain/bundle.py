"""What a session's bundle says beside what its trace has: lists and texts of its retrieval."""

from __future__ import annotations

from dataclasses import dataclass

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.errors import StoreError
from tgraph.explain.sessions import SessionSummary
from tgraph.explain.traced import Trace
from tgraph.librarian import Librarian
from tgraph.store.base import Store


@dataclass(frozen=True, slots=True)
class Bundle:
    """The bundle of one session in a store."""

    store: Store
    librarian: Librarian
    summary: SessionSummary

    def complete_list(self) -> list[str]:
        """All that was retrieved, best first, by IRI, where some of it was no candidate; nothing
        where all of it was, or the list was erased."""
        for key in self._texts(v.retrieval_iri(self._uuid), v.tg("contentHash")):
            try:
                return self.librarian.get_text(key).split("\n")
            except StoreError:
                return []
        return []

    def embedding_calls(self, trace: Trace) -> list[str]:
        """The content hashes of the calls of embedders, in their order."""
        return [
            key
            for call in trace.calls
            if call.label.startswith("embedding")
            for key in self._texts(call.iri, v.tg("contentHash"))
        ]

    def hypothesis(self) -> str:
        """The question as DRIFT search put it as an answer; empty where none did."""
        subject = v.session_part_iri("hypothesis", self._uuid)
        return next(iter(self._texts(subject, v.tg("text"))), "")

    @property
    def _uuid(self) -> str:
        return self.summary.explain_id.removeprefix(v.session_iri(""))

    def _texts(self, subject: str, predicate: NamedNode) -> list[str]:
        graph = NamedNode(self.summary.bundle)
        quads = self.store.match(NamedNode(subject), predicate, None, graph)
        return [quad.object.value for quad in quads if isinstance(quad.object, Literal)]
