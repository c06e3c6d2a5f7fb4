"""What a store holds against what its batches have left, and against another store.

Quads are compared by digests of their N-Quads lines. Those lie in files, in parts by how they
begin, of which one is in memory at a time: a 256th of the store, and what in it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import Protocol

from tgraph.errors import StoreError
from tgraph.explain.integrity.entries import ChainEntry, Problem
from tgraph.librarian import Librarian
from tgraph.store.base import Graph
from tgraph.store.files import disk_errors
from tgraph.store.oxigraph import OxigraphStore

PARTS = 256
"""As many as a byte has values: a digest is in the part of its first byte."""

_DIGEST = 16
_ORDER = 5
_IN_MEMORY = 16_000_000
"""Bytes of digests that are not written to a file."""

_AT_ONCE = 10_000
_BY_NONE = "No batch added it."
_SEEN = "the snapshot that readers see"
_UNREADABLE = "Its text can't be read, so that the quads outside the bundles were not compared."


def shown(line: bytes) -> str:
    return line.decode("utf-8", "replace").strip()


def digest_of(line: bytes) -> bytes:
    return blake2b(line, digest_size=_DIGEST).digest()


class InParts(Protocol):
    """A set of digests, which is looked at in parts."""

    def part(self, number: int) -> Collection[bytes]: ...


def differing(left: InParts, right: InParts) -> tuple[set[bytes], set[bytes]]:
    """What only the one has, and what only the other has."""
    only_left, only_right = set[bytes](), set[bytes]()
    for number in range(PARTS):
        one, other = set(left.part(number)), set(right.part(number))
        only_left |= one - other
        only_right |= other - one
    return only_left, only_right


class DigestFile:
    """Digests of lines, each with the same number of bytes behind it. ``close`` it."""

    def __init__(self, behind: int = 0) -> None:
        self.count = 0
        self._size = _DIGEST + behind
        self._file = SpooledTemporaryFile[bytes](_IN_MEMORY)
        self._last = [bytearray() for _ in range(PARTS)]
        self._waiting = 0
        self._written: list[list[tuple[int, int]]] = [[] for _ in range(PARTS)]

    def add(self, lines: Collection[bytes], behind: bytes = b"") -> None:
        parts = self._last
        for line in lines:
            digest = digest_of(line)
            parts[digest[0]] += digest + behind
        self.count += len(lines)
        self._waiting += len(lines) * self._size
        if self._waiting > _IN_MEMORY:
            self._write()

    def _write(self) -> None:
        with disk_errors():
            for number, records in enumerate(self._last):
                self._written[number].append((self._file.tell(), len(records)))
                self._file.write(records)
        self._last = [bytearray() for _ in range(PARTS)]
        self._waiting = 0

    def part(self, number: int) -> list[bytes]:
        """The digests of a part with what is behind them, in the order in which they came."""
        records = b"".join([*self._read(number), self._last[number]])
        return [records[at : at + self._size] for at in range(0, len(records), self._size)]

    def _read(self, number: int) -> Iterator[bytes]:
        with disk_errors():
            for start, length in self._written[number]:
                self._file.seek(start)
                yield self._file.read(length)
            self._file.seek(0, 2)

    def close(self) -> None:
        self._file.close()


class StoredQuads:
    """The quads of graphs of a store, which nobody writes to meanwhile. ``close`` it."""

    def __init__(self, store: OxigraphStore, graphs: Sequence[Graph]) -> None:
        self._store = store
        self._graphs = graphs
        self._digests = DigestFile()
        self._each(self._digests.add)

    def __len__(self) -> int:
        return self._digests.count

    def part(self, number: int) -> list[bytes]:
        return self._digests.part(number)

    def lines(self, digests: Collection[bytes]) -> list[str]:
        """The quads that have the digests, as N-Quads."""
        found: list[bytes] = []
        if digests:
            self._each(lambda lines: found.extend(ln for ln in lines if digest_of(ln) in digests))
        return sorted(map(shown, found))

    def _each(self, take: Callable[[list[bytes]], None]) -> None:
        for graph in self._graphs:
            self._store.dump(graph, take)

    def close(self) -> None:
        self._digests.close()


def differences(published: StoredQuads, written: StoredQuads) -> Iterator[Problem]:
    """Each quad in which what readers see differs from what it was published from."""
    missing, added = differing(published, written)
    for line in written.lines(added):
        yield Problem("added", "quad", line, f"It is in the store and not in {_SEEN}.")
    for line in published.lines(missing):
        yield Problem("missing", "quad", line, f"It is not in the store but in {_SEEN}.")


class BatchReplay:
    """The quads that batches have left, played in their order, and the hashes of the texts that
    came with them. Each batch is a text of N-Quads lines removed and added. ``is_gone`` tells of a
    text that was needed at a time whether it has been erased since. ``close`` it."""

    def __init__(
        self,
        librarian: Librarian,
        is_gone: Callable[[str, str], bool] = lambda key, time: False,
    ) -> None:
        self._is_gone = is_gone
        self.texts: dict[str, str] = {}
        self.read: set[str] = set()
        """The hashes of batches whose text is whole."""
        self.unreadable: list[str] = []
        self._librarian = librarian
        self._batches: list[ChainEntry] = []
        self._digests = DigestFile(_ORDER)

    def play(self, batch: ChainEntry) -> None:
        """Apply the batch; one whose text is lost or damaged is noted as unreadable."""
        self._batches.append(batch)
        added, removed = self._orders()
        try:
            rest = self._librarian.lines(batch.hash)
            while lines := list(islice(rest, _AT_ONCE)):
                self._digests.add([ln[1:] for ln in lines if ln.startswith(b"+")], added)
                self._digests.add([ln[1:] for ln in lines if ln.startswith(b"-")], removed)
                for line in lines:
                    if not line.startswith((b"+", b"-")):
                        key = line[1:].decode("ascii", "replace").strip()
                        if not self._is_gone(key, batch.time):
                            self.texts.setdefault(key, batch.subject)
            self.read.add(batch.hash)
        except StoreError:
            self.unreadable.append(batch.subject)

    def _orders(self) -> tuple[bytes, bytes]:
        """What is behind the digests of lines that the last batch added and removed: the greater
        holds. What a batch both removes and adds is there after it."""
        number = 2 * len(self._batches)
        return (number + 1).to_bytes(_ORDER, "big"), number.to_bytes(_ORDER, "big")

    def part(self, number: int) -> set[bytes]:
        last: dict[bytes, bytes] = {}
        for record in self._digests.part(number):
            digest, order = record[:_DIGEST], record[_DIGEST:]
            if order > last.get(digest, b""):
                last[digest] = order
        return {digest for digest, order in last.items() if order[-1] & 1}

    def compare(self, stored: StoredQuads) -> list[Problem]:
        """Each quad that is there or missing against the batches."""
        if self.unreadable:
            return [Problem("missing", "batch", batch, _UNREADABLE) for batch in self.unreadable]
        left, added = differing(self, stored)
        more = (Problem("added", "quad", line, _BY_NONE) for line in stored.lines(added))
        return [*more, *self._missing(left)]

    def _missing(self, digests: set[bytes]) -> Iterator[Problem]:
        """The lines of the digests, found again in the batches, the newest first."""
        for batch in reversed(self._batches):
            if not digests:
                return
            for line in self._librarian.lines(batch.hash):
                if line.startswith(b"+") and digest_of(line[1:]) in digests:
                    digests.discard(digest_of(line[1:]))
                    detail = f"{batch.subject} added it."
                    yield Problem("missing", "quad", shown(line[1:]), detail)

    def close(self) -> None:
        self._digests.close()
