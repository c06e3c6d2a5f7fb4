"""Limits of a model server's replies: bytes, brackets and time.

A reply of 128,000 tokens comes to some 40 MB where each token is an event of its own, and 64
vectors of 4,096 numbers to 6 MB."""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import httpx2

MOST_BYTES = 64_000_000
MOST_BRACKETS = 2_000_000
"""Each opens an object that takes twenty times its characters in memory."""
PATIENCE = 10
"""Times that a whole reply may take as long as the server may be silent."""
_BLOCK = 1 << 16

if TYPE_CHECKING:
    Read = Callable[..., bytes]


class ReplyLimitError(Exception):
    """An error for a reply beyond a limit, which the message names."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


class _ReplyEnd(threading.local):
    until = float("inf")


class ReplyLimits:
    """The limits of one server's replies; ``silence`` is how long it may be silent, in seconds.
    Thread-safe."""

    def __init__(self, silence: float) -> None:
        self._seconds = PATIENCE * silence
        self._end = _ReplyEnd()

    def start_reply(self, request: httpx2.Request) -> None:
        """Begin to count the time of the reply that this thread waits for."""
        self._end.until = time.monotonic() + self._seconds

    def bound_reply(self, response: httpx2.Response) -> None:
        """Bound the body of a reply whose headers are there."""
        stream = response.stream
        assert isinstance(stream, httpx2.SyncByteStream)
        coding = response.headers.pop("content-encoding", "")
        response.stream = _BoundedStream(stream, coding, self, self._end.until)

    def bound_reads(self, connection: Any) -> None:
        """Have a connection's reads end with the time of the reply, headers included."""
        read: Read = connection.read

        def read_in_time(max_bytes: int, timeout: float | None = None) -> bytes:
            self.check_time(self._end.until)
            return read(max_bytes, timeout)

        connection.read = read_in_time

    def keep_time(self, until: float) -> None:
        """Have reads of this thread end at a time."""
        self._end.until = until

    def check_time(self, until: float) -> None:
        """Raise ``ReplyLimitError`` past a time."""
        if time.monotonic() > until:
            raise ReplyLimitError(
                f"took more than {self._seconds:g} seconds for a reply, the limit",
                f"Raise chat.timeout, a {PATIENCE}th of it, if the server is only slow.",
            )


class _BoundedStream(httpx2.SyncByteStream):
    """A reply's unpacked body within the limits."""

    def __init__(
        self, stream: httpx2.SyncByteStream, coding: str, limits: ReplyLimits, until: float
    ) -> None:
        self._stream = stream
        self._coding = coding
        self._limits = limits
        self._until = until

    def __iter__(self) -> Iterator[bytes]:
        size = brackets = 0
        for block in self._unpack_blocks():
            size += len(block)
            brackets += block.count(b"[") + block.count(b"{")
            if size > MOST_BYTES or brackets > MOST_BRACKETS:
                limit = (
                    f"{MOST_BYTES // 1_000_000} MB"
                    if size > MOST_BYTES
                    else f"{MOST_BRACKETS:,} brackets"
                )
                raise ReplyLimitError(
                    f"sent a reply of more than {limit}, the limit",
                    "Check what runs there; no model's reply is that long.",
                )
            yield block

    def _unpack_blocks(self) -> Iterator[bytes]:
        if self._coding.strip().lower() in ("", "identity"):
            yield from self._read_raw()
            return
        if self._coding.strip().lower() not in ("gzip", "x-gzip"):
            raise ReplyLimitError(
                "packed its reply in a way that was not asked for",
                "Check the proxy before it: gzip is accepted.",
            )
        unpacker = zlib.decompressobj(31)
        for raw in self._read_raw():
            waiting = raw
            while waiting and not unpacker.eof:
                yield unpacker.decompress(waiting, _BLOCK)
                waiting = unpacker.unconsumed_tail
        yield unpacker.flush()

    def _read_raw(self) -> Iterator[bytes]:
        blocks = iter(self._stream)
        while True:
            self._limits.keep_time(self._until)
            self._limits.check_time(self._until)
            try:
                block = next(blocks)
            except StopIteration:
                return
            yield block

    def close(self) -> None:
        self._stream.close()
