"""Quad comparison: store against batches, store against store.

Quads are compared by digests of their N-Quads lines. Digests are stored in files, partitioned
by prefix, with one partition in memory at a time: a 256th of the store, plus its differences."""

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
_BY_NONE = "No batch added the quad."
_SEEN = "the snapshot that readers see"
_UNREADABLE = (
    "The text of the batch can't be read, so the quads outside the bundles were not compared."
)


def decode_line(line: bytes) -> str:
    return line.decode("utf-8", "replace").strip()


def digest_of(line: bytes) -> bytes:
    return blake2b(line, digest_size=_DIGEST).digest()


class InParts(Protocol):
    """A digest set divided into partitions."""

    def part(self, number: int) -> Collection[bytes]: ...


def compare_digests(left: InParts, right: InParts) -> tuple[set[bytes], set[bytes]]:
    """Return digests only in the left set, and digests only in the right set."""
    only_left, only_right = set[bytes](), set[bytes]()
    for number in range(PARTS):
        left_part, right_part = set(left.part(number)), set(right.part(number))
        only_left |= left_part - right_part
        only_right |= right_part - left_part
    return only_left, only_right


class DigestFile:
    """A file of line digests, each followed by a fixed number of bytes; call ``close`` after
    use."""

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
            self._write_records()

    def _write_records(self) -> None:
        with disk_errors():
            for number, records in enumerate(self._last):
                self._written[number].append((self._file.tell(), len(records)))
                self._file.write(records)
        self._last = [bytearray() for _ in range(PARTS)]
        self._waiting = 0

    def part(self, number: int) -> list[bytes]:
        """Return digest records of a partition, in insertion order."""
        records = b"".join([*self._read_records(number), self._last[number]])
        return [records[at : at + self._size] for at in range(0, len(records), self._size)]

    def _read_records(self, number: int) -> Iterator[bytes]:
        with disk_errors():
            for start, length in self._written[number]:
                self._file.seek(start)
                yield self._file.read(length)
            self._file.seek(0, 2)

    def close(self) -> None:
        self._file.close()


class StoredQuads:
    """Quads of store graphs without concurrent writers; call ``close`` after use."""

    def __init__(self, store: OxigraphStore, graphs: Sequence[Graph]) -> None:
        self._store = store
        self._graphs = graphs
        self._digests = DigestFile()
        self._dump_graphs(self._digests.add)

    def __len__(self) -> int:
        return self._digests.count

    def part(self, number: int) -> list[bytes]:
        return self._digests.part(number)

    def lines(self, digests: Collection[bytes]) -> list[str]:
        """Return quads with these digests, as sorted N-Quads lines."""
        matching_lines: list[bytes] = []
        if digests:
            self._dump_graphs(
                lambda lines: matching_lines.extend(ln for ln in lines if digest_of(ln) in digests)
            )
        return sorted(map(decode_line, matching_lines))

    def _dump_graphs(self, take: Callable[[list[bytes]], None]) -> None:
        for graph in self._graphs:
            self._store.dump(graph, take)

    def close(self) -> None:
        self._digests.close()


def find_differences(published: StoredQuads, written: StoredQuads) -> Iterator[Problem]:
    """Yield problems for quads that differ between published store and written store."""
    missing, added = compare_digests(published, written)
    for line in written.lines(added):
        yield Problem("added", "quad", line, f"It is in the store and not in {_SEEN}.")
    for line in published.lines(missing):
        yield Problem("missing", "quad", line, f"It is not in the store but in {_SEEN}.")


class BatchReplay:
    """A replay of batches in order, giving remaining quads and hashes of accompanying texts.

    A batch is a text of added and removed N-Quads lines. ``is_gone`` tells whether a text
    needed at a time was erased since. Call ``close`` after use."""

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
        """Apply a batch; note batches with lost or damaged text as unreadable."""
        self._batches.append(batch)
        added, removed = self._order_marks()
        try:
            remaining_lines = self._librarian.lines(batch.hash)
            while lines := list(islice(remaining_lines, _AT_ONCE)):
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

    def _order_marks(self) -> tuple[bytes, bytes]:
        """Return order marks for lines added and removed by the last batch: the greater mark
        wins, so that a line both removed and added exists afterwards."""
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
        """Return problems for quads added or missing compared with the batches."""
        if self.unreadable:
            return [Problem("missing", "batch", batch, _UNREADABLE) for batch in self.unreadable]
        missing_digests, added = compare_digests(self, stored)
        added_problems = (Problem("added", "quad", line, _BY_NONE) for line in stored.lines(added))
        return [*added_problems, *self._find_missing(missing_digests)]

    def _find_missing(self, digests: set[bytes]) -> Iterator[Problem]:
        """Yield problems for missing quads, whose lines are searched in batches, newest first."""
        for batch in reversed(self._batches):
            if not digests:
                return
            for line in self._librarian.lines(batch.hash):
                if line.startswith(b"+") and digest_of(line[1:]) in digests:
                    digests.discard(digest_of(line[1:]))
                    detail = f"{batch.subject} added it."
                    yield Problem("missing", "quad", decode_line(line[1:]), detail)

    def close(self) -> None:
        self._digests.close()
