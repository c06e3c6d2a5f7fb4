"""Graph reader interface: a file or folder in, documents with statements out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from tgraph.extract.imported_communities import ImportedCommunity
from tgraph.model import Chunk, Document, Extraction


@dataclass(frozen=True, slots=True)
class Reading:
    """A document stretch with the statements found there.

    Spans use page coordinates, and quotes are page text, like for any extractor."""

    chunk: Chunk
    extraction: Extraction


@dataclass(frozen=True, slots=True)
class ImportedDocument:
    """A document supporting statements: a graph file, or a source text of the graph.

    ``path`` is the ingestion path, ``content`` the bytes. ``readings`` are created lazily,
    once, in chunk order."""

    path: str
    content: bytes
    document: Document
    readings: Iterable[Reading]


@dataclass(frozen=True, slots=True)
class SkippedRow:
    """An unusable row with its place: line or row number, counted from 1.

    A ``mended`` row is used, apart from a term that is not well formed."""

    file: str
    row: int
    reason: str
    mended: bool = False


OnSkipped = Callable[[SkippedRow], None]

_LARGEST_NUMBER = 1e15
"""Above it sums of weights lose their digits, and in the end overflow."""


def read_number(value: object, otherwise: float) -> float:
    """Return a number of a foreign graph; ``otherwise`` for what is no number, not finite or
    larger than a weight can be."""
    try:
        number = float(str(value))
    except ValueError:
        return otherwise
    return number if abs(number) <= _LARGEST_NUMBER else otherwise


@dataclass(frozen=True, slots=True)
class ImportedGraph:
    """An imported graph.

    ``kind`` is the format's name, ``documents`` are yielded sequentially."""

    kind: str
    documents: Iterator[ImportedDocument]
    communities: tuple[ImportedCommunity, ...] = field(default=())


class GraphReader(Protocol):
    """Reads one format. ``recognises`` looks at names and first bytes only."""

    @property
    def kind(self) -> str:
        """Format label."""

    def recognises(self, path: str) -> bool: ...

    def read(self, path: str, skipped: OnSkipped) -> ImportedGraph:
        """Return the graph from a file or folder; unusable rows are reported and skipped.

        Raises ``IngestError`` if nothing can be read."""
