"""The chain of a catalogue: entries that seal bundles and batches, each over the one before.

Each entry has a sequence number, the hash of what it seals, the head of the chain before it
(``tg:previousHash``) and the head after it (``tg:chainHash``), the hash of all that the entry says
besides. A bundle is sealed by the RDFC-1.0 hash of its quads, a batch by the hash of its text,
which the librarian keeps. Of a signature the hash is that of its own text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

from pyoxigraph import CanonicalizationAlgorithm, Dataset, Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.store.base import Store
from tgraph.store.statements import Pair, Statements, to_bytes

GENESIS = "0" * 64
"""The head of an empty chain."""

CHAIN_HASH = v.tg("chainHash")

_CLASSES = {"batch": v.tg("Batch"), "signature": v.tg("Signature")}
"""Of the kinds that are no bundles."""


def canonical_hash(quads: Iterable[Quad]) -> str:
    """SHA-256 of the RDFC-1.0 canonical N-Quads of the quads (W3C Recommendation, 2024).

    Without blank nodes, which tgraph doesn't write, these are the sorted distinct lines.
    """
    stated = list(quads)
    data = to_bytes(stated)
    if b"_:" in data:
        dataset = Dataset(stated)
        dataset.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
        data = to_bytes(dataset)
    return _hash(data.splitlines(keepends=True))


class GraphHash(NamedTuple):
    """``canonical_hash`` of a graph's quads, and how many they are."""

    hash: str
    quads: int


NO_GRAPH = GraphHash(sha256().hexdigest(), 0)
"""Of a graph that there is not."""


def hash_of_graph(store: Store, graph: NamedNode) -> GraphHash:
    lines = store.lines(graph)
    if any(b"_:" in line for line in lines):
        return GraphHash(canonical_hash(store.match(None, None, None, graph)), len(lines))
    return GraphHash(_hash(lines), len(lines))


def _hash(lines: Iterable[bytes]) -> str:
    return sha256(b"".join(sorted(set(lines)))).hexdigest()


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a catalogue's chain: how many entries it has and the hash over them all."""

    sequence: int
    hash: str


def read_head(store: Store, catalogue: NamedNode) -> Head:
    """The head of the chain, found in a logarithmic number of look-ups."""
    known, beyond = 0, 1
    while entry_at(store, catalogue, beyond) is not None:
        known, beyond = beyond, beyond * 2
    while beyond - known > 1:
        middle = (known + beyond) // 2
        if entry_at(store, catalogue, middle) is None:
            beyond = middle
        else:
            known = middle
    entry = entry_at(store, catalogue, known) if known else None
    if entry is None:
        return Head(0, GENESIS)
    chained = next(store.match(entry, CHAIN_HASH, None, catalogue)).object
    assert isinstance(chained, Literal)
    return Head(known, chained.value)


def entry_at(store: Store, catalogue: NamedNode, sequence: int) -> NamedNode | None:
    """The entry with that number, None where there is none."""
    number = Literal(str(sequence), datatype=v.xsd("integer"))
    for quad in store.match(None, v.tg("sequence"), number, catalogue):
        assert isinstance(quad.subject, NamedNode)
        return quad.subject
    return None


def chain_hash(entry: Iterable[Quad]) -> str:
    """The head of the chain once the entry with these quads has been added."""
    return canonical_hash(quad for quad in entry if quad.predicate != CHAIN_HASH)


class Chain:
    """Adds entries to the catalogue, in memory until they are written with what they seal."""

    def __init__(self, store: Store, catalogue: str, clock: Callable[[], datetime]) -> None:
        self.catalogue = NamedNode(catalogue)
        self.head = read_head(store, self.catalogue)
        self._store = store
        self._clock = clock
        self._new: set[str] = set()

    def mark(self) -> Head:
        """Where the chain is now, for ``back_to``."""
        return self.head

    def back_to(self, head: Head) -> None:
        """Forget the entries after ``head``: they were not written."""
        self.head = head
        self._new.clear()

    def has(self, subject: str) -> bool:
        """Whether the catalogue has an entry for the subject, written or about to be."""
        if subject in self._new:
            return True
        found = self._store.match(NamedNode(subject), v.tg("sequence"), None, self.catalogue)
        return next(found, None) is not None

    def entry(self, subject: str, kind: str, content_hash: str, *pairs: Pair) -> list[Quad]:
        """The quads of the next entry, which seals ``subject`` by its hash."""
        out = Statements(self.catalogue)
        classes = [v.prov("Entity"), _CLASSES.get(kind, v.prov("Bundle"))]
        out.add(
            subject,
            (v.RDF_TYPE, classes),
            (v.tg("kind"), kind),
            (v.prov("generatedAtTime"), self._clock()),
            (v.tg("sequence"), self.head.sequence + 1),
            (v.tg("hash"), content_hash),
            (v.tg("previousHash"), self.head.hash),
            *pairs,
        )
        after = chain_hash(out.quads)
        out.add(subject, (CHAIN_HASH, after))
        self.head = Head(self.head.sequence + 1, after)
        self._new.add(subject)
        return out.quads
