"""The catalogue chain: linked entries sealing bundles and batches.

Each entry has a sequence number, the hash of the sealed content, the preceding chain head
(``tg:previousHash``) and the following head (``tg:chainHash``), a hash of the entry's remaining
statements. Bundles are sealed by the RDFC-1.0 hash of their quads, batches by the hash of their
text, kept by the librarian. For signatures, the hash is computed from the signature's own text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

from pyoxigraph import CanonicalizationAlgorithm, Dataset, Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.record.boundary import foreign_subjects
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
    quad_list = list(quads)
    data = to_bytes(quad_list)
    if b"_:" in data:
        dataset = Dataset(quad_list)
        dataset.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
        data = to_bytes(dataset)
    return _hash_lines(data.splitlines(keepends=True))


class GraphHash(NamedTuple):
    """A graph's ``canonical_hash`` and quad count, and for a bundle what it speaks of that isn't
    its own."""

    hash: str
    quads: int
    foreign: tuple[str, ...] = ()


NO_GRAPH = GraphHash(sha256().hexdigest(), 0)
"""Of a graph that there is not."""


def hash_of_bundle(store: Store, bundle: NamedNode, kind: str) -> GraphHash:
    lines = store.lines(bundle)
    foreign = foreign_subjects(bundle.value, lines, kind)
    if any(b"_:" in line for line in lines):
        return GraphHash(canonical_hash(store.match(None, None, None, bundle)), len(lines), foreign)
    return GraphHash(_hash_lines(lines), len(lines), foreign)


def _hash_lines(lines: Iterable[bytes]) -> str:
    return sha256(b"".join(sorted(set(lines)))).hexdigest()


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a catalogue's chain: entry count and hash over all entries."""

    sequence: int
    hash: str


def read_head(store: Store, catalogue: NamedNode) -> Head:
    """The head of the chain, found in a logarithmic number of look-ups."""
    present, beyond = 0, 1
    while entry_at(store, catalogue, beyond) is not None:
        present, beyond = beyond, beyond * 2
    while beyond - present > 1:
        middle = (present + beyond) // 2
        if entry_at(store, catalogue, middle) is None:
            beyond = middle
        else:
            present = middle
    entry = entry_at(store, catalogue, present) if present else None
    if entry is None:
        return Head(0, GENESIS)
    chained = next(store.match(entry, CHAIN_HASH, None, catalogue)).object
    assert isinstance(chained, Literal)
    return Head(present, chained.value)


def entry_at(store: Store, catalogue: NamedNode, sequence: int) -> NamedNode | None:
    """Return the chain entry with the sequence number; None means no such entry."""
    number = Literal(str(sequence), datatype=v.xsd("integer"))
    for quad in store.match(None, v.tg("sequence"), number, catalogue):
        assert isinstance(quad.subject, NamedNode)
        return quad.subject
    return None


def chain_hash(entry: Iterable[Quad]) -> str:
    """Return the chain head following the entry with the given quads."""
    return canonical_hash(quad for quad in entry if quad.predicate != CHAIN_HASH)


class Chain:
    """A catalogue chain writer.

    New entries stay in memory until written together with the sealed content."""

    def __init__(self, store: Store, catalogue: str, clock: Callable[[], datetime]) -> None:
        self.catalogue = NamedNode(catalogue)
        self.head = read_head(store, self.catalogue)
        self._store = store
        self._clock = clock
        self._new: set[str] = set()

    def mark(self) -> Head:
        """Return the current chain head, for ``back_to``."""
        return self.head

    def back_to(self, head: Head) -> None:
        """Reset the chain to ``head``, forgetting later, unwritten entries."""
        self.head = head
        self._new.clear()

    def has_entry(self, subject: str) -> bool:
        """Return whether the catalogue contains a written or pending entry for the subject."""
        if subject in self._new:
            return True
        quads = self._store.match(NamedNode(subject), v.tg("sequence"), None, self.catalogue)
        return next(quads, None) is not None

    def entry(self, subject: str, kind: str, content_hash: str, *pairs: Pair) -> list[Quad]:
        """Return the quads of the next chain entry, sealing ``subject`` by hash."""
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
