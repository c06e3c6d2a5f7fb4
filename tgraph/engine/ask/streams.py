"""Streams of messages that return something at their end, drained and in an event loop."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Generic, TypeVar

M = TypeVar("M")
R = TypeVar("R")


def result_of(stream: Generator[M, None, R]) -> R:
    """What a stream returns when it has ended."""
    while True:
        try:
            next(stream)
        except StopIteration as end:
            result: R = end.value
            return result


class ThreadStream(Generic[M, R]):
    """A stream for an event loop, which it doesn't block: all of it runs in one thread of its own.

    ``messages`` can be read once; a stream that is left before its end is closed. ``result`` is
    what it returned, once they have all been read.
    """

    result: R

    def __init__(self, stream: Generator[M, None, R]) -> None:
        self._stream = stream

    async def messages(self) -> AsyncGenerator[M, None]:
        import asyncio  # late: a command has no event loop

        loop = asyncio.get_running_loop()
        pool = ThreadPoolExecutor(1, "ask")
        try:
            while (message := await loop.run_in_executor(pool, self._next)) is not None:
                yield message
        finally:
            pool.submit(self._stream.close)
            pool.shutdown(wait=True)

    async def ended(self) -> R:
        """The result, when everything has been read."""
        async with aclosing(self.messages()) as messages:
            async for _ in messages:
                pass
        return self.result

    def _next(self) -> M | None:
        try:
            return next(self._stream)
        except StopIteration as end:
            self.result = end.value
            return None
