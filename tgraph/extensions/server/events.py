"""Streams of server-sent events (HTML Living Standard, 9.2)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from starlette.responses import StreamingResponse

from tgraph.errors import TgraphError
from tgraph.extensions.server.problems import problem_details, problem_of
from tgraph.shortages import explain_shortage

KEEP_ALIVE = 15.0
"""Seconds without an event after which a comment is sent, so that nobody between hangs up."""


def format_event(data: Any, name: str = "") -> bytes:
    """Format an event with JSON data."""
    name_line = f"event: {name}\n" if name else ""
    return f"{name_line}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def event_stream(events: AsyncIterator[bytes]) -> StreamingResponse:
    """Stream events as server-sent events; an error becomes the last event (``event: error``)."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(
        keep_stream_alive(_catch_errors(events)), headers=headers, media_type="text/event-stream"
    )


async def _catch_errors(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    try:
        async for event_bytes in events:
            yield event_bytes
    except TgraphError as error:
        yield format_event(problem_of(error), "error")
    except Exception as error:
        if shortage := explain_shortage(error):
            yield format_event(problem_of(shortage), "error")
            return
        import logging

        logging.getLogger("tgraph.extensions.server").exception("A stream failed")
        detail = "An unexpected error occurred; see the log of the server."
        yield format_event(problem_details(500, "unforeseen", detail), "error")


async def keep_stream_alive(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield events, inserting comments during long pauses."""
    iterator = events.__aiter__()
    following: asyncio.Future[bytes] = asyncio.ensure_future(_next_event(iterator))
    try:
        while True:
            finished_tasks, _ = await asyncio.wait({following}, timeout=KEEP_ALIVE)
            if not finished_tasks:
                yield b": still here\n\n"
                continue
            try:
                yield following.result()
            except StopAsyncIteration:
                return
            following = asyncio.ensure_future(_next_event(iterator))
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError, StopAsyncIteration, Exception):
            await following
        close = getattr(iterator, "aclose", None)
        if close is not None:
            await close()


async def _next_event(iterator: AsyncIterator[bytes]) -> bytes:
    return await iterator.__anext__()
