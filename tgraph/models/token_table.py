"""Counting tokens from a table of ranks that is searched where it lies, and not loaded.

tiktoken builds a hash map of 200,000 byte strings before it counts the first word: 0.2 s and 75 MB.
Here the ranks lie in an array in the order of the hashes of their byte strings, which is read in a
few milliseconds, and counts are the same. What a word costs is found by byte pair encoding
(Sennrich et al., 2016; greedy by rank, as in tiktoken).
"""

from __future__ import annotations

import json
import sys
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

_LONGEST = 400  # bytes of a piece; a longer one is left to tiktoken, whose time is linear
_NONE = 2**31
_MOST_KEPT = 50_000
_SHORT = 4  # bytes of what many words have in common
_DIGEST = 64


class TokenTable:
    """The ranks of an encoding, and the pattern by which it cuts a text into pieces."""

    def __init__(self, pattern: str, hashes: array[int], ranks: array[int]) -> None:
        import regex

        self._split = regex.compile(pattern)
        self._hashes = hashes
        self._ranks = ranks
        self._costs: dict[str, int] = {}
        self._known: dict[bytes, int] = {}

    def count(self, text: str) -> int | None:
        """The number of tokens, None where a piece is too long to be counted here."""
        total = 0
        for piece, times in Counter(self._split.findall(text)).items():
            cost = self._costs.get(piece)
            if cost is None:
                data = piece.encode()
                if len(data) > _LONGEST:
                    return None
                cost = self._cost(data)
                if len(self._costs) < _MOST_KEPT:
                    self._costs[piece] = cost
            total += cost * times
        return total

    def _cost(self, data: bytes) -> int:
        if self._rank(data) < _NONE:
            return 1
        starts = list(range(len(data) + 1))
        pairs = [self._rank(data[i : i + 2]) for i in range(len(data) - 1)]
        while pairs:
            best = min(pairs)
            if best == _NONE:
                break
            at = pairs.index(best)
            del starts[at + 1], pairs[at]
            for i in (at - 1, at):
                if 0 <= i < len(pairs):
                    pairs[i] = self._rank(data[starts[i] : starts[i + 2]])
        return len(starts) - 1

    def _rank(self, data: bytes) -> int:
        rank = self._known.get(data)
        if rank is None:
            wanted = _hash(data)
            at = bisect_left(self._hashes, wanted)
            found = at < len(self._hashes) and self._hashes[at] == wanted
            rank = self._ranks[at] if found else _NONE
            if len(data) <= _SHORT and len(self._known) < _MOST_KEPT:
                self._known[data] = rank
        return rank


def _hash(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def pack(pattern: str, ranks: Mapping[bytes, int]) -> bytes:
    """The table as ``unpack`` reads it."""
    rows = sorted((_hash(token), rank) for token, rank in ranks.items())
    head = {"pattern": pattern, "tokens": len(rows), "order": sys.byteorder}
    body = json.dumps(head).encode() + b"\n"
    body += array("Q", (key for key, _ in rows)).tobytes()
    body += array("I", (rank for _, rank in rows)).tobytes()
    return sha256(body).hexdigest().encode() + body


def unpack(data: bytes) -> TokenTable:
    """The table of a file. ``ValueError`` where it is damaged or of another kind of machine."""
    body = memoryview(data)[_DIGEST:]
    if sha256(body).hexdigest().encode() != data[:_DIGEST]:
        raise ValueError("the table of tokens is damaged")
    end = data.index(b"\n", _DIGEST) - _DIGEST
    head: dict[str, Any] = json.loads(bytes(body[:end]))
    hashes, ranks = array("Q"), array("I")
    middle = end + 1 + head["tokens"] * hashes.itemsize
    hashes.frombytes(body[end + 1 : middle])
    ranks.frombytes(body[middle:])
    if head["order"] != sys.byteorder or len(ranks) != head["tokens"]:
        raise ValueError("the table of tokens is of another machine")
    return TokenTable(head["pattern"], hashes, ranks)


def read(path: Path) -> TokenTable | None:
    """The table in the file, None where there is none that can be used."""
    try:
        return unpack(path.read_bytes())
    except (OSError, ValueError, KeyError, TypeError):
        return None
