"""The record of a reading that states no relationships: its sentences, and what came of them."""

from __future__ import annotations

from pyoxigraph import Quad

from tgraph import vocabulary as v
from tgraph.model import Chunk, Extraction
from tgraph.record.nquads import quads_of
from tgraph.record.sources import ExtractionRecord
from tgraph.store.statements import Statements


def occurrence_quads(subgraph: str, key: str) -> list[Quad]:
    """The sentences that a reading found are in the librarian, under the hash ``key``."""
    out = Statements(v.SOURCE_GRAPH)
    out.add(subgraph, (v.tg("occurrences"), key))
    return out.quads


class OccurrenceRecord(ExtractionRecord):
    """What an earlier reading of a chunk turned out to hold, as evidence that the reading gave.

    ``subgraph`` and ``activity`` are of that reading. The evidence has the same IRIs whichever run
    writes it down.
    """

    def __init__(self, subgraph: str, activity: str, chunk: Chunk, extraction: Extraction) -> None:
        super().__init__("", chunk, extraction, "")
        self.subgraph = subgraph
        self.activity = activity
        self._key = subgraph

    def found(self) -> list[Quad]:
        """The edges and the evidence; the activity and the subgraph are on record already."""
        self._contents()
        return self._out.quads + quads_of(self._new.take())
