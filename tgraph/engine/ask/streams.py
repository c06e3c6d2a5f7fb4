"""Message streams with a return value, drained synchronously or in an event loop."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Generic, TypeVar

M = TypeVar("M")
R = TypeVar("R")


def result_of(stream: Generator[M, None, R]) -> R:
    """Drain a stream and return the stream's result."""
    while True:
        try:
            next(stream)
        except StopIteration as end:
            result: R = end.value
            return result


class ThreadStream(Generic[M, R]):
    """A non-blocking stream for an event loop, running in a separate thread.

    ``messages`` can be read once; a stream left before its end is closed. ``result`` is the
    return value, available once all messages have been read."""

    result: R

    def __init__(self, stream: Generator[M, None, R]) -> None:
        self._stream = stream

    async def messages(self) -> AsyncGenerator[M, None]:
        import asyncio  # late: a command has no event loop

        loop = asyncio.get_running_loop()
        pool = ThreadPoolExecutor(1, "ask")
        try:
            while (message := await loop.run_in_executor(pool, self._next_message)) is not None:
                yield message
        finally:
            pool.submit(self._stream.close)
            pool.shutdown(wait=True)

    async def read_result(self) -> R:
        """Read all messages; return the result."""
        async with aclosing(self.messages()) as messages:
            async for _ in messages:
                pass
        return self.result

    def _next_message(self) -> M | None:
        try:
            return next(self._stream)
        except StopIteration as end:
            self.result = end.value
            return None
