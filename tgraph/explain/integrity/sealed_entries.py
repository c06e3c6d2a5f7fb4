"""The sealed entries of a collection, with the quads that each entry seals.

``publish`` and ``ship`` carry a graph away as this stream, ``follow`` carries the stream out, and
``as_of`` takes the newest batches of the stream back. A backup copies files instead: restored files
are the published files, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from itertools import islice

from pyoxigraph import Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.errors import StoreError
from tgraph.explain.integrity.entries import ChainEntry, entries_after, entry_of
from tgraph.explain.integrity.erasures import Rewritings
from tgraph.librarian import Librarian
from tgraph.record.bundle import ERASURE
from tgraph.record.chain import CHAIN_HASH, entry_at
from tgraph.store.base import Store, match_record, text_of
from tgraph.store.oxigraph import BULK
from tgraph.store.statements import read_nquads

REMOVED, ADDED = b"-", b"+"
"""Signs of the lines of a batch."""


class SealedEntries:
    """The chains of all catalogues of a store."""

    def __init__(self, store: Store, librarian: Librarian) -> None:
        self._store = store
        self._librarian = librarian
        first = Literal("1", datatype=v.xsd("integer"))
        graphs = {text_of(q.graph_name) for q in match_record(store, None, v.tg("sequence"), first)}
        self.catalogues = sorted(name for name in graphs if name.startswith(v.collection_iri("")))
        self.erasures = [
            entry_of(store, quad.subject, name)
            for name in self.catalogues
            for quad in store.match(None, v.tg("kind"), Literal(ERASURE.name), NamedNode(name))
            if isinstance(quad.subject, NamedNode)
        ]
        self._rewritings = Rewritings(store, self.erasures)

    def list_entries_after(self, sequences: Mapping[str, int]) -> list[ChainEntry]:
        """Return the entries of all catalogues in the order of time, of each catalogue the entries
        behind the sequence number."""
        chains = (entries_after(self._store, c, sequences.get(c, 0)) for c in self.catalogues)
        return list(merge(*chains, key=lambda entry: v.in_time(entry.time)))

    def head_at(self, catalogue: str, sequence: int) -> str | None:
        """Return the chain head after an entry; None for unknown entries, "" for the chain's
        beginning."""
        graph = NamedNode(catalogue)
        entry = entry_at(self._store, graph, sequence) if sequence else None
        if entry is None:
            return None if sequence else ""
        heads = self._store.match(entry, CHAIN_HASH, None, graph)
        return next((text_of(quad.object) for quad in heads), None)

    def content_hash(self, subject: str, sealed: str) -> str:
        """Return the current hash of a batch or bundle: the ``sealed`` hash, or the hash after
        the last erasure rewriting the batch or bundle."""
        return self._rewritings.hash_of(subject, sealed)

    def read_removed_quads(self, entry: ChainEntry) -> Iterator[Quad]:
        """Read the quads that the entry removes: none, unless the entry seals a batch."""
        return self._batch(entry, REMOVED) if entry.kind == "batch" else iter(())

    def read_added_quads(self, entry: ChainEntry) -> Iterator[Quad]:
        """Read the quads that the entry adds: the added quads of a batch, all quads of a bundle."""
        if entry.kind == "batch":
            return self._batch(entry, ADDED)
        return self._store.match(None, None, None, NamedNode(entry.subject))

    def quad_count(self, entry: ChainEntry) -> int:
        """Count the quads that the entry removes and adds."""
        if entry.kind != "batch":
            return sum(1 for _ in self.read_added_quads(entry))
        lines = self._librarian.lines(self.content_hash(entry.subject, entry.hash))
        return sum(line[:1] in (REMOVED, ADDED) for line in lines)

    def _batch(self, entry: ChainEntry, sign: bytes) -> Iterator[Quad]:
        key = self.content_hash(entry.subject, entry.hash)
        return quads_of_lines(batch_lines(self._librarian, key, sign))


def catalogue_of(entry: ChainEntry) -> str:
    """Return the catalogue containing an entry."""
    return text_of(entry.quads[0].graph_name)


def batch_lines(librarian: Librarian, key: str, sign: bytes) -> Iterator[bytes]:
    """Read the N-Quads lines that a batch removes or adds."""
    return (line[1:] for line in librarian.lines(key) if line.startswith(sign))


def quads_of_lines(lines: Iterable[bytes]) -> Iterator[Quad]:
    """Read N-Quads lines, some thousand at a time. ``StoreError`` where a line is damaged."""
    line_iterator = iter(lines)
    while block := b"".join(islice(line_iterator, BULK)):
        try:
            yield from read_nquads(block)
        except SyntaxError as error:
            raise StoreError(
                f"The text of a batch can't be read: {error}.", "Run `tgraph audit integrity`."
            ) from error
