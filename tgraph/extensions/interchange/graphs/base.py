"""The interface of readers of graphs: a file or folder in, documents with what they state out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from tgraph.extract.imported_communities import ImportedCommunity
from tgraph.model import Chunk, Document, Extraction


@dataclass(frozen=True, slots=True)
class Reading:
    """A stretch of a document and what a graph states there. Spans are in the page's coordinates,
    and quotes are the page's text, as for any extractor."""

    chunk: Chunk
    extraction: Extraction


@dataclass(frozen=True, slots=True)
class ImportedDocument:
    """What statements rest on: a file of the graph itself, or a text that the graph was made from.

    ``path`` is what it is taken in under, ``content`` its bytes. ``readings`` are made as they are
    asked for, once, in the order of their chunks.
    """

    path: str
    content: bytes
    document: Document
    readings: Iterable[Reading]


@dataclass(frozen=True, slots=True)
class SkippedRow:
    """What could not be used, with its place: a line's number, or a row's, counted from 1."""

    file: str
    row: int
    reason: str


OnSkipped = Callable[[SkippedRow], None]


@dataclass(frozen=True, slots=True)
class ImportedGraph:
    """A graph of others. ``kind`` is the format's name, ``documents`` come one after the other."""

    kind: str
    documents: Iterator[ImportedDocument]
    communities: tuple[ImportedCommunity, ...] = field(default=())


class GraphReader(Protocol):
    """Reads one format. ``recognises`` looks at names and first bytes only."""

    @property
    def kind(self) -> str:
        """The format's name."""

    def recognises(self, path: str) -> bool: ...

    def read(self, path: str, skipped: OnSkipped) -> ImportedGraph:
        """The graph in a file or folder. What can't be used is told, and left out.

        Raises ``IngestError`` where nothing can be read.
        """
