"""Streams of server-sent events (HTML Living Standard, 9.2)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from starlette.responses import StreamingResponse

from tgraph.errors import TgraphError
from tgraph.extensions.server.problems import problem, problem_of

KEEP_ALIVE = 15.0
"""Seconds without an event after which a comment is sent, so that nobody between hangs up."""


def event(data: Any, name: str = "") -> bytes:
    """An event with JSON as its data."""
    named = f"event: {name}\n" if name else ""
    return f"{named}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def event_stream(events: AsyncIterator[bytes]) -> StreamingResponse:
    """The events as they come; an error on the way is the last of them (``event: error``)."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(
        alive(_ending(events)), headers=headers, media_type="text/event-stream"
    )


async def _ending(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    try:
        async for each in events:
            yield each
    except TgraphError as error:
        yield event(problem_of(error), "error")
    except Exception:
        import logging

        logging.getLogger("tgraph.extensions.server").exception("A stream failed")
        told = "Something unforeseen happened; the server's log has it."
        yield event(problem(500, "unforeseen", told), "error")


async def alive(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The events, with comments where there is none for long."""
    iterator = events.__aiter__()
    following: asyncio.Future[bytes] = asyncio.ensure_future(_next(iterator))
    try:
        while True:
            done, _ = await asyncio.wait({following}, timeout=KEEP_ALIVE)
            if not done:
                yield b": still here\n\n"
                continue
            try:
                yield following.result()
            except StopAsyncIteration:
                return
            following = asyncio.ensure_future(_next(iterator))
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError, StopAsyncIteration, Exception):
            await following
        close = getattr(iterator, "aclose", None)
        if close is not None:
            await close()


async def _next(iterator: AsyncIterator[bytes]) -> bytes:
    return await iterator.__anext__()
