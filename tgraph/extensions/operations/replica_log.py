"""Read replicas by log shipping: a replica applies the same sealed chain entries in the same
order, from files in any storage (``fsspec``).

Folders below the URL: ``contents/`` (librarian contents, by hash), ``derived/`` (vectors and
tables, by hash), ``journals/`` (replica recordings, until the writer chains them) and ``log/``:
numbered segments, each with the hash of its predecessor, and the ``head`` that identifies the
last segment. A segment is written once, after everything it refers to, and lists its
references, so that no folder listing is needed. An erasure begins a new ``epoch``: all files
are deleted and shipped anew."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.errors import UsageError, VerificationError
from tgraph.extensions.operations.replica_storage import AGAIN, LOG, Storage
from tgraph.foreign_bytes import OversizeError, parse_json, unpack_lines
from tgraph.record.bundle import kind_of_journal
from tgraph.record.chain import GENESIS
from tgraph.store.base import Store, match_record
from tgraph.store.folder import CollectionFolder

FORMAT = 1
HEAD = "head"
"""The file beside the segments with the end of the log."""

_HEADER_DEPTH, _ENTRY_DEPTH = 4, 1
"""Brackets in each other: of a segment's header, and of an entry."""
_KEY = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Position:
    """A log position, either a log end or a replica's progress: segment number, segment hash,
    epoch and URL."""

    url: str = ""
    number: int = 0
    hash: str = GENESIS
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Shipment:
    """A summary of shipping or following: counts of chain entries, of contents and files, of
    replica journals taken in or handed over, and the log's end segment."""

    url: str
    entries: int
    files: int
    journals: int
    segment: int
    anew: bool = False


@dataclass(frozen=True, slots=True)
class LogSegment:
    """A log segment: a header, followed by quads and bundle quads of each entry.

    It stays ``packed``: only one entry is in memory at a time."""

    header: Mapping[str, Any]
    packed: bytes

    @classmethod
    def from_bytes(cls, data: bytes) -> LogSegment:
        """Return a segment with all lines checked for readability. Raise gzip and JSON errors."""
        lines = _packed_lines(data)
        header = parse_json(next(lines, ""), deepest=_HEADER_DEPTH)
        for line in lines:
            parse_json(line, deepest=_ENTRY_DEPTH)
        return cls(header, data)

    @property
    def entries(self) -> Iterator[Mapping[str, str]]:
        lines = islice(_packed_lines(self.packed), 1, None)
        return (parse_json(line, deepest=_ENTRY_DEPTH) for line in lines)


def encode_line(said: Mapping[str, Any]) -> bytes:
    return f"{json.dumps(said, ensure_ascii=False)}\n".encode("utf-8", "surrogatepass")


def _packed_lines(data: bytes) -> Iterator[str]:
    return unpack_lines(data)


def segment_name(number: int) -> str:
    return f"{number:08d}.gz"


@dataclass(frozen=True, slots=True)
class LogEnd:
    """A log end: ``position`` with the last segment's chain ``heads`` and ``derived`` files
    (vectors and tables).

    A restarted log keeps the heads, which identify its writer; ``clearing`` tells whether old
    files may still exist."""

    position: Position
    heads: Mapping[str, Sequence[Any]]
    derived: Mapping[str, str]
    clearing: bool = False

    @classmethod
    def read(cls, storage: Storage) -> LogEnd | None:
        """Return the stored log end, or None before the initial shipment. Raise
        ``VerificationError`` if the head is damaged."""
        data = storage.find(LOG, HEAD)
        if data is None:
            return None
        try:
            content = parse_json(data, deepest=_HEADER_DEPTH)
            _check_format(content["format"])
            position = Position(storage.url, content["number"], content["hash"], content["epoch"])
            return cls(
                position, dict(content["heads"]), dict(content["derived"]), content["clearing"]
            )
        except (ValueError, KeyError, TypeError) as error:
            raise VerificationError(
                f"The head of the log at {storage.url} can't be read.", AGAIN
            ) from error

    def write(self, storage: Storage) -> None:
        at = self.position
        content = {"format": FORMAT, "number": at.number, "hash": at.hash, "epoch": at.epoch}
        content |= {"heads": self.heads, "derived": self.derived, "clearing": self.clearing}
        storage.write(LOG, HEAD, json.dumps(content).encode())

    def check(self, storage: Storage, known: Position) -> None:
        """Raise ``VerificationError`` if the log ends before the known position or diverges
        from it.

        Readers check later segments themselves."""
        at = self.position
        if at.epoch < known.epoch:
            raise VerificationError(f"The log at {storage.url} is older than what is known.", AGAIN)
        if at.epoch > known.epoch or not known.number:
            return
        if at.number < known.number or not storage.has_file(LOG, segment_name(known.number)):
            raise log_ended(storage, known)
        if at.number == known.number and at.hash != known.hash:
            raise altered_segment(storage, at.number, "it is another one than was there")


def log_ended(storage: Storage, known: Position) -> VerificationError:
    return VerificationError(
        f"The log at {storage.url} ends before segment {known.number}, which was there.",
        AGAIN,
    )


def _check_format(written: int) -> None:
    if written > FORMAT:
        raise UsageError("The log was written by a newer tgraph.", "Upgrade this one.")


def read_segments(
    storage: Storage, after: Position, end: Position
) -> Iterator[tuple[Position, LogSegment]]:
    """Yield the log segments after a position up to the end, in log order.

    Raise ``VerificationError`` if a segment is missing or does not follow its predecessor."""
    while after.number < end.number:
        after, segment = read_segment(storage, after)
        if after.number == end.number and after.hash != end.hash:
            raise altered_segment(storage, after.number, "it is not the one that the log ends with")
        yield after, segment


def read_segment(storage: Storage, after: Position) -> tuple[Position, LogSegment]:
    """Return the subsequent log segment with its position."""
    number = after.number + 1
    data = storage.read(LOG, segment_name(number))
    try:
        segment = LogSegment.from_bytes(data)
        header = segment.header
        _check_format(header["format"])
        position = header["number"], header["previous"], header["epoch"]
        if not all(map(_KEY.fullmatch, [*header["contents"], *header["derived"].values()])):
            raise ValueError("no hash")
    except (
        OSError,
        EOFError,
        zlib.error,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
    ) as error:
        why = (
            f"it can't be read: {error}" if isinstance(error, OversizeError) else "it can't be read"
        )
        raise altered_segment(storage, number, why) from error
    if position != (number, after.hash, after.epoch):
        raise altered_segment(storage, number, "it doesn't follow the one before")
    return replace(after, number=number, hash=digest(data)), segment


def digest(segment: bytes) -> str:
    return sha256(segment).hexdigest()


def altered_segment(storage: Storage, number: int, why: str) -> VerificationError:
    return VerificationError(f"Segment {number} of the log at {storage.url}: {why}.", AGAIN)


def is_replica(folder: CollectionFolder) -> bool:
    """Tell whether this collection is a replica."""
    return folder.replica.exists()


def is_chained(store: Store, journal: str) -> bool:
    """Tell whether the chain contains a journal's bundle."""
    bundle = NamedNode(v.bundle_iri(kind_of_journal(Path(journal))[1]))
    return any(match_record(store, bundle, v.tg("sequence")))
