"""What the batches of the chain add up to, compared with what the store holds.

Each batch is a text of N-Quads lines added and removed. Played one after the other they give
every quad outside the bundles and catalogues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice

from pyoxigraph import Quad

from tgraph.errors import StoreError
from tgraph.explain.chained import Entry, Problem
from tgraph.librarian import Librarian
from tgraph.store.base import Graph, Store
from tgraph.store.statements import to_bytes

_AT_ONCE = 10_000
_UNREADABLE = "Its text can't be read, so that the quads outside the bundles were not compared."


class Replayed:
    """The quads that batches have left, as 16-byte digests of their lines, and the hashes of the
    texts that came with them. ``is_gone`` tells of a text that was needed at a time whether it has
    been erased since."""

    def __init__(
        self,
        librarian: Librarian,
        is_gone: Callable[[str, str], bool] = lambda key, time: False,
    ) -> None:
        self._is_gone = is_gone
        self.texts: dict[str, str] = {}
        self.unreadable: list[str] = []
        self._librarian = librarian
        self._batches: list[Entry] = []
        self._lines: set[bytes] = set()

    def play(self, batch: Entry) -> None:
        """Apply the batch; one whose text is lost or damaged is noted as unreadable."""
        self._batches.append(batch)
        added, removed = set(), set()
        try:
            for line in self._librarian.lines(batch.hash):
                if line.startswith(b"+"):
                    added.add(_digest(line[1:]))
                elif line.startswith(b"-"):
                    removed.add(_digest(line[1:]))
                else:
                    key = line[1:].decode("ascii", "replace").strip()
                    if not self._is_gone(key, batch.time):
                        self.texts.setdefault(key, batch.subject)
        except StoreError:
            self.unreadable.append(batch.subject)
        self._lines -= removed
        self._lines |= added

    def compare(self, store: Store, graphs: Sequence[Graph]) -> tuple[int, list[Problem]]:
        """How many quads the graphs hold, and each that is there or missing against the batches."""
        if self.unreadable:
            return sum(1 for graph in graphs for _ in store.match(None, None, None, graph)), [
                Problem("missing", "batch", subject, _UNREADABLE) for subject in self.unreadable
            ]
        found: set[bytes] = set()
        count = 0
        problems = []
        for graph in graphs:
            for line in _lines(store.match(None, None, None, graph)):
                digest = _digest(line)
                count += 1
                found.add(digest)
                if digest not in self._lines:
                    problems.append(Problem("added", "quad", _shown(line), "No batch added it."))
        return count, [*problems, *self._missing(self._lines - found)]

    def _missing(self, digests: set[bytes]) -> Iterator[Problem]:
        """The lines of the digests, found again in the batches, the newest first."""
        for batch in reversed(self._batches):
            if not digests:
                return
            for line in self._librarian.lines(batch.hash):
                if line.startswith(b"+") and _digest(line[1:]) in digests:
                    digests.discard(_digest(line[1:]))
                    detail = f"{batch.subject} added it."
                    yield Problem("missing", "quad", _shown(line[1:]), detail)


def _lines(quads: Iterable[Quad]) -> Iterator[bytes]:
    rest = iter(quads)
    while block := list(islice(rest, _AT_ONCE)):
        yield from to_bytes(block).splitlines(keepends=True)


def _digest(line: bytes) -> bytes:
    return blake2b(line, digest_size=16).digest()


def _shown(line: bytes) -> str:
    return line.decode("utf-8", "replace").strip()
