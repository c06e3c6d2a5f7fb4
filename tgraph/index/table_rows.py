"""The rows of the look-up tables, table by table, whichever keys they are of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from itertools import islice

from pyoxigraph import Literal, NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.errors import StoreError
from tgraph.index.evidence import StoredEvidence
from tgraph.index.lookup_rows import PageRows
from tgraph.index.sources import (
    document_of_chunk,
    is_note,
    parts_of_page,
    read_layout,
    text_value,
)
from tgraph.librarian import Librarian
from tgraph.store.base import Store, text_of

UNASKED = frozenset(
    v.tg(kind).value
    for kind in ("Edge", "Claim", "Community", "CommunityReport", "Finding", "Summary")
)
"""Classes of what is looked up otherwise, and partly later than the tables are made."""

NAMING = {v.RDFS_LABEL: "label", v.SKOS_ALT_LABEL: "alias"}
"""The kinds of sayings that are names, by predicate."""


class TextNumbers:
    """Numbers texts, so that a text that many rows have is kept once; some texts have numbers
    already."""

    def __init__(self, numbers: dict[str, int]) -> None:
        self._numbers = numbers
        self._first_new = len(numbers)

    def number(self, text: str | None) -> int | None:
        return None if text is None else self._numbers.setdefault(text, len(self._numbers))

    def numbers(self, triple: Triple) -> tuple[int, ...]:
        """The numbers of the terms, as N-Triples."""
        numbers = self._numbers
        return tuple(numbers.setdefault(text, len(numbers)) for text in map(str, triple))

    def new_rows(self) -> Iterator[tuple[int, str]]:
        """The texts that had no number before."""
        new = islice(self._numbers.items(), self._first_new, None)
        yield from ((number, text) for text, number in new)


class TableRows(ABC):
    """The rows of standing documents and of knowledge, each method those of one table. Evidence is
    read before edges, edges before degrees, and the texts of both after them."""

    def __init__(self, store: Store, texts: TextNumbers, documents: Collection[str]) -> None:
        """``documents`` are looked at; the rows are of those that stand."""
        self._store = store
        self._texts = texts
        self._standing = StoredEvidence(store).documents(documents)

    @abstractmethod
    def evidence(self) -> Iterator[tuple[object, ...]]:
        """Each row of evidence about its key, and about the keys that the key was merged into."""

    @abstractmethod
    def edges(self) -> Iterator[tuple[object, ...]]:
        """The triples of edges that standing documents mention, and all statements of
        knowledge."""

    @abstractmethod
    def degrees(self) -> Iterator[tuple[str, int]]:
        """The entities with relationships or attributes, and how many each has."""

    @abstractmethod
    def sayings(self) -> Iterator[tuple[str, str, str, bool]]:
        """Names and types of entities, relations and types."""

    @abstractmethod
    def _chunk_tokens(self) -> Mapping[str, int]:
        """The lengths of chunks in tokens."""

    @abstractmethod
    def _page_hashes(self) -> Iterator[Quad]:
        """The hashes of the texts of pages."""

    def chunks(self) -> Iterator[tuple[str, int]]:
        """Yield chunks of standing documents with lengths in tokens."""
        lengths = self._chunk_tokens().items()
        return ((c, tokens) for c, tokens in lengths if document_of_chunk(c) in self._standing)

    def documents(self) -> Iterator[tuple[str, str, str, str, bool]]:
        """The standing documents."""
        for iri, (title, path) in self._standing.items():
            yield iri, title, path, self._media_type(iri), is_note(self._store, iri)

    def pages(
        self, librarian: Librarian, before: PageRows | None
    ) -> Iterator[tuple[str, str, bytes | None]]:
        """The pages of standing documents with the hash of their text and how it reads, which of
        an unchanged text is taken from the rows ``before``; not how graphs read, of which no page
        is read as a whole, nor texts that are lost or erased."""
        from tgraph.ingest.page_reading import (  # who looks up doesn't segment
            pack_reading,
            read_page,
        )

        for quad in self._page_hashes():
            page, key = text_of(quad.subject), text_of(quad.object)
            document = parts_of_page(page)[0]
            if document not in self._standing:
                continue
            reading, media_type = None, self._media_type(document)
            if before is not None and before.text_hash(page) == key:
                reading = before.reading(page)
            elif media_type not in v.GRAPH_MEDIA_TYPES:
                with suppress(StoreError):
                    text = librarian.get_text(key)
                    layout = read_layout(self._store, librarian, page)
                    reading = pack_reading(read_page(text, media_type, layout), text)
            yield page, key, reading

    def _media_type(self, document: str) -> str:
        return text_value(self._store, document, v.tg("mimeType"))


def saying_row(
    iri: str, predicate: NamedNode, name: Literal, *, is_entity: bool
) -> tuple[str, str, str, bool]:
    """The row of a name; a question may ask for the entity by a name without a language."""
    return iri, NAMING[predicate], name.value, is_entity and name == Literal(name.value)
